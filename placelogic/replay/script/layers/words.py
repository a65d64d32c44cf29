"""What a boundary does, in words that a script's `move` carries out one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from placelogic.program.expr import Expr
from placelogic.replay.script.lines import NotShown
from placelogic.run.grid import Grid
from placelogic.run.layers.crossing import MEANS, Step
from placelogic.run.layers.lay import Labels, Lay, part


def words(
    lays: Sequence[Lay], steps: Sequence[Step], axis: str, grid: Grid, number: Callable[[Expr], float]
) -> list[str]:
    """`lays`: how the tensor lies before. Raises NotShown."""
    found: list[str] = []
    for step in steps:
        found += _words(lays, step, axis, grid, number)
        lays = step.lays
    return found


def _words(lays: Sequence[Lay], step: Step, axis: str, grid: Grid, number: Callable[[Expr], float]) -> Iterator[str]:
    dims = lays[0].dims
    match step.kind:
        case "fit":
            yield from _arranged(lays, step.lays, axis, grid)
        case "zero":
            yield "times 0"
        case "times":
            assert step.factor is not None
            if (factor := number(step.factor)) != 1:
                yield f"times {factor:.17g}"
        case "root":
            yield "first"
        case "reduce":
            yield "sum"
            yield "root"
        case "gather" | "exchange":
            if any(lays[x].shape != lays[members[0]].shape for members in grid.groups((axis,)) for x in members):
                raise NotShown("pieces of different sizes are put together")
            yield f"gather {dims.index(step.dim)}"
            if step.into:
                yield f"cut {dims.index(step.into)}"
        case _:
            yield "sum"
            if step.kind in MEANS:
                yield f"times {1 / grid.size[axis]:.17g}"
            if step.kind.startswith("scatter"):
                yield f"cut {dims.index(step.dim)}"


def _arranged(have: Sequence[Lay], like: Sequence[Lay], axis: str, grid: Grid) -> Iterator[str]:
    """The places that the tensor had: others are left out, and zeros stand for what is missing."""
    at, count = grid.coordinate[axis], grid.size[axis]
    for number in range(len(like[0].dims)):
        pairs = [(a.labels[number], b.labels[number], at[x]) for x, (a, b) in enumerate(zip(have, like))]
        if all(a == b for a, b, _ in pairs):
            continue
        if all(_own(a, count, mine) == b for a, b, mine in pairs):
            yield f"cut {number}"
        elif all(_own(b, count, mine) == a for a, b, mine in pairs):
            yield f"pad {number}"
        else:
            raise NotShown("a gradient comes back in pieces of another order")


def _own(labels: Labels, count: int, mine: int) -> Labels | None:
    return part(labels, count, mine) if len(labels) % count == 0 else None
