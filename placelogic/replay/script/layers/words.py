"""What a boundary does, in words that a script's `move` carries out one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placelogic.program.expr import Expr
from placelogic.program.plan import Move
from placelogic.replay.blocks.crossing import MEANS, SUMS, after, check_back
from placelogic.replay.blocks.lay import Lay, joined, same_shapes
from placelogic.replay.script.lines import NotShown
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop
from placelogic.simulate.layers.arrays import Labels
from placelogic.simulate.layers.ragged import Ragged

Number = Callable[[Expr], float]


def crossed(
    lays: Sequence[Lay], there: Move, back: Move, axis: str, grid: Grid, ragged: Ragged, number: Number
) -> tuple[tuple[Lay, ...], list[str], list[str]]:
    """How the tensor lies then, and what is done to it forward and to its gradient. Raises NotShown, GroupStop."""
    out = list(lays)
    groups = grid.groups((axis,))
    for members in groups:
        came = [lays[x] for x in members]
        if there.kind in SUMS:
            ragged.check(came)
        if there.kind in ("gather", "exchange"):
            _alike(came)
        for x, lay in zip(members, after(came, there)):
            out[x] = lay
    for members in groups:
        came, before = [out[x] for x in members], [lays[x] for x in members]
        if back.kind in SUMS:
            ragged.check(came)
        check_back(came, back, before)
        if back.kind in ("gather", "exchange"):
            _alike(came)
        if back.kind == "root" and any(lay != came[0] for lay in before):
            raise NotShown("one device's gradient goes to devices with other pieces")
    alone = grid.size[axis] == 1
    forward = [] if alone else _forward(there, lays[0], grid.size[axis])
    backward = [] if alone else _backward(back, out, lays, axis, grid)
    return tuple(out), [*forward, *_factor(there, number)], [*backward, *_factor(back, number)]


def _alike(lays: Sequence[Lay]) -> None:
    try:
        same_shapes(lays)
    except GroupStop:
        raise NotShown("pieces of different sizes are put together") from None


def _factor(move: Move, number: Number) -> list[str]:
    if move.kind == "zero":
        return ["times 0"]
    factor = 1.0 if move.scale is None else number(move.scale)
    return [] if factor == 1 else [f"times {factor:.17g}"]


def _summed(move: Move, count: int) -> list[str]:
    return ["sum", f"times {1 / count:.17g}"] if move.kind in MEANS else ["sum"]


def _forward(move: Move, lay: Lay, count: int) -> list[str]:
    at = lay.dims.index(move.dim) if move.dim in lay.dims else -1
    match move.kind:
        case "none" | "zero":
            return []
        case "root":
            return ["first"]
        case "sum" | "mean":
            return _summed(move, count)
        case "scatter" | "scatter_mean":
            return [*_summed(move, count), f"cut {at}"]
        case "gather":
            return [f"gather {at}"]
        case "slice" | "pad":
            return [f"cut {at}"]
        case "exchange":
            return [f"gather {at}", f"cut {lay.dims.index(move.into or '')}"]
    raise AssertionError(move.kind)


def _backward(move: Move, came: Sequence[Lay], like: Sequence[Lay], axis: str, grid: Grid) -> list[str]:
    if move.kind == "none":
        return []
    if move.kind == "root":
        return ["first"]
    words, have = [], list(came)
    if move.kind in SUMS:
        words = _summed(move, grid.size[axis])
    elif move.kind in ("gather", "exchange"):
        words = [f"gather {came[0].dims.index(move.dim or '')}"]
        for members in grid.groups((axis,)):
            together = joined([came[x] for x in members], move.dim or "")
            for x in members:
                have[x] = together
    return [*words, *_arranged(have, like, axis, grid)]


def _arranged(have: Sequence[Lay], like: Sequence[Lay], axis: str, grid: Grid) -> list[str]:
    """The places that the tensor had: others are left out, and zeros stand for what is missing."""
    words, at, count = [], grid.coordinate[axis], grid.size[axis]
    for number in range(len(like[0].dims)):
        pairs = [(a.labels[number], b.labels[number], at[x]) for x, (a, b) in enumerate(zip(have, like))]
        if all(a == b for a, b, _ in pairs):
            continue
        if all(_own(a, count, mine) == b for a, b, mine in pairs):
            words.append(f"cut {number}")
        elif all(_own(b, count, mine) == a for a, b, mine in pairs):
            words.append(f"pad {number}")
        else:
            raise NotShown("a gradient comes back in pieces of another order")
    return words


def _own(labels: Labels, count: int, mine: int) -> Labels | None:
    size = len(labels) // count
    return labels[mine * size : (mine + 1) * size] if size * count == len(labels) else None
