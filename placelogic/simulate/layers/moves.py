"""Collectives on the local arrays of one tensor: along one axis, on every device of the mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placelogic.program.plan import Move
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, inverse
from placelogic.simulate.layers.arrays import Array, added, arranged, joined, piece, zeros
from placelogic.simulate.layers.functions import fitted
from placelogic.simulate.layers.ragged import Ragged

Arrays = list[Array]
"""One per device."""


def forward(arrays: Arrays, move: Move, axis: str, grid: Grid, factor: int, ragged: Ragged) -> Arrays:
    """Raises GroupStop where the arrays are no such pieces."""
    out = list(arrays)
    for members in grid.groups((axis,)):
        found = _forward([arrays[x] for x in members], move, ragged)
        for x, array in zip(members, found):
            out[x] = array
    return _times(out, factor)


def _forward(arrays: Sequence[Array], move: Move, ragged: Ragged) -> list[Array]:
    count, dim = len(arrays), move.dim or ""
    match move.kind:
        case "none":
            return list(arrays)
        case "zero":
            return [zeros(array) for array in arrays]
        case "root":
            return [arrays[0]] * count
        case "sum" | "mean" | "scatter" | "scatter_mean":
            ragged.check(arrays)
            total = _total(arrays, move.kind in ("mean", "scatter_mean"))
            if move.kind in ("sum", "mean"):
                return [Array(a.dims, a.labels, total.data) for a in arrays]
            return [piece(total, dim, count, i) for i in range(count)]
        case "gather":
            return [joined(arrays, dim)] * count
        case "slice" | "pad":
            return [piece(array, dim, count, i) for i, array in enumerate(arrays)]
        case "exchange":
            pieces = [[piece(array, move.into or "", count, i) for array in arrays] for i in range(count)]
            return [joined(mine, dim) for mine in pieces]
    raise AssertionError(move.kind)


def backward(arrays: Arrays, move: Move, axis: str, grid: Grid, factor: int, ragged: Ragged, before: Arrays) -> Arrays:
    """The gradient of what the tensor was `before` the move forward: as that lies, whatever arrives."""
    out = list(arrays)
    for members in grid.groups((axis,)):
        found = _backward([arrays[x] for x in members], move, ragged, [before[x] for x in members])
        for x, array in zip(members, found):
            out[x] = array
    return _times(out, factor)


def _backward(arrays: Sequence[Array], move: Move, ragged: Ragged, before: Sequence[Array]) -> list[Array]:
    dim = move.dim or ""
    match move.kind:
        case "none":
            if any(a.labels != b.labels for a, b in zip(arrays, before)):
                raise GroupStop("a gradient does not lie as its tensor does")
            return list(arrays)
        case "zero":
            return [zeros(array) for array in before]
        case "root":
            return [arrays[0]] * len(arrays)
        case "sum" | "mean" | "scatter" | "scatter_mean":
            ragged.check(arrays)
            total = _total(arrays, move.kind in ("mean", "scatter_mean"))
            kept = [Array(a.dims, a.labels, total.data) for a in arrays]
            return [_only(array, like) for array, like in zip(kept, before)]
        case "slice" | "pad":
            if move.kind == "slice" and len(arrays) > 1 and arrays[0].along(dim) == before[0].along(dim):
                raise GroupStop("a gradient that is a piece already is cut once more")
            return [fitted(array, like) for array, like in zip(arrays, before)]
        case "gather":
            together = joined(arrays, dim)
            return [_only(together, like) for like in before]
        case "exchange":
            into = move.into or ""
            together = joined(arrays, dim)
            return [arranged(arranged(together, into, like.along(into)), dim, like.along(dim)) for like in before]
    raise AssertionError(move.kind)


def _only(array: Array, like: Array) -> Array:
    """The places of `like` out of an array that has them all. Raises GroupStop."""
    for dim, labels in zip(like.dims, like.labels):
        if set(labels) - set(array.along(dim)):
            raise GroupStop("a gradient lacks pieces of its tensor")
        array = arranged(array, dim, labels)
    return array


def _total(arrays: Sequence[Array], mean: bool) -> Array:
    total = added(arrays)
    share = inverse(len(arrays)) if mean else 1
    return Array(total.dims, total.labels, [v * share % PRIME for v in total.data])


def _times(arrays: Arrays, factor: int) -> Arrays:
    if factor == 1:
        return arrays
    return [array.map(lambda v: v * factor) for array in arrays]


Scaled = Callable[[Move], int]
"""The factor of a move, as a residue."""
