"""How the weights of a script start, on one device and on many: `init` lines draw different numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placelogic.replay.script.layout import NOTHING, Layout, places, same
from placelogic.replay.script.lines import Names, NotShown, by_device
from placelogic.replay.script.moves import broadcasted
from placelogic.replay.script.section import Section

VALUES = (0.5, -0.3, 0.2, 0.7, -0.6, 0.4, -0.1, 0.8, 0.3, -0.5, 0.6, -0.2)
"""Of elements, where all devices start alike."""


def _drawn(layout: Layout, line: int, key: tuple[int, ...], element: int) -> float:
    """What an `init` line adds."""
    device = sum((place + 1) * coordinate for place, coordinate in enumerate(key))
    return 0.1 * (line + 1) + (0.3 + 0.05 * element) * device


def starts(sections: Sequence[Section]) -> str:
    """What the single device starts from."""
    return "{" + ", ".join(f'"{section.name}": {_single(section.layout)}' for section in sections) + "}"


def _single(layout: Layout) -> list[float]:
    """Each element's owner along cut axes, coordinate 0 along others, or what was broadcast along them."""
    group, grid = layout.group, layout.group.grid
    stage = next(iter(group.members.values()))
    base = stage * grid.stride[group.uses_axis] if group.uses_axis is not None else 0
    found = []
    for e in range(layout.count):
        x = layout.source(base, list(group.params_rule.values()), e)
        at = {axis: grid.coordinate[axis][x] for axis in grid.axes}
        value = VALUES[e]
        for line, op in reversed(list(enumerate(group.weights.init))):
            if op.kind == "broadcast":
                members = group.groups(op.axes)[0]
                root = members[min(op.root, len(members) - 1)]
                at.update({a: grid.coordinate[a][root] for a in op.axes if a not in group.params_rule})
            else:
                value += _drawn(layout, line, tuple(at[a] for a in op.axes), e)
        found.append(round(value, 4))
    return found


def started(sections: Sequence[Section], names: Names) -> tuple[str | None, list[str]]:
    """What devices start with, where that is said in a few words; else a function that makes it."""
    lines = [line for section in sections for line in _started(section, names)]
    if len(lines) < 3 and all(" = one[" in line for line in lines):
        return "{" + ", ".join(line[len("held[") :].replace("] = ", ": ", 1) for line in lines) + "}", []
    return None, ["def start(rank, one):", "    held = {}", *(f"    {line}" for line in lines), "    return held"]


def _started(section: Section, names: Names) -> Iterator[str]:
    layout, group, name = section.layout, section.layout.group, section.name
    on = f'held["{name}"]'
    rows = [[VALUES[e] for e in local] for local in layout.params]
    lines = list(enumerate(group.weights.init))
    while lines and lines[0][1].kind != "broadcast":
        rows = _added(layout, rows, *lines.pop(0))
    if not group.weights.init:
        whole = all(local == tuple(range(layout.count)) for local in layout.params)
        yield f'{on} = one["{name}"]' + (
            ".clone()" if whole else f"[{by_device([list(local) for local in layout.params])}]"
        )
    else:
        yield f"{on} = torch.tensor({by_device(_rounded(rows))})  # drawn by each device"
    for line, op in lines:
        if op.kind == "broadcast":
            yield from broadcasted(names, layout, on, op.axes, op.root, "")
        else:
            more = _added(layout, [[0.0] * len(local) for local in layout.params], line, op)
            yield f"{on} = {on} + torch.tensor({by_device(_rounded(more))})  # drawn by each device"
    if group.hosted:
        yield f'held["{name}.host"] = {on}.clone()'
    if group.weights.master:
        found = places(layout.optimizer, layout.params)
        if same(found, layout.params):
            yield f'held["{name}.master"] = {on}.clone()'
        elif not any(NOTHING in row for row in found):
            yield f'held["{name}.master"] = {on}[{by_device(found)}]'
        elif not group.weights.init:
            yield f'held["{name}.master"] = one["{name}"][{by_device([list(local) for local in layout.optimizer])}]'
        else:
            raise NotShown("a master copy starts from parameters that are elsewhere")


def _added(layout: Layout, rows: list[list[float]], line: int, op) -> list[list[float]]:  # type: ignore[no-untyped-def]
    at = layout.group.grid.coordinate
    return [
        [value + _drawn(layout, line, tuple(at[a][x] for a in op.axes), e) for value, e in zip(row, local, strict=True)]
        for x, (row, local) in enumerate(zip(rows, layout.params, strict=True))
    ]


def _rounded(rows: list[list[float]]) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in rows]
