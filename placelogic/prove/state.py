"""State consistency: every element is updated where it must be, and every copy receives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from placelogic.program.catalog import WHOLE_TENSOR_DIMS, Needs
from placelogic.program.program import (
    BroadcastParams,
    GatherGradients,
    Origin,
    Program,
    Step,
    Weights,
    flat,
)
from placelogic.program.weights import is_flat
from placelogic.prove.alignment import apart, same_dimension
from placelogic.prove.feeding import updates
from placelogic.prove.formula import TRUE, Formula, at_least, both, either, negate, not_zero
from placelogic.prove.kinds import Stack, stack
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Read, Trace, members, within_loop
from placelogic.source import Span


class Shard(Struct, frozen=True):
    """One of the states an update needs, cut along one axis. `when`: the sizes at which it is (a
    step may leave a gradient cut for some counts of micro-batches only)."""

    state: str
    cut: Stack
    origin: Origin
    when: Formula = TRUE


Shards = Mapping[str, tuple[Shard, ...]]
"""axis -> how the states are cut along it at the update; none where all are whole."""


def shards(program: Program, weights: Weights, trace: Trace, sizes: Sizes) -> Shards:
    """How optimizer state, gradient and parameter are cut along each axis at the update.

    Where all agree the owner updates; where none is cut everyone does."""
    out: dict[str, tuple[Shard, ...]] = {}
    found_here = [read for read in trace.reads if read.what == "update"]
    layouts = (("optimizer", weights.optimizer_state), ("gradients", weights.gradients), ("params", weights.params))
    for index, axis in enumerate(program.mesh.axes):
        found = []
        for state, layout in layouts:
            cut, entry = stack(layout, axis), layout.cut(axis)
            if cut is not None and entry is not None:
                when = _in_shards(found_here, index, sizes) if state == "gradients" else TRUE
                found.append(Shard(state, cut, entry.origin, when))
        known = {shard.cut for shard in found}
        for read in found_here:
            left: dict[Stack, list[Formula]] = {}
            for term in (t for terms in read.terms.values() for t in terms):
                cut = term.kinds[index].cut
                if cut is not None and cut not in known:
                    left.setdefault(cut, []).append(both(read.when, term.when))
            for cut, when in left.items():
                found.append(Shard("gradients", cut, read.origin, within_loop(either(*when), sizes)))
        out[axis] = tuple(found)
    return out


def _in_shards(reads: Sequence[Read], index: int, sizes: Sizes) -> Formula:
    """The sizes at which a gradient that is placed cut along an axis is not whole at the update: it was not gathered."""
    found = [(both(read.when, t.when), t.kinds[index]) for read in reads for terms in read.terms.values() for t in terms]
    if not found:
        return TRUE
    left = [when for when, kind in found if kind.cut is not None or kind.value == "partial" or kind.mixed]
    return within_loop(either(*left), sizes)


def gathers(weights: Weights, step: Step) -> tuple[str, ...]:
    """Axes that cut what an optimizer needs the whole of, and over which the step gathers its gradient for the update:
    then the optimizer is taken to gather what else it reads across elements, too."""
    if weights.optimizer.needs is Needs.ELEMENT:
        return ()
    over = [axis for op in flat(step.ops) if isinstance(op, GatherGradients) for axis in op.axes]
    return tuple(
        axis
        for axis in dict.fromkeys(over)
        if weights.gradients.cut(axis) is not None
        and (weights.optimizer_state.cut(axis) is not None or weights.params.cut(axis) is not None)
    )


def partial(found: tuple[Shard, ...]) -> Formula:
    """The sizes at which only an owner along this axis updates."""
    return either(*(shard.when for shard in found))


_STATES = {"params": "parameter", "optimizer": "optimizer state", "gradients": "gradient"}
"""What one element has of each state, in words."""


def alignment_obligations(
    program: Program, weights: Weights, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC03, CC02: the shards of the three states line up, so that every element has an updater."""
    for axis, found in cuts.items():
        for index, one in enumerate(found):
            for other in found[:index]:
                if one.cut == other.cut:
                    continue
                nested = same_dimension(one.cut, other.cut)
                later = one.origin if one.origin.stated else other.origin
                yield Obligation(
                    name=f"shards of {weights.name} over {axis}: {other.state} and {one.state}",
                    code="CC02" if nested else "SC03",
                    weights=weights.name,
                    axes=(axis,),
                    violation=both(
                        apart(one.cut, other.cut, axis, lambda atom: members(weights, sizes, atom)),
                        one.when,
                        other.when,
                    ),
                    span=later.span,
                    stated=stated,
                    variant=f"alignment: {'order' if nested else 'dimension'}",
                    words={
                        "ours": _STATES[one.state],
                        "theirs": _STATES[other.state],
                        "here": _cut_text(one.cut),
                        "there": _cut_text(other.cut),
                    },
                )


