"""How a tensor lies after a move of a plan, forward and backward. Without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.program.plan import Move
from placelogic.replay.blocks.lay import Lay, has_all, joined, piece, same_shapes
from placelogic.run.stop import GroupStop

SUMS = ("sum", "mean", "scatter", "scatter_mean")
MEANS = ("mean", "scatter_mean")


def after(lays: Sequence[Lay], move: Move) -> list[Lay]:
    """How the devices of one group have the tensor afterwards. Raises GroupStop."""
    count, dim = len(lays), move.dim or ""
    match move.kind:
        case "none" | "zero":
            return list(lays)
        case "root":
            return [lays[0]] * count
        case "sum" | "mean" | "scatter" | "scatter_mean":
            same_shapes(lays)
            if move.kind in ("sum", "mean"):
                return list(lays)
            return [piece(lays[0], dim, count, i) for i in range(count)]
        case "gather":
            return [joined(lays, dim)] * count
        case "slice" | "pad":
            return [piece(lay, dim, count, i) for i, lay in enumerate(lays)]
        case "exchange":
            return [joined([piece(lay, move.into or "", count, i) for lay in lays], dim) for i in range(count)]
    raise AssertionError(move.kind)


def check_back(came: Sequence[Lay], move: Move, before: Sequence[Lay]) -> None:
    """Whether this can become the gradient of what the tensor was before. Raises GroupStop."""
    match move.kind:
        case "none":
            if any(a.shape != b.shape for a, b in zip(came, before)):
                raise GroupStop("a gradient has another size than its tensor")
        case "gather":
            together = joined(came, move.dim or "")
            for like in before:
                has_all(together, like)
        case "exchange":
            joined(came, move.dim or "")
        case kind if kind in SUMS:
            same_shapes(came)
            for lay, like in zip(came, before):
                has_all(lay, like)
