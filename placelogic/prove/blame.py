"""From a wrong coefficient to its name: which code, which axis, which sentence.

The whole product over axes was decided at once; only here, at one concrete mesh, is an axis blamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from msgspec import Struct

from placelogic.program.program import Program, Reduce, Update, Weights, flat
from placelogic.prove.factor import inverse, named_factor
from placelogic.prove.formula import holds
from placelogic.prove.ratio import ONE, ZERO
from placelogic.prove.sizes import Sizes
from placelogic.prove.table import Table, fault_of, rows_of, tabulate
from placelogic.prove.values import TURN, Term, members
from placelogic.report.diagnostic import DeviceRow


class Blame(Struct, frozen=True):
    code: str
    axes: tuple[str, ...]
    message: str
    label: str
    help: str
    fault: Literal["wrong", "scale", "nonuniform"]
    rows: tuple[DeviceRow, ...]


def blame(
    program: Program, weights: Weights, sizes: Sizes, terms: tuple[Term, ...], env: Mapping[str, int], term: str | None
) -> Blame:
    """The finding for a coefficient that is not the single device's."""
    table = tabulate(program, weights, sizes, terms, env)
    what = f"the gradient of `{weights.name}`" + (f" (loss `{term}`)" if term else "")
    rows = rows_of(table)
    fault = fault_of(table)
    names = program.mesh.axes

    for t in terms:
        for index, kind in enumerate(t.kinds):
            if kind.mixed and holds(kind.ruined, {**env, TURN: 1}):
                axis = names[index]
                return Blame(
                    "GI06",
                    (axis,),
                    f"a collective over {axis} {kind.fault}: {what} is no longer a gradient",
                    f"over {axis} the devices hold values that cannot be combined",
                    f"leave {axis} out for `{weights.name}`",
                    "wrong",
                    rows,
                )
    every = [f for items in table.factors.values() for f in items.values()]
    by_turn = _by_turn(table)
    left = [
        axis
        for place, axis in enumerate(table.axes)
        if any(t.kinds[names.index(axis)].value == "share" and live(t, sizes, env) for t in terms)
    ]
    if by_turn is not None and len(set(by_turn.values())) > 1:
        lost = [turn for turn, fs in by_turn.items() if set(fs) == {Fraction(0)}]
        if lost:
            which = ", ".join(map(str, lost))
            return Blame(
                "GI05",
                (),
                f"{what} loses micro-batch{'es' if len(lost) > 1 else ''} {which}",
                "not every micro-batch is added up",
                "accumulate every micro-batch before the update",
                fault,
                rows,
            )
        if left:
            return Blame(
                "GI05",
                tuple(left),
                f"{what} is used before all its micro-batches are summed over {', '.join(left)}",
                "some micro-batches come after the reduction",
                "reduce after the last micro-batch, or in every one",
                fault,
                rows,
            )
        counted = tuple(dict.fromkeys(a for t in terms for a in t.counted))
        if counted and any(t.repeats for t in terms):
            axes = ", ".join(counted)
            return Blame(
                "GI02",
                counted,
                f"{what} sums what was already summed over {axes} again in every micro-batch",
                "the running buffer is reduced again",
                "reduce the fresh gradient (before `accumulate`), or once after the loop",
                fault,
                rows,
            )
        return Blame(
            "GI04",
            (),
            f"{what} weighs micro-batches differently",
            "the running buffer is scaled in every micro-batch",
            "scale once, after the loop",
            fault,
            rows,
        )
    if not any(every) and any(t.scale.at(env) == 0 for t in terms):
        return Blame(
            "GI03",
            (),
            f"{what} is multiplied by 0",
            "nothing of it is left",
            "leave this factor out",
            "wrong",
            rows,
        )
    if not any(every):
        return Blame(
            "GI05",
            (),
            f"{what} is empty: nothing was accumulated into what the update reads",
            "reads a buffer without a gradient",
            "accumulate into the buffer that the update reads",
            "wrong",
            rows,
        )
    if left:
        return _left(program, weights, tuple(left), what, fault, rows)
    rooted = tuple(
        axis
        for axis in table.axes
        if any(t.kinds[names.index(axis)].value == "root" and live(t, sizes, env) for t in terms)
    )
    if rooted:
        axes = ", ".join(rooted)
        return Blame(
            "GI01",
            rooted,
            f"{what} has the contribution of one share along {axes} only: the others are never computed",
            f"every device along {axes} is fed the same share",
            f"feed each device along {axes} its own share",
            fault,
            rows,
        )
    if len(set(every)) == 1 and every[0] is not None:
        flows = program.layering.flows if program.layering is not None else ()
        partly = any(flow.weights == weights.name for flow in flows)
        return _constant(sizes, terms, env, every[0], what, rows, weights, partly)
    return Blame(
        "GI04",
        table.axes,
        f"{what} weighs work items differently",
        "the factor depends on the work item",
        "let every item count alike",
        fault,
        rows,
    )


