"""Parameters in a script: what is computed with, gathered, broadcast, refreshed and fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from placelogic.program.program import Axes
from placelogic.replay.script import arrays
from placelogic.replay.script.layout import Layout, places, same
from placelogic.replay.script.lines import NotShown, by_device
from placelogic.simulate.group import Local

if TYPE_CHECKING:
    from placelogic.replay.script.section import Section


def held(section: Section) -> str:
    return f'held["{section.name}"]'


def target(section: Section) -> tuple[str, list[Local]]:
    """What an update writes, and its elements by device."""
    group, layout = section.layout.group, section.layout
    if group.weights.master:
        return f'held["{section.name}.master"]', layout.optimizer
    if group.hosted:
        return f'held["{section.name}.host"]', layout.params
    return held(section), layout.params


def computed(section: Section, scaled: Mapping[str | None, Fraction]) -> Iterator[str]:
    """The fresh gradient of a micro-batch. `scaled`: by what the part of a loss term is multiplied."""
    layout, group = section.layout, section.layout.group
    values = held(section)
    # What is routed is computed with the owner's parameters: tokens would travel there.
    rules = [
        rule for axis, rule in group.params_rule.items() if axis not in group.own_room and group.grid.size[axis] > 1
    ]
    if rules:
        over = tuple(dict.fromkeys(rule.axis for rule in rules))
        why = "the parameters of the experts" if group.routed else f"gathered over {'*'.join(over)} for use"
        yield from arrays.pieces(section, "whole", values, layout.params, layout.computed, over, rules, why)
        values = "whole"
    elements = by_device([list(row) for row in layout.computed])
    table = section.items.table(group, scaled)
    yield f'fresh = gradient({values}, {elements}, WORK["{table}"][rank][turn])'
    if group.routed:
        sets = layout.groups(group.routed)
        there = section.names.group(group.routed, sets)
        if there is not None:
            section.names.use("add")
            yield f'fresh = add(fresh, "{there}")  # tokens of all devices come to the experts'
            found = places(layout.home, layout.computed)
            yield from arrays.kept(section, "fresh", found, layout.computed, "at the owner of each expert")


def gathered(section: Section, axes: Axes) -> Iterator[str]:
    """Each element of the compute copy from whoever updates it along these axes."""
    layout, group = section.layout, section.layout.group
    rules = []
    for axis in axes:
        if group.grid.size[axis] == 1 or axis in group.params_rule:
            continue
        rule = group.optimizer_rule.get(axis) or group.gradients_rule.get(axis) or section.restricted.get(axis)
        if rule is not None:
            rules.append(rule)
    if rules:
        over = tuple(dict.fromkeys(rule.axis for rule in rules))
        on, there = held(section), layout.params
        why = f"gather params over {section.names.label(over)}"
        yield from arrays.pieces(section, on, on, there, there, over, rules, why, otherwise=True)


def broadcast(section: Section, axes: Axes, root: int, where: str) -> Iterator[str]:
    yield from broadcasted(section.names, section.layout, held(section), axes, root, where)


def broadcasted(names, layout: Layout, on: str, axes: Axes, root: int, where: str) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """Everyone takes the root's array, position by position."""
    sets = layout.groups(axes)
    label = names.label(axes)
    if any(root >= len(members) for members in sets):
        raise NotShown(f"there is no device {root} along {label} to broadcast from")
    name = names.group(axes, sets)
    if name is None:
        return
    if any(len({len(layout.params[x]) for x in members}) > 1 for members in sets):
        raise NotShown("a broadcast goes to arrays of another length")
    source = {x: members[root] for members in sets for x in members}
    roots = by_device([source.get(x, x) for x in range(layout.group.grid.count)])
    names.use("broadcast")
    yield f'{on} = broadcast({on}, "{name}", {roots})  # broadcast over {label} from {root}{where}'


def refreshed(section: Section) -> Iterator[str]:
    """Compute copy <- master copy, where the master lies."""
    group, layout, name = section.layout.group, section.layout, section.name
    if not group.weights.master:
        return
    on = f'held["{name}.host"]' if group.hosted else held(section)
    yield from _overwritten(section, on, layout.params, f'held["{name}.master"]', layout.optimizer, "refresh")


def fetched(section: Section) -> Iterator[str]:
    """Device copy <- host copy, of what this device keeps on the host."""
    group, layout, name = section.layout.group, section.layout, section.name
    if not group.hosted:
        return
    kept = [
        tuple(e for e in params if e in moments)
        for params, moments in zip(layout.params, layout.optimizer, strict=True)
    ]
    on, source = held(section), f'held["{name}.host"]'
    yield from _overwritten(section, on, layout.params, source, layout.params, "fetch params", kept)


def _overwritten(
    section: Section,
    on: str,
    there: list[Local],
    source: str,
    source_there: list[Local],
    why: str,
    only: list[Local] | None = None,
) -> Iterator[str]:
    both = [
        tuple(e for e in mine if e in other)
        for mine, other in zip(there, only if only is not None else source_there, strict=True)
    ]
    at, own = places(both, there), places(both, source_there)
    if not any(at):
        yield f"# {why}: nobody has anything to take over"
    elif same(at, there) and same(own, source_there):
        yield f"{on} = {source}.clone()  # {why}"
    else:
        yield f"{on}[{by_device(at)}] = {source}[{by_device(own)}]  # {why}"
