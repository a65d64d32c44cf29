"""Gradient arrays on every device, and what collectives do to them: they add by position."""

from __future__ import annotations

from itertools import zip_longest

from placelogic.program.program import Axes
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, inverse, mix
from placelogic.simulate.group import Group, Local, Rule


class Buffer:
    """One gradient buffer of one group, on all devices.

    `layers`: a list of arrays per device; the fresh gradient has one layer per loss term.
    `room`: axis -> the rule by which the arrays are cut. `valid`: rules that say which of the
    elements there is room for hold anything; the rest is rubbish. `alike`: axes along which
    the devices hold what all of them computed, so that each may keep only its shard."""

    __slots__ = ("alike", "gathered", "group", "layers", "room", "valid")

    def __init__(
        self,
        group: Group,
        layers: list[list[list[int]]],
        room: dict[str, Rule],
        valid: frozenset[Rule],
        alike: frozenset[str],
    ) -> None:
        self.group = group
        self.layers = layers
        self.room = room
        self.valid = valid
        self.alike = alike
        self.gathered: frozenset[str] = frozenset()  # axes over which shards were put together

    def copy(self) -> Buffer:
        return Buffer(self.group, [list(layer) for layer in self.layers], dict(self.room), self.valid, self.alike)

    @property
    def local(self) -> list[Local]:
        return self.group.local(self.room.values())

    @property
    def usable(self) -> list[Local]:
        """Per device, the elements that hold something."""
        return self.group.local((*self.room.values(), *self.valid))


def rubbish(x: int, element: int) -> int:
    return mix(7, x, element)


def scale(buffer: Buffer, factor: int, layer: int | None = None) -> None:
    for number, arrays in enumerate(buffer.layers):
        if layer is None or number == layer:
            scale_each(arrays, [factor] * len(arrays))


def scale_each(arrays: list[list[int]], factors: list[int]) -> None:
    """Multiply each device's array by its own factor."""
    done: dict[tuple[int, int], list[int]] = {}
    keep = list(arrays)  # ids stay unique while the old arrays live
    for x, array in enumerate(keep):
        key = id(array), factors[x]
        known = done.get(key)
        if known is None:
            factor = factors[x]
            known = done[key] = [v * factor % PRIME for v in array]
        arrays[x] = known


def reduce(buffer: Buffer, axes: Axes, mean: bool, scattered: bool) -> None:
    """Sum (or average) over process groups. Where the gradients are placed S, each device keeps
    its shard; `scattered` leaves only the own shard valid."""
    group = buffer.group
    local = buffer.local
    for arrays in buffer.layers:
        for members in group.groups(axes):
            if len(members) > 1:
                total = _added([arrays[x] for x in members])
                if mean:
                    share = inverse(len(members))
                    total = [v * share % PRIME for v in total]
                for x in members:
                    arrays[x] = total if len(local[x]) == len(total) else total[: len(local[x])]
    buffer.alike |= frozenset(axes)
    bare = []
    for axis in axes:
        rule = group.gradients_rule.get(axis)
        if rule is not None:
            cut(buffer, rule)
        else:
            bare.append(axis)
    if scattered and bare:
        invalidate(buffer, group.scattered(tuple(bare)))


def _added(arrays: list[list[int]]) -> list[int]:
    if len({len(array) for array in arrays}) == 1:
        return [sum(column) % PRIME for column in zip(*arrays)]
    return [sum(column) % PRIME for column in zip_longest(*arrays, fillvalue=0)]


def invalidate(buffer: Buffer, rules: list[Rule]) -> None:
    """Only what the rules give to a device stays a value; the rest of its array is left over."""
    rules = [rule for rule in rules if buffer.group.grid.size[rule.axis] > 1]
    if not rules:
        return
    buffer.valid |= frozenset(rules)
    local, usable = buffer.local, buffer.usable
    for arrays in buffer.layers:
        for x in buffer.group.holders:
            own = usable[x]
            if len(own) != len(local[x]):
                arrays[x] = [v if e in own else rubbish(x, e) for e, v in zip(local[x], arrays[x])]


