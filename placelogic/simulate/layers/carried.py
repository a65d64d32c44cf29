"""What crosses between devices, on the exact numbers of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placelogic.program.expr import Expr
from placelogic.run.grid import Grid
from placelogic.run.layers.crossing import MEANS, Step
from placelogic.run.layers.lay import Lay, piece
from placelogic.simulate.arithmetic import PRIME, inverse
from placelogic.simulate.layers.tape import Array, placed, taken


def carried(
    arrays: Sequence[Array], lays: Sequence[Lay], steps: Sequence[Step], axis: str, grid: Grid,
    number: Callable[[Expr], int],
) -> list[Array]:  # fmt: skip
    """After all of the steps along the axis, by device."""
    for step in steps:
        arrays, lays = _one(arrays, lays, step, axis, grid, number), step.lays
    return list(arrays)


def _one(
    arrays: Sequence[Array], lays: Sequence[Lay], step: Step, axis: str, grid: Grid, number: Callable[[Expr], int]
) -> list[Array]:
    if step.kind == "fit":
        return [taken(array, placed(have, want)) for array, have, want in zip(arrays, lays, step.lays)]
    if step.kind in ("zero", "times"):
        factor = 0 if step.factor is None else number(step.factor)
        return [[value * factor % PRIME for value in array] for array in arrays]
    out = list(arrays)
    for members in grid.groups((axis,)):
        first = lays[members[0]]
        if step.kind in ("gather", "exchange"):
            for i, x in enumerate(members):
                out[x] = _joined([_piece(arrays[y], lays[y], step.into, len(members), i) for y in members], step.dim)
        elif step.kind == "root":
            for x in members:
                out[x] = arrays[members[0]]
        else:
            share = inverse(len(members)) if step.kind in MEANS else 1
            total = [sum(column) * share % PRIME for column in zip(*(arrays[x] for x in members))]
            for x in members:
                if step.kind == "reduce" and x != members[0]:
                    total = [0] * len(total)
                out[x] = taken(total, placed(first, step.lays[x])) if step.kind.startswith("scatter") else total
    return out


def _piece(array: Array, lay: Lay, into: str, count: int, mine: int) -> tuple[Array, Lay]:
    if not into:
        return array, lay
    kept = piece(lay, into, count, mine)
    return taken(array, placed(lay, kept)), kept


def _joined(pieces: Sequence[tuple[Array, Lay]], dim: str) -> Array:
    """By position: one after the other along a dimension."""
    axis = pieces[0][1].dims.index(dim)
    runs = []
    for array, lay in pieces:
        rows = 1
        for length in lay.shape[:axis]:
            rows *= length
        size = len(array) // rows
        runs.append([array[i * size : (i + 1) * size] for i in range(rows)])
    return [value for row in zip(*runs) for run in row for value in run]
