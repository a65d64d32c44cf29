"""State consistency: every element is updated where it must be, and every copy receives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placelogic.program.catalog import WHOLE_TENSOR_DIMS, Needs
from placelogic.program.facts import Fact
from placelogic.program.program import (
    BroadcastParams,
    FetchParams,
    GatherParams,
    Layout,
    Origin,
    Program,
    Refresh,
    Step,
    Weights,
)
from placelogic.prove.alignment import apart, same_dimension
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either, negate
from placelogic.prove.kinds import Stack, stack
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Trace, members
from placelogic.source import Span

Shards = Mapping[str, tuple[tuple[str, Stack, Origin], ...]]
"""axis -> (state, how it is cut, where that was said), for the states an update needs."""


def shards(program: Program, weights: Weights, trace: Trace) -> Shards:
    """How optimizer state, gradient and parameter are cut along each axis at the update.

    Where all agree the owner updates; where none is cut everyone does."""
    out: dict[str, tuple[tuple[str, Stack, Origin], ...]] = {}
    updates = [read for read in trace.reads if read.what == "update"]
    for index, axis in enumerate(program.mesh.axes):
        found: list[tuple[str, Stack, Origin]] = []
        layouts = (("optimizer", weights.optimizer_state), ("gradients", weights.gradients), ("params", weights.params))
        for state, layout in layouts:
            cut = stack(layout, axis)
            if cut is not None:
                origin = layout.cut(axis)
                assert origin is not None
                found.append((state, cut, origin.origin))
        for read in updates:
            for term in (t for terms in read.terms.values() for t in terms):
                cut = term.kinds[index].cut
                if cut is not None and all(cut != known for _, known, _ in found):
                    found.append(("gradients", cut, read.origin))
        out[axis] = tuple(found)
    return out


def alignment_obligations(
    program: Program, weights: Weights, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC03, CC02: the shards of the three states line up, so that every element has an updater."""
    for axis, found in cuts.items():
        for index, (state, cut, origin) in enumerate(found):
            for other_state, other, other_origin in found[:index]:
                violation = apart(cut, other, axis, sizes)
                if cut == other:
                    continue
                nested = same_dimension(cut, other)
                later = origin if origin.stated else other_origin
                yield Obligation(
                    name=f"shards of {weights.name} over {axis}: {other_state} and {state}",
                    code="CC02" if nested else "SC03",
                    weights=weights.name,
                    axes=(axis,),
                    violation=violation,
                    span=later.span,
                    stated=stated,
                    message=f"{other_state} and {state} of `{weights.name}` are cut differently over {axis}: "
                    f"some element has its {other_state} on one device and its {state} on another",
                    label=f"cut {_cut_text(cut)} here, {_cut_text(other)} for the {other_state}",
                    help="list the axes in one order in every state" if nested else "cut both by the same rule",
                )


def _cut_text(cut: Stack) -> str:
    dimension = cut[-1][0]
    axes = ", ".join("*".join(axes) for _, axes in cut)
    return f"on {dimension} over {axes}" if not dimension.startswith("@") else f"over {axes}"


def optimizer_obligations(
    program: Program, weights: Weights, cuts: Shards, sizes: Sizes, stated: bool
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
            message=f"the optimizer state of `{weights.name}` is materialized: nothing could recompute it",
            label="optimizer state exists nowhere",
            help="keep it replicated, sharded or offloaded",
        )
    needs = weights.optimizer.needs
    if needs is Needs.ELEMENT:
        return
    for axis, found in cuts.items():
        broken = [(state, origin) for state, cut, origin in found if not _whole(weights, axis, cut)]
        if not found:
            continue
        state, origin = broken[0] if broken else (found[0][0], found[0][2])
        yield Obligation(
            name=f"{weights.optimizer.name} sees enough of {weights.name} over {axis}",
            code="SC06",
            weights=weights.name,
            axes=(axis,),
            violation=at_least(sizes.size(axis), 2) if broken else FALSE,
            span=origin.span,
            stated=stated,
            message=f"{weights.optimizer.name} needs {needs.value} to update `{weights.name}`, "
            f"but its {state} are cut over {axis}",
            label=f"{weights.optimizer.name} sees only a shard",
            help="cut `on param` or `on layer`, which keep tensors whole, or use an elementwise optimizer",
        )


