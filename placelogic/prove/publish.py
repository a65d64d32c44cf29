"""SC04: after the update, every copy of every parameter element is the new one.

New values travel master -> compute copy -> device -> other devices; a move that comes before the
one it builds on moves old values.
"""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.program.program import (
    BroadcastParams,
    FetchParams,
    GatherParams,
    Layout,
    Program,
    Refresh,
    Step,
    Weights,
)
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either, negate
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.state import Shards, partial
from placelogic.prove.values import Trace, members
from placelogic.source import Span


def publication_obligations(
    program: Program, weights: Weights, step: Step, trace: Trace, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC04: after the update every copy of every parameter element is the new one."""
    updated = max((read.order for read in trace.reads if read.what == "update"), default=None)
    if updated is None:
        return
    after = [publish for publish in trace.publishes if publish.order > updated]
    update = next(read for read in trace.reads if read.what == "update" and read.order == updated)
    where = update.origin.span if step.stated else weights.span
    layout = weights.params
    code = "FW01" if layout.materialized is not None else "SC04"

    def make(
        name: str,
        axes: tuple[str, ...],
        violation: Formula,
        message: str,
        label: str,
        help: str,
        span: Span,
        shown: tuple[str, str] = ("old parameters", "new parameters"),
    ) -> Obligation:
        return Obligation(
            name=f"{name} of {weights.name}",
            code=code,
            weights=weights.name,
            axes=axes,
            violation=violation,
            span=span,
            stated=stated,
            message=message,
            label=label,
            help=help,
            fault="nonuniform",
            shown=shown,
        )

    unrefreshed: Formula = TRUE if weights.master else FALSE
    unfetched: Formula = TRUE if layout.host is not None or weights.optimizer_state.host is not None else FALSE
    stale: dict[str, Formula] = {}
    for axis in program.mesh.axes:
        stale[axis] = _stale(weights, sizes, cuts, axis, layout)
    spans = {axis: where for axis in stale}
    for publish in after:
        match publish.op:
            case Refresh():
                unrefreshed = both(unrefreshed, negate(publish.when))
                unfetched = TRUE if unfetched != FALSE or _host(weights) else FALSE
                stale = {axis: _stale(weights, sizes, cuts, axis, layout) for axis in stale}
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
            "compute copy refreshed from the master",
            (),
            unrefreshed,
            f"the compute copy of `{weights.name}` is never refreshed from the updated master copy",
            "the master is updated, the parameters are not",
            "write `refresh params from master` after `update`",
            where,
        )
    if unfetched != FALSE or _host(weights):
        yield make(
            "device copy fetched from the host",
            (),
            unfetched,
            f"`{weights.name}` is updated on the host, and the device keeps the old parameters",
            "the new parameters stay on the host",
            "write `fetch params` after `update` (and after `refresh`)",
            where,
        )
    for axis in program.mesh.axes:
        if not cuts[axis] and stale[axis] == FALSE:
            continue
        yield make(
            f"new parameters reach every copy over {axis}",
            (axis,),
            stale[axis],
            f"each device updates only its shard of `{weights.name}`, and the others along {axis} "
            "keep the old parameters",
            "updated shards are not published",
            f"write `gather params over {axis}` at the end of the step",
            spans[axis],
            ("new shard {i}, old parameters elsewhere", "new parameters"),
        )


def _host(weights: Weights) -> bool:
    return weights.params.host is not None or weights.optimizer_state.host is not None


def _stale(weights: Weights, sizes: Sizes, cuts: Shards, axis: str, layout: Layout) -> Formula:
    """Where only owners update (or, after a refresh, have the new master), the others are stale."""
    if layout.cut(axis) is not None:
        return FALSE
    return both(at_least(members(weights, sizes, axis), 2), partial(cuts[axis]))
