"""How the weights of a script start, on one device and on many: `init` lines draw different numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placelogic.program.weights import InitOp
from placelogic.replay.script.lines import NotShown, by_device
from placelogic.replay.script.section import Section
from placelogic.replay.script.variables import at, same
from placelogic.run.group import NOWHERE, Group
from placelogic.run.state import broadcasted

VALUES = (0.5, -0.3, 0.2, 0.7, -0.6, 0.4, -0.1, 0.8, 0.3, -0.5, 0.6, -0.2)
"""Of elements, where all devices start alike."""


def _drawn(line: int, key: tuple[int, ...], element: int) -> float:
    """What an `init` line adds."""
    device = sum((place + 1) * coordinate for place, coordinate in enumerate(key))
    return 0.1 * (line + 1) + (0.3 + 0.05 * element) * device


def starts(sections: Sequence[Section]) -> str:
    """What the single device starts from."""
    return "{" + ", ".join(f'"{section.name}": {_single(section.state.group)}' for section in sections) + "}"


def _single(group: Group) -> list[float]:
    found = []
    for e, (_, *draws) in enumerate(group.draws()):
        value = VALUES[e]
        for line, key in draws:
            value += _drawn(line, key, e)
        found.append(round(value, 4))
    return found


def started(sections: Sequence[Section]) -> tuple[str | None, list[str]]:
    """What devices start with, where that is said in a few words; else a function that makes it."""
    lines = [line for section in sections for line in _started(section)]
    if len(lines) < 3 and all(" = one[" in line for line in lines):
        return "{" + ", ".join(line[len("held[") :].replace("] = ", ": ", 1) for line in lines) + "}", []
    return None, ["def start(rank, one):", "    held = {}", *(f"    {line}" for line in lines), "    return held"]


def _started(section: Section) -> Iterator[str]:
    group, name, out = section.state.group, section.name, section.on.out
    on, local = f'held["{name}"]', group.params_local
    rows = [[VALUES[e] for e in mine] for mine in local]
    lines = list(enumerate(group.weights.init))
    while lines and lines[0][1].kind != "broadcast":
        rows = _added(group, rows, *lines.pop(0))
    if not group.weights.init:
        whole = all(mine == tuple(range(group.count)) for mine in local)
        yield f'{on} = one["{name}"]' + (".clone()" if whole else f"[{at(local)}]")
    else:
        yield f"{on} = torch.tensor({by_device(_rounded(rows))})  # drawn by each device"
    for line, op in lines:
        if op.kind == "broadcast":
            start = len(out)
            broadcasted(group, section.on, section.state.theta, op.axes, op.root)
            yield from out[start:]
            del out[start:]
        else:
            more = _added(group, [[0.0] * len(mine) for mine in local], line, op)
            yield f"{on} = {on} + torch.tensor({by_device(_rounded(more))})  # drawn by each device"
    if group.hosted:
        yield f'held["{name}.host"] = {on}.clone()'
    if group.weights.master:
        found = group.places(group.optimizer_local, local)
        if same(found, local):
            yield f'held["{name}.master"] = {on}.clone()'
        elif not any(NOWHERE in row for row in found):
            yield f'held["{name}.master"] = {on}[{at(found)}]'
        elif not group.weights.init:
            yield f'held["{name}.master"] = one["{name}"][{at(group.optimizer_local)}]'
        else:
            raise NotShown("a master copy starts from parameters that are elsewhere")


def _added(group: Group, rows: list[list[float]], line: int, op: InitOp) -> list[list[float]]:
    where = group.grid.coordinate
    return [
        [value + _drawn(line, tuple(where[a][x] for a in op.axes), e) for value, e in zip(row, local)]
        for x, (row, local) in enumerate(zip(rows, group.params_local))
    ]


def _rounded(rows: list[list[float]]) -> list[list[float]]:
    return [[round(value, 4) for value in row] for row in rows]
