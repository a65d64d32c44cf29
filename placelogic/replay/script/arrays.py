"""Gradient arrays in a script: what is cut, reduced and gathered, as tables of places.

The rules are those of simulate/buffers.py; here they become lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placelogic.program.program import Axes
from placelogic.replay.script.layout import NOTHING, Layout, Places, Shape, places, same
from placelogic.replay.script.lines import Names, NotShown, by_device
from placelogic.simulate.group import Local, Rule

if TYPE_CHECKING:
    from placelogic.replay.script.section import Section


def start(layout: Layout) -> Shape:
    """Of a fresh gradient."""
    group = layout.group
    return Shape({**group.own_room, **group.routed_room}, frozenset(), group.alike)


def kept(
    section: Section, on: str, found: Places, there: list[Local], why: str, source: str | None = None
) -> Iterator[str]:
    """`on` becomes itself, or `source`, at these places; no line where that is all of it."""
    source = source or on
    if not same(found, there):
        yield f"{on} = {taken(section.names, source, found)}  # {why}"


def taken(names: Names, source: str, found: Places) -> str:
    """What is at these places."""
    if any(NOTHING in row for row in found):
        names.use("keep")
        return f"keep({source}, {by_device(found)})"
    return f"{source}[{by_device(found)}]"


def cut(section: Section, on: str, shape: Shape, rule: Rule, source: str | None = None) -> Iterator[str]:
    """Each device keeps its shard along the rule's axis. What another rule gave away is missing."""
    before, axis = shape.room.get(rule.axis), rule.axis
    if before is rule:
        return
    layout = section.layout
    if layout.group.grid.size[axis] > 1 and before is not None:
        shape.valid |= {before}
    old = layout.held(shape)
    shape.room[axis] = rule
    if layout.group.grid.size[axis] > 1:
        found = places(layout.held(shape), old)
        yield from kept(section, on, found, old, f"each device along {axis} keeps its shard", source)


def invalidated(section: Section, on: str, shape: Shape, rules: list[Rule]) -> Iterator[str]:
    """Only what the rules give to a device stays a value."""
    layout = section.layout
    rules = [rule for rule in rules if layout.group.grid.size[rule.axis] > 1]
    if not rules:
        return
    shape.valid |= frozenset(rules)
    held, usable = layout.held(shape), layout.usable(shape)
    found = [
        [place if e in mine else NOTHING for place, e in enumerate(array)]
        for array, mine in zip(held, usable, strict=True)
    ]
    yield from kept(section, on, found, held, "scattered: only the own shard is a value")


def reduced(
    section: Section, on: str, shape: Shape, axes: Axes, mean: bool, scattered: bool, where: str
) -> Iterator[str]:
    """Sum or average by position; then each keeps its shard where gradients are placed S."""
    layout, group = section.layout, section.layout.group
    sets = layout.groups(axes)
    name = section.names.group(axes, sets)
    label = section.names.label(axes)
    if name is not None:
        held = layout.held(shape)
        sizes = {len(members) for members in sets if any(held[x] for x in members)}
        if mean and len(sizes) > 1:
            raise NotShown("process groups differ in size")
        if any(len({len(held[x]) for x in members}) > 1 for members in sets):
            raise NotShown("arrays of different lengths are added")
        section.names.use("add")
        share = f" / {max(sizes)}" if mean and sizes else ""
        yield f'{on} = add({on}, "{name}"){share}  # reduce over {label} by {"mean" if mean else "sum"}{where}'
    shape.alike |= frozenset(axes)
    bare = tuple(axis for axis in axes if axis not in group.gradients_rule)
    for axis in axes:
        if axis in group.gradients_rule:
            yield from cut(section, on, shape, group.gradients_rule[axis])
    if scattered and bare:
        yield from invalidated(section, on, shape, group.scattered(bare))


