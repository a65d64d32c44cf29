"""Gradient buffers of this rank, and what operations do to them: collectives add by position."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from placelogic.program.program import Axes
from placelogic.replay.comms import Comm, Comms, padded
from placelogic.replay.data import normal
from placelogic.replay.group import Group, Rule
from placelogic.run.stop import GroupStop


class Buffer:
    """One gradient buffer of one group. `layers`: this rank's arrays, one per loss term while fresh.

    `room`: axis -> the rule by which the arrays are cut. `valid`: rules that say which of the elements
    there is room for hold anything; the rest is left over. `alike`: axes along which all devices hold
    the same, so that each may keep only its shard. These three are the same on every rank."""

    def __init__(
        self,
        group: Group,
        comms: Comms,
        layers: list[torch.Tensor],
        room: dict[str, Rule],
        valid: frozenset[Rule],
        alike: frozenset[str],
    ) -> None:
        self.group = group
        self.comms = comms
        self.layers = layers
        self.room = room
        self.valid = valid
        self.alike = alike
        self.gathered: frozenset[str] = frozenset()  # axes over which shards were put together

    def copy(self) -> Buffer:
        return Buffer(self.group, self.comms, list(self.layers), dict(self.room), self.valid, self.alike)

    @property
    def local(self) -> list[torch.Tensor]:
        return self.group.local(self.room.values())

    @property
    def usable(self) -> list[torch.Tensor]:
        """Per device, the elements that hold something."""
        return self.group.local((*self.room.values(), *self.valid))

    def summed(self) -> torch.Tensor:
        """This rank's array, loss terms added."""
        return torch.stack(self.layers).sum(0)

    def mine(self) -> torch.Tensor:
        """Which positions of this rank's array hold something."""
        x = self.comms.rank
        return torch.isin(self.local[x], self.usable[x])


def rubbish(x: int, elements: torch.Tensor) -> torch.Tensor:
    """What lies in memory that holds no value."""
    return normal(("left over", x), 1 + int(elements.max()))[elements] if len(elements) else torch.zeros(0)


def reduce(buffer: Buffer, axes: Axes, mean: bool, scattered: bool) -> None:
    """Sum (or average) over process groups. Where the gradients are placed S, each device keeps its
    shard; `scattered` leaves only the own shard valid."""
    group = buffer.group
    rules = [group.gradients_rule[axis] for axis in axes if axis in group.gradients_rule]
    bare = tuple(axis for axis in axes if axis not in group.gradients_rule)
    own = group.scattered(bare) if scattered and bare else []
    comm = buffer.comms.among(group.groups(axes))
    done = False
    if comm is not None and comm.size > 1:
        local = buffer.local
        alike = all(torch.equal(local[y], local[comm.members[0]]) for y in comm.members)
        fresh = not any(axis in buffer.room for axis in axes)
        if alike and fresh and len(rules) + len(own) == len(axes):
            _reduce_scatter(buffer, comm, rules, own, mean)
            done = True
        else:
            length = max(len(local[y]) for y in comm.members)
            for number, array in enumerate(buffer.layers):
                total = comm.all_reduce(padded(array, length))[: len(array)]
                buffer.layers[number] = total / comm.size if mean else total
    buffer.alike |= frozenset(axes)
    for rule in rules:
        if done:
            buffer.room[rule.axis] = rule
        else:
            cut(buffer, rule)
    if done:
        buffer.valid |= frozenset(rule for rule in own if group.grid.size[rule.axis] > 1)
    else:
        invalidate(buffer, own)


def _reduce_scatter(buffer: Buffer, comm: Comm, rules: list[Rule], own: list[Rule], mean: bool) -> None:
    """Each member gets the sum of what it keeps, and nothing else. By `rules` the array is cut; by `own`
    it has room for all, and the rest of it is left over."""
    group, x = buffer.group, buffer.comms.rank
    room = group.local((*buffer.room.values(), *rules))[x]
    after = group.local((*buffer.room.values(), *rules, *own))
    at, place = positions(group, buffer.local[x]), positions(group, room)[after[x]]
    length = max(len(after[y]) for y in comm.members)
    for number, array in enumerate(buffer.layers):
        pieces = [padded(array[at[after[y]]], length) for y in comm.members]
        total = comm.reduce_scatter(pieces)[: len(after[x])]
        found = rubbish(x, room)
        found[place] = total / comm.size if mean else total
        buffer.layers[number] = found


def positions(group: Group, local: torch.Tensor) -> torch.Tensor:
    """Element -> its position in this local array, -1 where it is not there."""
    at = torch.full((group.count,), -1)
    at[local] = torch.arange(len(local))
    return at


def invalidate(buffer: Buffer, rules: list[Rule]) -> None:
    """Only what the rules give to a device stays a value; the rest of its array is left over."""
    rules = [rule for rule in rules if buffer.group.grid.size[rule.axis] > 1]
    if not rules:
        return
    buffer.valid |= frozenset(rules)
    x = buffer.comms.rank
    mine = buffer.mine()
    buffer.layers = [torch.where(mine, a, rubbish(x, buffer.local[x])) for a in buffer.layers]