def _cut_text(cut: Stack) -> str:
    dimension = cut[-1][0]
    axes = ", ".join("*".join(axes) for _, axes in cut)
    return f"on {dimension} over {axes}" if not dimension.startswith("@") else f"over {axes}"


def optimizer_obligations(
    program: Program, weights: Weights, step: Step, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC02 (state that cannot be recomputed), SC06 (the optimizer needs more than its shard)."""
    lost = weights.optimizer_state.materialized
    if lost is not None:
        yield Obligation(
            name=f"optimizer state of {weights.name} is kept",
            code="SC02",
            weights=weights.name,
            axes=(),
            violation=TRUE,
            span=lost.span,
            stated=lost.stated,
            variant="materialized",
        )
    needs = weights.optimizer.needs
    if needs is Needs.ELEMENT:
        return
    for axis, found in cuts.items():
        if not found:
            continue
        broken = [shard for shard in found if not _whole(weights, shard.cut)]
        if axis in weights.optimizer.gathers:
            broken = []
        elif axis in gathers(weights, step):
            broken = [shard for shard in broken if shard.state == "gradients"]
        first = broken[0] if broken else found[0]
        yield Obligation(
            name=f"{weights.optimizer.name} sees enough of {weights.name} over {axis}",
            code="SC06",
            weights=weights.name,
            axes=(axis,),
            violation=both(at_least(members(weights, sizes, axis), 2), either(*(shard.when for shard in broken))),
            span=first.origin.span,
            stated=stated,
            variant="optimizer",
            words={"optimizer": weights.optimizer.name, "needs": weights.optimizer.needed, "state": _STATES[first.state]},
        )


def _whole(weights: Weights, cut: Stack) -> bool:
    """Whether this cut leaves whole what the optimizer needs. Whole tensors or layers do, and whole experts, which is
    what a cut without a dimension deals out along the axes that they are routed over; for rows also a cut of a
    dimension along which they do not run."""
    dimension, optimizer = cut[-1][0], weights.optimizer
    if dimension in WHOLE_TENSOR_DIMS:
        return True
    if optimizer.needs is Needs.ROW and dimension in weights.dims:
        return dimension not in optimizer.along
    routed = all(axis in weights.routed for _, axes in cut for axis in axes)
    return routed and not is_flat(dimension) and dimension not in weights.dims


def replica_obligations(
    program: Program, weights: Weights, step: Step, trace: Trace, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC01: devices that update the same element do so from equal gradients."""
    found = [read for read in trace.reads if read.what == "update"]
    ends = updates(trace, sizes)

    def healed(axis: str) -> Formula:
        """The sizes at which a broadcast after the last update makes all copies the root's."""
        moves = (
            []
            if weights.master
            else [
                publish
                for publish in trace.publishes
                if isinstance(publish.op, BroadcastParams) and axis in publish.op.axes
            ]
        )
        return either(*(both(when, publish.when) for publish in moves for u, when in ends if publish.order > u.order))

    for index, axis in enumerate(program.mesh.axes):
        owners = partial(cuts[axis])
        if sizes.always(owners) or sizes.always(made_alike := healed(axis)):
            continue
        several = at_least(members(weights, sizes, axis), 2)
        unequal = [
            both(
                read.when,
                t.when,
                not_zero(t.scale),
                several if t.kinds[index].value == "partial" else t.kinds[index].ruined,
            )
            for read in found
            for terms in read.terms.values()
            for t in terms
            if t.kinds[index].value == "partial" or t.kinds[index].mixed
        ]
        yield Obligation(
            name=f"replicas of {weights.name} over {axis} update alike",
            code="SC01",
            weights=weights.name,
            axes=(axis,),
            violation=both(within_loop(either(*unequal), sizes), negate(owners), negate(made_alike)),
            span=found[-1].origin.span if found and found[-1].origin.stated else _where(step, weights),
            stated=stated,
            variant="drift",
            read=found[-1] if found else None,
        )


def _where(step: Step, weights: Weights) -> Span:
    return step.origin.span if step.stated else weights.span