def gathered(section: Section, on: str, shape: Shape, axes: Axes) -> Iterator[str]:
    """Shards are put together. Of whole arrays, one after the other, the first is what is read."""
    layout, group = section.layout, section.layout.group
    rules = []
    for axis in axes:
        if group.grid.size[axis] == 1:
            shape.room.pop(axis, None)
            continue
        rule = shape.room.get(axis) or next((r for r in shape.valid if r.axis == axis), None)
        if rule is not None:
            rules.append(rule)
        else:
            held = layout.held(shape)
            sets = layout.groups((axis,))
            first = {x: min(members) for members in sets for x in members}
            table = [(first.get(x, x), list(range(len(array)))) for x, array in enumerate(held)]
            yield from exchanged(section, on, on, held, sets, (axis,), table, "gather: whole arrays, the first is read")
    shape.alike |= frozenset(axes)
    if not rules:
        return
    old = layout.held(shape)
    for rule in rules:
        shape.room.pop(rule.axis, None)
    shape.valid = frozenset(rule for rule in shape.valid if rule.axis not in axes)
    over = tuple(dict.fromkeys(rule.axis for rule in rules))
    wanted = layout.held(shape)
    yield from pieces(section, on, on, old, wanted, over, rules, f"gather over {'*'.join(over)}")


def pieces(
    section: Section,
    on: str,
    source: str,
    held: list[Local],
    wanted: list[Local],
    axes: Axes,
    rules: list[Rule],
    why: str,
    otherwise: bool = False,
) -> Iterator[str]:
    """An all-gather: each element from the device that has it; `otherwise` the own value where that one has none."""
    layout = section.layout
    sets = layout.groups(axes)
    table: list[list[tuple[int, int]]] = []
    for x, mine in enumerate(wanted):
        row = []
        for e in mine:
            y = layout.source(x, rules, e)
            if e not in held[y]:
                y = x if otherwise and e in held[x] else NOTHING
            row.append((y, held[y].index(e) if y != NOTHING else NOTHING))
        table.append(row)
    yield from _picked(section, on, source, held, sets, axes, table, why)


def exchanged(
    section: Section,
    on: str,
    source: str,
    held: list[Local],
    sets: list[list[int]],
    axes: Axes,
    table: list[tuple[int, list[int]]],
    why: str,
) -> Iterator[str]:
    """Each device takes these places of one device's array."""
    rows = [[(y, place) for place in row] for y, row in table]
    yield from _picked(section, on, source, held, sets, axes, rows, why)


def _picked(
    section: Section,
    on: str,
    source: str,
    held: list[Local],
    sets: list[list[int]],
    axes: Axes,
    table: list[list[tuple[int, int]]],
    why: str,
) -> Iterator[str]:
    """`table`: per device, the device and place of each value."""
    name = section.names.group(axes, sets)
    if name is None:
        yield from kept(section, on, [[place for _, place in row] for row in table], held, why, source)
        return
    longest = max(len(array) for array in held)
    at = {x: (sorted(members).index(x), members) for members in sets for x in members}
    flat = []
    for x, row in enumerate(table):
        if any(y != NOTHING and y not in at[x][1] for y, _ in row if x in at):
            raise NotShown("values come from outside the process group")
        flat.append([at[y][0] * longest + place if y != NOTHING else NOTHING for y, place in row])
    if any(len(array) != longest for x, array in enumerate(held) if x in at):
        padded = [
            [*range(len(array)), *[NOTHING] * (longest - len(array))] if x in at else [] for x, array in enumerate(held)
        ]
        source = taken(section.names, source, padded)
    section.names.use("gather")
    yield f"{on} = {taken(section.names, f'gather({source}, {chr(34)}{name}{chr(34)})', flat)}  # {why}"


def stored(section: Section, part: Shape) -> tuple[list[str], str]:
    """What `accumulate` does to a fresh gradient before it is added; and what it is called then."""
    layout, group = section.layout, section.layout.group
    lines: list[str] = []
    for axis, rule in group.gradients_rule.items():
        if axis in part.room or axis in part.alike:
            lines += cut(section, "part", part, rule, "part" if lines else "fresh")
    bare = [axis for axis in part.room if axis not in group.gradients_rule]
    if bare:
        old = layout.held(part)
        part.valid |= frozenset(part.room[axis] for axis in bare if group.grid.size[axis] > 1)
        for axis in bare:
            del part.room[axis]
        found = places(layout.held(part), old)
        why = "a shard in a buffer that has room for all"
        lines += kept(section, "part", found, old, why, "part" if lines else "fresh")
    return lines, "part" if lines else "fresh"
