"""SC04: after the update, every copy of every parameter element is the new one.

New values travel master -> compute copy -> device -> other devices; a move that comes before the
one it builds on moves old values.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from placelogic.program.program import (
    Axes,
    BroadcastParams,
    FetchParams,
    GatherParams,
    Program,
    Refresh,
    Step,
    Weights,
)
from placelogic.program.weights import is_flat
from placelogic.prove.feeding import updates
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either, negate
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.state import Shards, partial
from placelogic.prove.values import Publish, Read, Trace, laid_out_apart, members
from placelogic.source import Span


def publication_obligations(
    program: Program, weights: Weights, step: Step, trace: Trace, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """SC04: after the update every copy of every parameter element is the new one."""
    ends = updates(trace, sizes)
    for update, last in ends:
        name = "" if len(ends) == 1 else f", after the update in line {update.origin.span.line}"
        for one in _after(program, weights, step, trace, update, cuts, sizes, stated):
            yield replace(one, name=one.name + name, violation=both(last, one.violation))


def _after(
    program: Program, weights: Weights, step: Step, trace: Trace, update: Read, cuts: Shards, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """The same, where this update is the last one that runs."""
    updated = update.order
    where = update.origin.span if step.stated else weights.span
    layout = weights.params
    code = "FW01" if layout.materialized is not None else "SC04"

    def make(
        name: str,
        axes: tuple[str, ...],
        violation: Formula,
        variant: str,
        span: Span,
    ) -> Obligation:
        return Obligation(
            name=f"{name} of {weights.name}",
            code=code,
            weights=weights.name,
            axes=axes,
            violation=violation,
            span=span,
            stated=stated,
            variant=f"publication: {variant}",
        )

    copies = _Copies(weights, sizes, cuts)
    for publish in trace.publishes:
        copies.move(publish, publish.order > updated)
    unrefreshed, unfetched = copies.unrefreshed, copies.unfetched
    if weights.master:
        yield make("compute copy refreshed from the master", (), unrefreshed, "not refreshed", where)
    if copies.hosted:
        yield make("device copy fetched from the host", (), unfetched, "not fetched", where)
    for axis in program.mesh.axes:
        violation = copies.wrong(axis)
        if not cuts[axis] and sizes.never(violation):
            continue
        gathered = next((p for p in trace.publishes if isinstance(p.op, GatherParams) and axis in p.op.axes), None)
        variant, place = copies.why(axis, gathered, updated)
        yield make(f"new parameters reach every copy over {axis}", (axis,), violation, variant, place or where)


class _Copies:
    """Which copies of the parameters are not the new ones, as sizes, while they are moved.

    Per axis: `stale` where only owners have the new values yet; `lost` where a broadcast has
    overwritten what an owner had, until it is written again; `ruined` where one was over shards."""

    def __init__(self, weights: Weights, sizes: Sizes, cuts: Shards) -> None:
        self.weights, self.sizes, self.cuts = weights, sizes, cuts
        self.hosted = weights.params.host is not None or weights.optimizer_state.host is not None
        # Materialised parameters are made from the master when they are needed: nothing to refresh.
        self.recomputed = weights.params.materialized is not None
        self.unrefreshed: Formula = TRUE if weights.master and not self.recomputed else FALSE
        self.unfetched: Formula = TRUE if self.hosted else FALSE
        self.stale = {axis: self._owners_only(axis) for axis in cuts}
        self.lost: dict[str, Formula] = dict.fromkeys(cuts, FALSE)
        self.ruined: dict[str, Formula] = dict.fromkeys(cuts, FALSE)
        self.overwritten: dict[str, Span] = {}
        self.early: set[str] = set()  # stages gathered over while each had flat shards to gather

    def wrong(self, axis: str) -> Formula:
        return either(self.stale[axis], self.lost[axis], self.ruined[axis])

    def why(self, axis: str, gathered: Publish | None, updated: int) -> tuple[str, Span | None]:
        """What keeps the new parameters from copies along the axis (the variant to tell), and the place if any."""
        if (broadcast := self.overwritten.get(axis)) is not None:
            return "overwritten" if self.ruined[axis] == FALSE else "ruined", broadcast
        if gathered is None:
            return "not gathered", None
        if gathered.order > updated and (self._apart(axis) != FALSE or axis in self.early):
            return "stages first" if axis in self.early else "other shards", gathered.op.origin.span
        return "too early", gathered.op.origin.span

    def move(self, publish: Publish, after: bool) -> None:
        """`after`: it comes after the last update; before it all copies are those of the step before."""
        match publish.op:
            case Refresh() if after:
                self.unrefreshed = both(self.unrefreshed, negate(publish.when))
                if not self.hosted:
                    self._written(publish.when)
            case FetchParams() if after:
                self.unfetched = both(self.unfetched, either(negate(publish.when), self.unrefreshed))
                self._written(publish.when)
            case GatherParams(axes=axes) if after:
                waits = either(negate(publish.when), self.unrefreshed, self.unfetched)
                unlike = {axis: self._unlike(axis, axes) for axis in axes}
                for axis in axes:
                    self.stale[axis] = both(self.stale[axis], either(waits, unlike[axis]))
                    if unlike[axis] != FALSE and self._apart(axis) == FALSE:
                        self.early.add(axis)
            case BroadcastParams(axes=axes):
                for axis in axes:
                    self._broadcast(publish, axis, after)
            case _:
                pass

    def _broadcast(self, publish: Publish, axis: str, after: bool) -> None:
        """Over copies it changes nothing; while only owners are new, it overwrites them; and over shards the root has
        not what the others take, whatever is written over it later."""
        several = at_least(members(self.weights, self.sizes, axis), 2)
        apart = self._apart(axis)
        if self.weights.params.cut(axis) is not None or not self.sizes.never(apart):
            hit = both(publish.when, several if apart == FALSE else apart)
            self.ruined[axis] = either(self.ruined[axis], hit)
        elif after:
            arrived = both(negate(self.unrefreshed), negate(self.unfetched))
            hit = both(publish.when, several, self.stale[axis], arrived)
            self.lost[axis] = either(self.lost[axis], hit)
        else:  # old copies, which the update writes anew
            return
        if hit != FALSE:
            self.overwritten.setdefault(axis, publish.op.origin.span)

    def _apart(self, axis: str) -> Formula:
        """Where those who meet along the axis hold shards of other elements, although they have one coordinate."""
        uses = self.weights.uses
        return laid_out_apart(self.weights, self.sizes) if uses is not None and uses.axis == axis else FALSE

    def _unlike(self, axis: str, axes: Axes) -> Formula:
        """Where a gather over the stages of tied weights finds other elements updated on the other stage at
        its own coordinate: flat shards that are not gathered on each stage, by this gather or before it."""
        uses = self.weights.uses
        if uses is None or uses.axis != axis:
            return FALSE
        flat = [a for a, found in self.cuts.items() if any(is_flat(shard.cut[-1][0]) for shard in found)]
        waiting = either(*(self.stale[a] for a in flat if a not in axes))
        return either(self._apart(axis), both(at_least(members(self.weights, self.sizes, axis), 2), waiting))

    def _written(self, when: Formula) -> None:
        """Every device's compute copy takes what lies where it is updated: its shard, or all of it."""
        for axis in self.cuts:
            if self.weights.params.cut(axis) is None:
                again = self.lost[axis]
                if self.weights.optimizer_state.cut(axis) is None:
                    again = self._owners_only(axis)
                    self.stale[axis] = both(self.stale[axis], negate(when))
                self.stale[axis] = either(self.stale[axis], both(again, when))
            self.lost[axis] = both(self.lost[axis], negate(when))

    def _owners_only(self, axis: str) -> Formula:
        """Where only owners update (or have the new master), the others are stale."""
        if self.weights.params.cut(axis) is not None:
            return FALSE
        return both(at_least(members(self.weights, self.sizes, axis), 2), partial(self.cuts[axis]))