def _whole(weights: Weights, axis: str, cut: Stack) -> bool:
    """Whether this cut leaves every tensor whole: whole tensors or layers, or whole experts."""
    return cut[-1][0] in WHOLE_TENSOR_DIMS or axis in weights.routed


def publication_obligations(
    program: Program, weights: Weights, step: Step, trace: Trace, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC04: after the update every copy of every parameter element is the new one."""
    updated = max((read.order for read in trace.reads if read.what == "update"), default=None)
    if updated is None:
        return
    after = [publish for publish in trace.publishes if publish.order > updated]
    where = step.origin.span if step.stated else weights.span
    layout = weights.params
    code = "FW01" if layout.materialized is not None else "SC04"

    def make(name: str, axes: tuple[str, ...], violation: Formula, message: str, label: str, help: str, span: Span):
        return Obligation(
            name=f"{name} of {weights.name}", code=code, weights=weights.name, axes=axes, violation=violation,
            span=span, stated=stated, message=message, label=label, help=help, fault="nonuniform",
        )  # fmt: skip

    # The new values travel master -> compute copy -> device -> other devices; a move that comes
    # before the one it builds on moves old values.
    unrefreshed: Formula = TRUE if weights.master else FALSE
    unfetched: Formula = TRUE if layout.host is not None or weights.optimizer_state.host is not None else FALSE
    stale: dict[str, Formula] = {}
    for axis in program.mesh.axes:
        partial = bool(cuts[axis]) and layout.cut(axis) is None
        stale[axis] = at_least(members(weights, sizes, axis), 2) if partial else FALSE
    spans = {axis: where for axis in stale}
    for publish in after:
        match publish.op:
            case Refresh():
                unrefreshed = both(unrefreshed, negate(publish.when))
                unfetched = TRUE if unfetched != FALSE or _host(weights) else FALSE
                stale = {axis: _restale(weights, sizes, cuts, axis, layout) for axis in stale}
            case FetchParams():
                unfetched = both(unfetched, either(negate(publish.when), unrefreshed))
            case GatherParams(axes=axes):
                for axis in axes:
                    if layout.cut(axis) is None:
                        waits = either(negate(publish.when), unrefreshed, unfetched)
                        stale[axis] = both(stale[axis], waits)
            case BroadcastParams(axes=axes, origin=origin):
                for axis in axes:
                    if layout.cut(axis) is not None or stale[axis] != FALSE:
                        several = at_least(members(weights, sizes, axis), 2)
                        stale[axis] = either(stale[axis], both(publish.when, several))
                        spans[axis] = origin.span
    if weights.master:
        yield make(
            "compute copy refreshed from the master", (), unrefreshed,
            f"the compute copy of `{weights.name}` is never refreshed from the updated master copy",
            "the master is updated, the parameters are not",
            "write `refresh params from master` after `update`", where,
        )  # fmt: skip
    if unfetched != FALSE or _host(weights):
        yield make(
            "device copy fetched from the host", (), unfetched,
            f"`{weights.name}` is updated on the host, and the device keeps the old parameters",
            "the new parameters stay on the host",
            "write `fetch params` after `update` (and after `refresh`)", where,
        )  # fmt: skip
    for axis in program.mesh.axes:
        if not cuts[axis] and stale[axis] == FALSE:
            continue
        yield make(
            f"new parameters reach every copy over {axis}", (axis,), stale[axis],
            f"each device updates only its shard of `{weights.name}`, and the others along {axis} "
            "keep the old parameters",
            "updated shards are not published",
            f"write `gather params over {axis}` at the end of the step", spans[axis],
        )  # fmt: skip


def _host(weights: Weights) -> bool:
    return weights.params.host is not None or weights.optimizer_state.host is not None


def _restale(weights: Weights, sizes: Sizes, cuts: Shards, axis: str, layout: Layout) -> Formula:
    """After a refresh the compute copy is new exactly where the master is."""
    if cuts[axis] and layout.cut(axis) is None:
        return at_least(members(weights, sizes, axis), 2)
    return FALSE


def replica_obligations(
    program: Program, weights: Weights, step: Step, trace: Trace, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC01: devices that update the same element do so from equal gradients."""
    updates = [read for read in trace.reads if read.what == "update"]
    last = max((read.order for read in updates), default=0)
    healed = {
        axis
        for publish in trace.publishes
        if isinstance(publish.op, BroadcastParams) and publish.order > last and publish.when == TRUE
        for axis in publish.op.axes
        if not weights.master
    }
    for index, axis in enumerate(program.mesh.axes):
        if cuts[axis] or axis in healed:
            continue
        several = at_least(members(weights, sizes, axis), 2)
        unequal = [
            both(read.when, t.when, several if t.kinds[index].value == "share" else t.kinds[index].ruined)
            for read in updates
            for terms in read.terms.values()
            for t in terms
            if t.kinds[index].value == "share" or t.kinds[index].mixed
        ]
        yield Obligation(
            name=f"replicas of {weights.name} over {axis} update alike",
            code="SC01",
            weights=weights.name,
            axes=(axis,),
            violation=either(*unequal),
            span=updates[-1].origin.span if updates and updates[-1].origin.stated else _where(step, weights),
            stated=stated,
            message=f"copies of `{weights.name}` along {axis} apply different updates and drift apart",
            label=f"each device along {axis} updates from its own value",
            help=f"sum or average the gradient over {axis} before `update`",
            fault="nonuniform",
        )


def _where(step: Step, weights: Weights) -> Span:
    return step.origin.span if step.stated else weights.span


# --- the start ------------------------------------------------------------------------------


def start_obligations(program: Program, weights: Weights, sizes: Sizes) -> Iterator[Obligation]:
    """SC05: copies start equal, and no broadcast overwrites shards."""
    unequal: dict[str, tuple[Formula, Origin]] = {}
    for op in weights.init:
        for axis in op.axes:
            several = at_least(members(weights, sizes, axis), 2)
            cut = weights.params.cut(axis) is not None
            if op.kind == "different":
                if not cut:
                    unequal[axis] = (several, op.origin)
            elif cut:
                yield Obligation(
                    name=f"start of {weights.name}: broadcast over {axis}",
                    code="SC05",
                    weights=weights.name,
                    axes=(axis,),
                    violation=several,
                    span=op.origin.span,
                    stated=op.origin.stated,
                    message=f"the broadcast overwrites the shards of `{weights.name}` along {axis} with one of them",
                    label=f"{axis} cuts these parameters",
                    help=f"leave {axis} out of the broadcast",
                    fault="wrong",
                )
            else:
                unequal[axis] = (FALSE, op.origin)
    for axis, (violation, origin) in unequal.items():
        yield Obligation(
            name=f"start of {weights.name} over {axis}",
            code="SC05",
            weights=weights.name,
            axes=(axis,),
            violation=violation,
            span=origin.span,
            stated=origin.stated,
            message=f"copies of `{weights.name}` along {axis} start from different values",
            label="different random numbers on copies",
            help=f"use one seed along {axis}, or broadcast over {axis} afterwards",
            fault="nonuniform",
        )


def random_obligations(
    program: Program, weights: Weights, facts: Mapping[str, Fact], sizes: Sizes
) -> Iterator[Obligation]:
    """SC07: random streams are equal where values must be copies."""
    for line in weights.random:
        fact = facts[line.axis]
        activation = weights.activations.cut(line.axis)
        parts = fact.kind == "share" or (activation is not None and activation.letter == "S")
        several = at_least(members(weights, sizes, line.axis), 2)
        wrong = line.kind == "different" and not parts
        odd = line.kind == "same" and parts
        yield Obligation(
            name=f"random streams of {weights.name} over {line.axis}",
            code="SC07",
            weights=weights.name,
            axes=(line.axis,),
            violation=several if wrong or odd else FALSE,
            span=line.origin.span,
            stated=line.origin.stated,
            message=f"devices along {line.axis} share one computation with `{weights.name}` but draw different numbers"
            if not odd
            else f"devices along {line.axis} draw the same random numbers for different parts of the work",
            label="must be the same here" if not odd else "usually different",
            help=f"use one stream along {line.axis}" if not odd else f"use a stream per device along {line.axis}",
            fault="nonuniform",
            warning=odd,
        )