def _left(
    program: Program,
    weights: Weights,
    left: tuple[str, ...],
    what: str,
    fault: Literal["wrong", "scale", "nonuniform"],
    rows: tuple[DeviceRow, ...],
) -> Blame:
    """Shares that were not added up before they were used; a sum that comes too late, or into
    another buffer than the update reads, is told as that."""
    axes = ", ".join(left)
    step = program.step(weights.name)
    ops = list(flat(step.ops)) if step is not None else []
    update = next((index for index, op in enumerate(ops) if isinstance(op, Update)), len(ops))
    summing = [(index, op) for index, op in enumerate(ops) if isinstance(op, Reduce) and set(op.axes) & set(left)]
    if any(index > update for index, _ in summing):
        return Blame(
            "GI05",
            left,
            f"{what} is used before it is summed over {axes}",
            "comes after the update",
            f"reduce over {axes} before `clip` and `update`",
            fault,
            rows,
        )
    read = ops[update].buffer if update < len(ops) else None  # type: ignore[union-attr]
    other = next((op.buffer for _, op in summing if op.buffer != read), None)
    hint = (
        f": `{other}` is summed, `{read or 'the unnamed buffer'}` is read"
        if other is not None
        else ": contributions are missing"
    )
    # What meets as parts of one result, or of one tied weight, adds up; shares of the work may be averaged.
    parts = all(program.facts[weights.name][axis].part in ("activation", "use") for axis in left)
    shared = step is not None and step.stated and sum(other.origin == step.origin for other in program.steps) > 1
    apart = (
        f"; where other weights of this step do not need it, give `{weights.name}` a step of its own" if shared else ""
    )
    return Blame(
        "GI01",
        left,
        f"{what} is never summed over {axes}{hint}",
        f"along {axes} each device has only its own share",
        (
            f"sum it over {axes}"
            if parts
            else f"sum it over {axes}, or average where each share divides by its own tokens"
        )
        + apart,
        fault,
        rows,
    )


def _constant(
    sizes: Sizes,
    terms: tuple[Term, ...],
    env: Mapping[str, int],
    factor: Fraction,
    what: str,
    rows: tuple[DeviceRow, ...],
    weights: Weights,
    partly: bool,
) -> Blame:
    """`partly`: other parts of the gradient come another way, and are told for themselves."""
    counted = tuple(dict.fromkeys(a for t in terms if live(t, sizes, env) for a in t.counted))
    counted = tuple(axis for axis in counted if members(weights, sizes, axis).at(env) > 1)
    if counted:
        axes = ", ".join(counted)
        times = f"{'*'.join(counted)} times" if factor > 1 else "several times"
        return Blame(
            "GI02",
            counted,
            f"{what} counts {'a part of its contributions' if partly else 'every contribution'} {times}",
            f"along {axes} each device already holds the whole gradient, and they are summed",
            f"leave {axes} out, or average instead of summing",
            "scale",
            rows,
        )
    name = named_factor(terms, sizes)
    involved = {variable for t in terms for poly in (t.scale.num, t.scale.den) for m, _ in poly for variable, _ in m}
    by = inverse(terms, sizes, factor)
    if _in_parts(terms, sizes, env, weights):  # larger meshes have another fault: only what it is here is known
        name, involved, by = None, set(), str(1 / factor)
    return Blame(
        "GI03",
        tuple(axis for axis in sizes.axis_names if axis in involved),
        f"{what} is wrong by the constant factor {name or factor}",
        f"every contribution is multiplied by {factor} at this mesh",
        f"multiply by {by}, or drop or change the factor that is wrong",
        "scale",
        rows,
    )


def _in_parts(terms: tuple[Term, ...], sizes: Sizes, env: Mapping[str, int], weights: Weights) -> bool:
    """Whether devices along some axis would have parts only, if there were several."""
    return any(
        kind.value in ("share", "root") and members(weights, sizes, axis) != ONE
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