def cut(buffer: Buffer, rule: Rule) -> None:
    """Each device keeps its shard along the rule's axis. What another rule gave away is missing."""
    before = buffer.room.get(rule.axis)
    if before is rule:
        return
    old = buffer.local
    if before is not None and buffer.group.grid.size[rule.axis] > 1:
        buffer.valid |= {before}
    buffer.room[rule.axis] = rule
    _reshape(buffer, old)


def _reshape(buffer: Buffer, old: list[torch.Tensor]) -> None:
    """Arrays of the buffer's present room, filled from those of the room it had."""
    x = buffer.comms.rank
    new = buffer.local[x]
    at = positions(buffer.group, old[x])[new]
    left = rubbish(x, new)
    buffer.layers = [
        torch.where(at >= 0, array[at.clamp(min=0)], left) if len(array) else left.clone() for array in buffer.layers
    ]


def gather(buffer: Buffer, axes: Axes) -> None:
    """All-gather: shards are concatenated; of copies each device keeps its own."""
    group = buffer.group
    rules = []
    for axis in axes:
        if group.grid.size[axis] == 1:
            buffer.room.pop(axis, None)
            continue
        rule = buffer.room.get(axis) or next((r for r in buffer.valid if r.axis == axis), None)
        if rule is not None:
            rules.append(rule)
        else:
            _check_copies(buffer, axis)
    buffer.alike |= frozenset(axes)
    buffer.gathered |= frozenset(rule.axis for rule in rules if rule.axis in group.gradients_rule)
    if not rules:
        return
    old = buffer.local
    for rule in rules:
        buffer.room.pop(rule.axis, None)
    buffer.valid = frozenset(rule for rule in buffer.valid if rule.axis not in axes)
    new = buffer.local
    x = buffer.comms.rank
    left = rubbish(x, new[x])
    buffer.layers = [exchange(group, buffer.comms, rules, old, array, new, left) for array in buffer.layers]


def exchange(
    group: Group,
    comms: Comms,
    rules: Sequence[Rule],
    held: list[torch.Tensor],
    array: torch.Tensor,
    wanted: list[torch.Tensor],
    otherwise: torch.Tensor,
) -> torch.Tensor:
    """An all-gather: each element of `wanted` from the device that owns it along the rules' axes, as far as
    it holds it; else what stands in `otherwise`. Each member sends only what it owns."""
    comm = comms.among(group.groups(tuple(dict.fromkeys(rule.axis for rule in rules))))
    if comm is None:
        return otherwise
    x = comms.rank
    sources = {y: group.sources(y, rules) for y in comm.members}
    sent = []
    for y in comm.members:
        asked = torch.zeros(group.count, dtype=torch.bool)
        for z in comm.members:
            asked[wanted[z]] |= sources[z][wanted[z]] == y
        sent.append(held[y][asked[held[y]]])
    at = positions(group, held[x])
    arrays = comm.all_gather_uneven(array[at[sent[comm.index]]], [len(one) for one in sent])
    found = otherwise.clone()
    place = positions(group, wanted[x])
    for y, elements, values in zip(comm.members, sent, arrays):
        here = place[elements]
        good = (here >= 0) & (sources[x][elements] == y)
        found[here[good]] = values[good]
    return found


def _check_copies(buffer: Buffer, axis: str) -> None:
    """Whole arrays that differ are no pieces of one gradient: what comes of them is left over."""
    group, x = buffer.group, buffer.comms.rank
    comm = buffer.comms.among(group.groups((axis,)))
    if comm is None:
        return
    length = max(len(buffer.local[y]) for y in comm.members)
    for number, array in enumerate(buffer.layers):
        others = comm.all_gather(padded(array, length))
        if any(not torch.allclose(others[0], other, rtol=1e-9, atol=1e-12) for other in others):
            buffer.layers[number] = rubbish(x, buffer.local[x])


def accumulate(running: Buffer | None, fresh: Buffer, replace: bool) -> Buffer:
    """The running buffer after adding the fresh gradient of one micro-batch (all loss terms)."""
    group = fresh.group
    part = fresh.copy()
    for axis, rule in group.gradients_rule.items():
        # A copy is cut when it is stored; a part of a sum can only be cut after the sum.
        if axis in part.room or axis in part.alike:
            cut(part, rule)
    _unfold(part)
    part.layers = [part.summed()]
    if running is None or replace:
        return part
    if any(len(running.local[x]) != len(part.local[x]) for x in group.holders):
        raise GroupStop("a whole gradient is added to a buffer that holds only a shard")
    running.layers = [running.layers[0] + part.layers[0]]
    running.valid |= part.valid
    running.alike &= part.alike
    running.gathered = frozenset()
    return running


def _unfold(part: Buffer) -> None:
    """A shard goes to its place in a buffer that has room for everything; the rest of it is left over."""
    bare = [axis for axis in part.room if axis not in part.group.gradients_rule]
    if not bare:
        return
    old = part.local
    part.valid |= frozenset(part.room[axis] for axis in bare if part.group.grid.size[axis] > 1)
    for axis in bare:
        del part.room[axis]
    _reshape(part, old)