def cut(buffer: Buffer, rule: Rule) -> None:
    """Each device keeps its shard along the rule's axis. What another rule gave away is missing."""
    group, axis = buffer.group, rule.axis
    before = buffer.room.get(axis)
    if before is rule:
        return
    if group.grid.size[axis] == 1:
        buffer.room[axis] = rule
        return
    if before is not None:
        buffer.valid |= {before}
    old = buffer.local
    buffer.room[axis] = rule
    _reshape(buffer, old)


def _reshape(buffer: Buffer, old: list[Local]) -> None:
    """Arrays of the buffer's present room, filled from those of the room it had."""
    new = buffer.local
    plans: dict[tuple[Local, Local], list[int]] = {}
    for arrays in buffer.layers:
        done: dict[tuple[int, Local], list[int]] = {}
        keep = list(arrays)
        for x in buffer.group.holders:
            key = old[x], new[x]
            plan = plans.get(key)
            if plan is None:
                rank = {e: i for i, e in enumerate(old[x])}
                plan = plans[key] = [rank.get(e, -1) for e in new[x]]
            whole = -1 not in plan
            known = done.get((id(keep[x]), new[x])) if whole else None
            if known is None:
                array = keep[x]
                known = [array[i] if i >= 0 else rubbish(x, e) for i, e in zip(plan, new[x])]
                if whole:
                    done[id(array), new[x]] = known
            arrays[x] = known


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
    if not rules:
        return
    buffer.gathered |= frozenset(rule.axis for rule in rules if rule.axis in group.gradients_rule)
    old, ranks = buffer.local, {}
    for shape in set(old):
        ranks[shape] = {e: i for i, e in enumerate(shape)}
    for rule in rules:
        buffer.room.pop(rule.axis, None)
    buffer.valid = frozenset(rule for rule in buffer.valid if rule.axis not in axes)
    new = buffer.local
    for number, arrays in enumerate(buffer.layers):
        found = list(arrays)
        for x in group.holders:
            array = []
            for e in new[x]:
                source = group.moved(x, rules, e)
                rank = ranks[old[source]].get(e)
                array.append(rubbish(x, e) if rank is None else arrays[source][rank])
            found[x] = array
        buffer.layers[number] = found


def _check_copies(buffer: Buffer, axis: str) -> None:
    """Whole arrays that differ are no pieces of one gradient: what comes of them is rubbish."""
    for arrays in buffer.layers:
        keep = list(arrays)
        for members in buffer.group.groups((axis,)):
            first = keep[members[0]]
            if any(keep[x] is not first and keep[x] != first for x in members):
                for x in members:
                    arrays[x] = [rubbish(x, e) for e in range(len(keep[x]))]


def accumulate(running: Buffer | None, fresh: Buffer, replace: bool) -> Buffer:
    """The running buffer after adding the fresh gradient of one micro-batch (all loss terms)."""
    group = fresh.group
    part = fresh.copy()
    for axis, rule in group.gradients_rule.items():
        # A copy is cut when it is stored; a part of a sum can only be cut after the sum.
        if axis in part.room or axis in part.alike:
            cut(part, rule)
    _unfold(part)
    merged = part.layers[0]
    for layer in part.layers[1:]:
        merged = _sum(merged, layer)
    part.layers = [merged]
    if running is None or replace:
        return part
    there, here = running.local, part.local
    for x in group.holders:
        if len(there[x]) != len(here[x]):
            raise GroupStop("a whole gradient is added to a buffer that holds only a shard")
    running.layers = [_sum(running.layers[0], merged)]
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


def _sum(one: list[list[int]], other: list[list[int]]) -> list[list[int]]:
    done: dict[tuple[int, int], list[int]] = {}
    found = []
    for a, b in zip(one, other):
        key = id(a), id(b)
        known = done.get(key)
        if known is None:
            known = done[key] = [(v + w) % PRIME for v, w in zip(a, b)]
        found.append(known)
    return found
