"""The derived step: the cheapest right way to combine the gradients of one weight group.

Right by construction for the stated loss, feeds aside (docs/semantics.md, "Denominators").
Among right steps this order of traffic decides:

1. a reduction runs once, after the last micro-batch, unless the gradients are kept cut;
2. where only an owner updates, a reduce-scatter (and a gather of the parameters) replaces an
   all-reduce: 2s instead of 3s;
3. reduce-scatters come first, so that later reductions move only a shard; but tied weights are
   reduced over their stages before a flat cut, whose owners differ between stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from placelogic.elaborate.facts import facts_of
from placelogic.elaborate.stated import Stated
from placelogic.program.catalog import WHOLE_TENSOR_DIMS, Needs
from placelogic.program.expr import TOKENS, Binary, Expr, Name, Num, number
from placelogic.program.facts import Fact
from placelogic.program.program import (
    Accumulate,
    Axes,
    Clip,
    Cut,
    FetchParams,
    GatherGradients,
    GatherParams,
    Loop,
    LossTerm,
    OffloadGradients,
    Op,
    Origin,
    Program,
    Reduce,
    Refresh,
    Scale,
    ScaleLoss,
    StatedLine,
    Step,
    Update,
    Weights,
)


class _Reduction(Struct, frozen=True):
    """One axis to reduce over. `cut`: the shard that is enough afterwards, where one is."""

    axis: str
    op: Literal["sum", "mean"]
    origin: Origin
    cut: Cut | None
    inner: bool
    ties_stages: bool


def derive(program: Program, stated: Stated) -> Program:
    """The program with its facts, and a step for every trained weight group; stated steps are kept."""
    if program.layers is not None:
        from placelogic.layers.derive import complete

        program = complete(program)
    facts = facts_of(program)
    steps = []
    for weights in program.weights:
        if weights.frozen:
            continue
        steps.append(program.step(weights.name) or _step(program, weights, facts[weights.name], stated))
    return replace(program, steps=tuple(steps), facts=facts)


def _step(program: Program, weights: Weights, facts: Mapping[str, Fact], stated: Stated) -> Step:
    derived = Origin(weights.span, stated=False)
    terms = program.work.losses
    reductions: list[_Reduction] = []
    scales: list[Op] = [Scale(None, factor, origin) for factor, origin in stated.scales.get(weights.name, ())]
    fresh: list[Op] = []  # one loss term at a time, on the fresh gradient

    def divide(wanting: tuple[LossTerm, ...], divisor: Expr) -> None:
        """Divide the contribution of these terms: together where all want it, else each apart.
        Each term counts its own tokens."""
        factor = Binary("/", number(1), divisor)
        if wanting == terms and (len(terms) == 1 or divisor != Name(TOKENS)):
            scales.append(Scale(None, factor, derived))
        else:
            fresh.extend(ScaleLoss(term.name, factor, derived) for term in wanting)

    def reduce(axis: str, op: Literal["sum", "mean"], origin: Origin) -> None:
        inner = weights.gradients.cut(axis) is not None
        ties = facts[axis].part == "use"
        reductions.append(_Reduction(axis, op, origin, _enough(weights, axis), inner, ties))

    for axis, fact in facts.items():
        line = stated.sync.get((weights.name, axis))
        means = tuple(term for term in terms if term.mean and axis not in (*term.over, *term.whole))
        if fact.routed:
            # Routing itself sums; a mean is a division.
            if line is not None:
                if line.op == "mean":
                    scales.append(Scale(None, Binary("/", number(1), Name(axis)), line.origin))
            elif fact.part == "item" and means:
                divide(means, Name(axis))
        elif line is not None:
            if line.op != "none":
                reduce(axis, line.op, line.origin)
        elif fact.kind == "partial":
            if fact.part == "item" and means == terms:
                reduce(axis, "mean", derived)
            else:
                reduce(axis, "sum", derived)
                if fact.part == "item" and means:
                    divide(means, Name(axis))

    count = program.work.microbatches
    line = stated.sync_microbatches.get(weights.name)
    if line is not None:
        if line.op == "mean":
            scales.append(Scale(None, Binary("/", number(1), count), line.origin))
    elif count != Num(number(1).value):
        means = tuple(term for term in terms if term.mean and not term.microbatches)
        if means:
            divide(means, count)
    if program.work.objective == "mean":
        sums = tuple(term for term in terms if not term.mean)
        if sums:
            divide(sums, Name(TOKENS))

    ops = _arrange(weights, reductions, fresh, scales, derived)
    ops += _finish(program, weights, derived)
    return Step(weights.name, tuple(ops), stated=False, origin=derived, lines=_lines(program, weights, stated))


def _lines(program: Program, weights: Weights, stated: Stated) -> tuple[StatedLine, ...]:
    """The `sync` lines that took part, for reports."""
    over_axes = [(axis, stated.sync.get((weights.name, axis))) for axis in program.mesh.axes]
    lines = [*over_axes, (None, stated.sync_microbatches.get(weights.name))]
    return tuple(StatedLine(axis, line.origin) for axis, line in lines if line is not None)


def _enough(weights: Weights, axis: str) -> Cut | None:
    """The shard that the reduced gradient may be cut to along an axis, if any."""
    gradients, optimizer, params = (
        layout.cut(axis) for layout in (weights.gradients, weights.optimizer_state, weights.params)
    )
    if gradients is not None:
        return gradients
    if optimizer is not None and params is not None and optimizer.dimension != params.dimension:
        return None
    return optimizer or params


def _arrange(
    weights: Weights, reductions: list[_Reduction], fresh: list[Op], scales: list[Op], derived: Origin
) -> list[Op]:
    """The loop over micro-batches, then what is done once."""
    flat = any(reduction.cut is not None and reduction.cut.dim == "flat" for reduction in reductions)
    flat_inner = any(r.inner and r.cut is not None and r.cut.dim == "flat" for r in reductions)

    def place(reduction: _Reduction) -> int:
        if reduction.ties_stages and flat:
            return 0
        return 1 if reduction.cut is not None else 2

    ordered = sorted(reductions, key=place)  # stable: mesh order within a place
    inner = [r for r in ordered if r.inner or (r.ties_stages and flat_inner)]
    outer = [r for r in ordered if r not in inner]
    body = [*fresh, *_grouped(inner, weights), Accumulate(None, False, derived)]
    return [Loop("each", None, tuple(body), derived), *scales, *_grouped(outer, weights)]


def _grouped(reductions: list[_Reduction], weights: Weights) -> list[Op]:
    """Neighbours with one operation, one origin and one cut become one collective."""
    groups: list[list[_Reduction]] = []
    for reduction in reductions:
        last = groups[-1][-1] if groups else None
        if last and (last.op, last.origin, last.cut) == (reduction.op, reduction.origin, reduction.cut):
            groups[-1].append(reduction)
        else:
            groups.append([reduction])
    ops: list[Op] = []
    for group in groups:
        axes: Axes = tuple(reduction.axis for reduction in group)
        # A state placed S is cut by the reduction itself; a buffer with room needs to be told.
        scattered = group[0].cut is not None and not group[0].inner
        ops.append(Reduce(None, axes, group[0].op, scattered, group[0].origin))
    return ops


def _wanted_whole(program: Program, weights: Weights) -> list[Axes]:
    """The cuts of gradients that are gathered for an optimizer that needs more than elements, and has the rest whole."""
    found: list[Axes] = []
    if weights.optimizer.needs is Needs.ELEMENT:
        return found
    for axis in program.mesh.axes:
        cut = weights.gradients.cut(axis)
        whole = all(layout.cut(axis) is None for layout in (weights.optimizer_state, weights.params))
        whole = whole and axis not in weights.optimizer.gathers  # it does that by itself
        if cut is not None and whole and cut.dimension not in WHOLE_TENSOR_DIMS and cut.axes not in found:
            found.append(cut.axes)
    return found


def _finish(program: Program, weights: Weights, derived: Origin) -> list[Op]:
    """Clip, update, and bring every copy up to date."""
    ops: list[Op] = []
    on_host = weights.optimizer_state.host is not None or weights.params.host is not None
    if program.clip is not None:
        ops.append(Clip(derived))
    whole = _wanted_whole(program, weights)
    ops += [GatherGradients(axes, derived) for axes in reversed(whole)]
    if weights.optimizer_state.host is not None:
        ops.append(OffloadGradients(derived))
    ops.append(Update(None, derived))
    if weights.master:
        ops.append(Refresh(derived))
    if on_host:
        ops.append(FetchParams(derived))
    published: list[Axes] = []
    for axis in program.mesh.axes:
        cut = weights.optimizer_state.cut(axis) or weights.gradients.cut(axis)
        if cut is None or weights.params.cut(axis) is not None or any(axis in axes for axes in whole):
            continue
        if cut.axes not in published:
            published.append(cut.axes)
    # Tied stages last: each has a flat buffer of its own, to be gathered before one hands on to the other.
    stages = weights.uses.axis if weights.uses is not None else None
    published.sort(key=lambda axes: stages not in axes)  # stable, and reversed below
    ops += [GatherParams(axes, derived) for axes in reversed(published)]
    return ops
