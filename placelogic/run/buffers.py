"""Gradient buffers, and what the operations of a step do to them: collectives add by position."""

from __future__ import annotations

from fractions import Fraction
from typing import Generic

from placelogic.program.program import Axes
from placelogic.run.algebra import A, Arrays
from placelogic.run.group import Group, Held, Rule
from placelogic.run.stop import GroupStop


class Buffer(Generic[A]):
    """One gradient buffer of one group. `layers`: its arrays, while fresh one for each loss term.

    `room`: axis -> the rule by which the arrays are cut. `valid`: rules that say which of the elements there is room
    for hold anything; the rest is rubbish. `alike`: axes along which the devices hold what all of them computed, so
    that each may keep only its shard. `gathered`: axes over which shards were put together."""

    __slots__ = ("alike", "gathered", "group", "layers", "on", "room", "valid")

    def __init__(
        self,
        group: Group,
        on: Arrays[A, object],
        layers: list[A],
        room: dict[str, Rule],
        valid: frozenset[Rule],
        alike: frozenset[str],
    ) -> None:
        self.group = group
        self.on = on
        self.layers = layers
        self.room = room
        self.valid = valid
        self.alike = alike
        self.gathered: frozenset[str] = frozenset()

    @property
    def local(self) -> Held:
        return self.group.local(self.room.values())

    @property
    def usable(self) -> Held:
        """Per device, the elements that hold something."""
        return self.group.local((*self.room.values(), *self.valid))


    def summed(self) -> A:
        """All loss terms together."""
        *layers, found = self.layers
        for layer in reversed(layers):
            found = self.on.add(layer, found)
        return found


def fresh(group: Group, on: Arrays[A, object], layers: list[A]) -> Buffer[A]:
    """What a backward pass leaves."""
    return Buffer(group, on, layers, dict(group.room), frozenset(), group.alike)


def scale(buffer: Buffer[A], factor: Fraction, why: str = "", layer: int | None = None) -> None:
    for number, array in enumerate(buffer.layers):
        if layer in (None, number):
            buffer.layers[number] = buffer.on.scale(array, factor, why)


def reduce(buffer: Buffer[A], axes: Axes, mean: bool, scattered: bool, where: str = "") -> None:
    """Sum (or average) over process groups. Where the gradients are placed S, each device keeps its shard;
    `scattered` leaves only the own shard valid."""
    group, local = buffer.group, buffer.local
    rules = [group.gradients_rule[axis] for axis in axes if axis in group.gradients_rule]
    bare = tuple(axis for axis in axes if axis not in group.gradients_rule)
    own = group.scattered(bare) if scattered and bare else []
    needed = None
    if len(rules) + len(own) == len(axes) and not any(axis in buffer.room for axis in axes):
        needed = group.local((*buffer.room.values(), *rules, *own))
    why = f"reduce over {{}} by {'mean' if mean else 'sum'}{where}"
    buffer.layers = [buffer.on.sum(array, local, axes, mean, needed, why) for array in buffer.layers]
    buffer.alike |= frozenset(axes)
    for rule in rules:
        cut(buffer, rule)
    own = [rule for rule in own if group.grid.size[rule.axis] > 1]
    if own:
        buffer.valid |= frozenset(own)
        why = "scattered: only the own shard is a value"
        buffer.layers = [buffer.on.rubbish(array, buffer.local, buffer.usable, why) for array in buffer.layers]


def cut(buffer: Buffer[A], rule: Rule) -> None:
    """Each device keeps its shard along the rule's axis. What another rule gave away is missing."""
    before, axis = buffer.room.get(rule.axis), rule.axis
    if before is rule:
        return
    old = buffer.local
    buffer.room[axis] = rule
    if buffer.group.grid.size[axis] > 1:
        if before is not None:
            buffer.valid |= {before}
        _moved(buffer, old, f"each device along {axis} keeps its shard")


def _moved(buffer: Buffer[A], old: Held, why: str) -> None:
    """Arrays of the buffer's present room, filled from those of the room it had."""
    buffer.layers = [buffer.on.take(array, old, buffer.local, why) for array in buffer.layers]


def gather(buffer: Buffer[A], axes: Axes) -> None:
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
            buffer.layers = [buffer.on.copies(array, buffer.local, axis) for array in buffer.layers]
    buffer.alike |= frozenset(axes)
    if not rules:
        return
    old = buffer.local
    for rule in rules:
        buffer.room.pop(rule.axis, None)
    buffer.valid = frozenset(rule for rule in buffer.valid if rule.axis not in axes)
    buffer.gathered |= frozenset(rule.axis for rule in rules if rule.axis in group.gradients_rule)
    buffer.layers = [collected(group, buffer.on, rules, array, old, buffer.local) for array in buffer.layers]


def gathered(buffer: Buffer[A], axes: Axes) -> Buffer[A]:
    """What an optimizer reads that gathers over `axes` for its update; the buffer stays what it is."""
    cut = {rule.axis for rule in (*buffer.room.values(), *buffer.valid)}.intersection(axes)
    if not cut:
        return buffer
    read = Buffer(buffer.group, buffer.on, list(buffer.layers), dict(buffer.room), buffer.valid, buffer.alike)
    gather(read, tuple(axis for axis in axes if axis in cut))
    return read


def collected(
    group: Group,
    on: Arrays[A, object],
    rules: list[Rule],
    array: A,
    held: Held,
    wanted: Held,
    why: str | None = None,
    otherwise: bool = False,
) -> A:
    """An all-gather: each wanted element from the device that owns it along the axes of the rules; where that has none,
    rubbish, or `otherwise` the own value."""
    over = tuple(dict.fromkeys(rule.axis for rule in rules))
    table = group.table(rules, wanted, held, otherwise)
    return on.pick(array, held, wanted, over, table, why or f"gather over {'*'.join(over)}")


def accumulate(running: Buffer[A] | None, fresh: Buffer[A], replace: bool) -> Buffer[A]:
    """The running buffer after adding the fresh gradient of one micro-batch (all loss terms)."""
    group, on = fresh.group, fresh.on
    part = Buffer(group, on, list(fresh.layers), dict(fresh.room), fresh.valid, fresh.alike)
    for axis, rule in group.gradients_rule.items():
        # A copy is cut when it is stored; a part of a sum can only be cut after the sum.
        if axis in part.room or axis in part.alike:
            cut(part, rule)
    _unfold(part)
    part.layers = [part.summed()]
    if running is None or replace:
        return part
    there, here = running.local, part.local
    if any(len(there[x]) != len(here[x]) for x in group.holders):
        raise GroupStop("a whole gradient is added to a buffer that holds only a shard")
    running.layers = [on.add(running.layers[0], part.layers[0])]
    running.valid |= part.valid
    running.alike &= part.alike
    running.gathered = frozenset()
    return running


def _unfold(part: Buffer[A]) -> None:
    """A shard goes to its place in a buffer that has room for everything; the rest of it is rubbish."""
    bare = [axis for axis in part.room if axis not in part.group.gradients_rule]
    if not bare:
        return
    old = part.local
    part.valid |= frozenset(part.room[axis] for axis in bare if part.group.grid.size[axis] > 1)
    for axis in bare:
        del part.room[axis]
    _moved(part, old, "a shard in a buffer that has room for all")
