"""From a wrong coefficient to its name: which code, which axes, which sentence.

The whole product over axes was decided at once; only here, at one concrete mesh, is an axis blamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from placelogic.program.program import Program, Reduce, Update, Weights, flat
from placelogic.prove.factor import inverse, named_factor
from placelogic.prove.formula import holds
from placelogic.prove.ratio import ONE, ZERO
from placelogic.prove.sizes import Sizes
from placelogic.prove.table import Table, fault_of
from placelogic.prove.values import TURN, Term, members
from placelogic.report.diagnostic import FaultClass
from placelogic.report.sentences import Sentence, Words


def blame(
    program: Program,
    weights: Weights,
    sizes: Sizes,
    terms: tuple[Term, ...],
    env: Mapping[str, int],
    term: str | None,
    table: Table,
) -> Sentence:
    """What is told of a coefficient that is not the single device's; `table` has it at these sizes."""
    fault = fault_of(table)
    names = program.mesh.axes
    loss: Words = {} if term is None else {"loss": True, "term": f"`{term}`"}

    def sentence(
        code: str, variant: str, axes: tuple[str, ...] = (), fault: FaultClass | None = None, **words: str | bool
    ) -> Sentence:
        return Sentence(code, variant, weights.name, axes, {**loss, **words}, fault)

    def lying(value: str) -> tuple[str, ...]:
        """The axes along which something that is there is of this kind."""
        return tuple(
            axis
            for axis in table.axes
            if any(t.kinds[names.index(axis)].value == value and live(t, sizes, env) for t in terms)
        )

    for t in terms:
        for index, kind in enumerate(t.kinds):
            if kind.mixed and holds(kind.ruined, {**env, TURN: 1}):
                return sentence("GI06", "mixed", (names[index],), why=kind.fault)
    every = [f for items in table.factors.values() for f in items.values()]
    by_turn = _by_turn(table)
    left = lying("partial")
    if by_turn is not None and len(set(by_turn.values())) > 1:
        lost = [turn for turn, fs in by_turn.items() if set(fs) == {Fraction(0)}]
        if lost:
            return sentence("GI05", "lost", (), fault, several=len(lost) > 1, turns=", ".join(map(str, lost)))
        if left:
            return sentence("GI05", "early", left, fault)
        counted = tuple(dict.fromkeys(a for t in terms for a in t.counted))
        if counted and any(t.repeats for t in terms):
            return sentence("GI02", "again", counted, fault)
        return sentence("GI04", "turns", (), fault)
    if not any(every) and any(t.scale.at(env) == 0 for t in terms):
        return sentence("GI03", "zero", factor="0")
    if not any(every):
        return sentence("GI05", "empty")
    if left:
        words = _missing(program, weights, left)
        if words is None:
            return sentence("GI05", "after the update", left, fault)
        return sentence("GI01", "in another buffer" if "summed" in words else "missing", left, fault, **words)
    if rooted := lying("root"):
        return sentence("GI01", "one share", rooted, fault)
    if len(set(every)) == 1 and every[0] is not None:
        counted = tuple(dict.fromkeys(a for t in terms if live(t, sizes, env) for a in t.counted))
        counted = tuple(axis for axis in counted if members(weights, sizes, axis).at(env) > 1)
        if counted:
            # Other parts of the gradient may come another way, and are told for themselves.
            flows = program.layering.flows if program.layering is not None else ()
            partly = any(flow.weights == weights.name for flow in flows)
            what = "a part of its contributions" if partly else "every contribution"
            times = "*".join(counted) if every[0] > 1 else "several"
            return sentence("GI02", "copies", counted, counted=what, times=times)
        axes, words = _constant(sizes, terms, env, every[0], weights)
        variant, more = _tokens_of(program, term, axes)
        return sentence("GI03", variant, axes, **words, **more)
    return sentence("GI04", "items", table.axes, fault)


def _missing(program: Program, weights: Weights, left: tuple[str, ...]) -> dict[str, str | bool] | None:
    """The words about shares that were not added up before they were used; None where the sum comes too late.
    With `summed` where it goes into another buffer than the update reads."""
    step = program.step(weights.name)
    ops = list(flat(step.ops)) if step is not None else []
    update = next((index for index, op in enumerate(ops) if isinstance(op, Update)), len(ops))
    summing = [(index, op) for index, op in enumerate(ops) if isinstance(op, Reduce) and set(op.axes) & set(left)]
    if any(index > update for index, _ in summing):
        return None
    # What meets as parts of one result, or of one tied weight, adds up; shares of the work may be averaged.
    parts = all(program.facts[weights.name][axis].part in ("activation", "use") for axis in left)
    shared = step is not None and step.stated and sum(other.origin == step.origin for other in program.steps) > 1
    read = ops[update].buffer if update < len(ops) else None  # type: ignore[union-attr]
    other = next((op.buffer for _, op in summing if op.buffer != read), None)
    buffers = {"summed": f"`{other}`", "read": f"`{read or 'the unnamed buffer'}`"} if other is not None else {}
    return {"average": not parts, "apart": shared, **buffers}


def _constant(
    sizes: Sizes, terms: tuple[Term, ...], env: Mapping[str, int], factor: Fraction, weights: Weights
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The axes in a constant factor, and the words about it."""
    name = named_factor(terms, sizes)
    involved = {variable for t in terms for poly in (t.scale.num, t.scale.den) for m, _ in poly for variable, _ in m}
    by = inverse(terms, sizes, factor)
    if _in_parts(terms, sizes, env, weights):  # larger meshes have another fault: only what it is here is known
        name, involved, by = None, set(), str(1 / factor)
    axes = tuple(axis for axis in sizes.axis_names if axis in involved)
    return axes, {"factor": name or str(factor), "here": str(factor), "by": str(by)}


def _tokens_of(program: Program, term: str | None, axes: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """How a constant factor over these axes is told, where it comes of the tokens that a device computes the loss of."""
    loss = next(loss for loss in program.work.losses if loss.name == term)
    own = [axis for axis in axes if axis in loss.pieces and axis not in loss.over]
    again = [axis for axis in axes if axis in loss.whole and axis in loss.over]
    variant = "own piece" if own else "counted again" if again else "factor"
    return variant, {"over": ", ".join(own or again)}


def _in_parts(terms: tuple[Term, ...], sizes: Sizes, env: Mapping[str, int], weights: Weights) -> bool:
    """Whether devices along some axis would have parts only, if there were several."""
    return any(
        kind.value in ("partial", "root") and members(weights, sizes, axis) != ONE
        for t in terms
        if live(t, sizes, env)
        for axis, kind in zip(sizes.axis_names, t.kinds)
    )


def live(term: Term, sizes: Sizes, env: Mapping[str, int]) -> bool:
    """Whether the term is there for some micro-batch at these sizes."""
    turns = int(sizes.microbatches.at(env))
    return term.scale != ZERO and any(holds(term.when, {**env, TURN: turn}) for turn in range(1, min(turns, 64) + 1))


def _by_turn(table: Table) -> Mapping[int, tuple[Fraction | None, ...]] | None:
    if not table.turns:
        return None
    out: dict[int, list[Fraction | None]] = {}
    for items in table.factors.values():
        for item, factor in items.items():
            out.setdefault(item[-1], []).append(factor)
    return {turn: tuple(factors) for turn, factors in out.items()}
