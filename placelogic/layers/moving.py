"""What moves do to values and gradients."""

from __future__ import annotations

from fractions import Fraction

from msgspec.structs import replace

from placelogic.layers.scale import ONE, Scale, of_axis, scale_of
from placelogic.layers.values import (
    Disorder,
    Misfit,
    Piece,
    Shape,
    Term,
    Value,
    each,
    lies,
    once,
    shared,
    tied,
    unsummed,
    whole,
    without,
)
from placelogic.program.plan import Move

ITEMS = ("batch", "tokens")
"""Dimensions whose places nothing mixes: where each lies does not matter, as long as it comes back."""


def after(shape: Shape, move: Move, axis: str) -> Shape:
    """How a tensor lies after a move that it fits."""
    match move.kind:
        case "gather":
            return without(shape, axis)
        case "slice" | "scatter" | "scatter_mean" | "pad":
            return {**shape, axis: move.dim or ""}
        case "exchange":
            return {**without(shape, axis), axis: move.into or ""}
        case _:
            return shape


def alone(value: Value, axis: str, move: Move | None = None) -> Value:
    """What is left where the axis has one device, on which nothing can fail to fit: only factors."""

    def change(term: Term) -> Term:
        return replace(
            term,
            partial=term.partial - {axis},
            tied=term.tied - {axis},
            lost=term.lost - {axis},
            folded=term.folded - {axis},
            aligned=frozenset(),
        )

    plain = each(value, change, without(value.shape, axis))
    return plain if move is None else _stated(plain, move)


def moved_forward(value: Value, move: Move, axis: str) -> Value:
    """A tensor after a move. Raises Misfit where its local arrays are no such thing."""
    shape, dim = dict(value.shape), value.shape.get(axis)
    count = of_axis(axis)
    match move.kind:
        case "none":
            change = _same
        case "zero":
            change = _nothing
        case "sum" | "mean" | "scatter" | "scatter_mean":
            if dim is not None:
                raise Misfit(axis, "different pieces", dim=dim)
            mean = move.kind in ("mean", "scatter_mean")
            change = _summed(axis, count, mean)
            if move.kind.startswith("scatter"):
                shape[axis] = move.dim or ""
        case "gather":
            if dim != move.dim:
                raise Misfit(axis, "moved", does="puts together pieces of", dim=move.dim, gets=lies(dim))
            if cutting(shape, dim or "")[-1] != axis:
                raise Disorder(
                    axis, f"its pieces of {dim} over {axis} are put together while other axes still cut them"
                )
            del shape[axis]
            change = _same
        case "slice" | "pad":
            if dim is not None:
                raise Misfit(axis, "moved", does="cuts", dim=move.dim, gets=lies(dim))
            shape[axis] = move.dim or ""
            change = unsummed(axis)
        case "exchange":
            if dim != move.dim:
                raise Misfit(axis, "moved", does="exchanges pieces of", dim=move.dim, gets=lies(dim))
            if dim not in ITEMS and cutting(shape, dim or "")[-1] != axis:
                raise Disorder(axis, f"its pieces of {dim} over {axis} are exchanged while other axes still cut them")
            del shape[axis]
            shape[axis] = move.into or ""  # inside of what is cut already
            change = _same
        case "root":
            if dim is not None:
                raise Misfit(axis, "one piece to all", dim=dim)
            change = unsummed(axis)
        case _:
            raise AssertionError(move.kind)
    return _stated(each(value, change, shape), move)


def moved_backward(value: Value, move: Move, axis: str, before: Shape) -> Value:
    """A gradient after a move. `before`: the shape that the tensor has upstream, which the result has too."""
    shape = dict(before)
    dim = value.shape.get(axis)
    if dim is not None and move.kind in ("sum", "mean") and dim == before.get(axis):
        return _stated(each(value, _folded(axis, of_axis(axis), move.kind == "mean"), shape), move)
    if dim is not None and move.kind in ("sum", "mean", "scatter", "scatter_mean", "slice", "reduce"):
        return _stated(each(value, _lose(axis), shape), move)
    match move.kind:
        case "none":
            change = _same if dim == before.get(axis) else _lose(axis)
        case "zero":
            change = _nothing
        case "sum" | "mean" | "scatter" | "scatter_mean":
            change = _summed(axis, of_axis(axis), move.kind in ("mean", "scatter_mean"))
        case "slice":
            change = _own_piece(axis, move.dim or "", value.shape)
        case "gather" | "exchange":
            change = _unfolded(axis, _same) if dim == move.dim else _lose(axis)
        case "pad":
            piece = (axis, move.dim or "", cutting(before, move.dim or ""))
            change = _unfolded(axis, _padded(piece)) if dim == move.dim else _lose(axis)
        case "reduce":
            change = _at_root(axis, of_axis(axis))
    return _stated(each(value, change, shape), move)


def _stated(value: Value, move: Move) -> Value:
    scale = scale_of(move.scale)
    if scale.is_one and not move.origin.stated:
        return value
    origins = (move.origin,) if move.origin.stated else ()
    return each(value, lambda t: replace(t, scale=t.scale * scale, through=once(t.through, origins)))


def _same(term: Term) -> Term:
    return term


def _nothing(term: Term) -> Term:
    """Zeros, the same everywhere."""
    return Term(Scale(Fraction(0)), through=term.through)


def _summed(axis: str, count: Scale, mean: bool):  # type: ignore[no-untyped-def]
    def change(term: Term) -> Term:
        if axis in term.partial:
            divided = count.inverse() if mean else ONE
            return replace(whole(term, axis), scale=term.scale * divided)
        return term if mean else replace(term, scale=term.scale * count, counted=term.counted | {axis})

    return change


def _at_root(axis: str, count: Scale):  # type: ignore[no-untyped-def]
    """Added up on one device, with zeros on the others: shares of the sum."""

    def change(term: Term) -> Term:
        if axis not in term.partial:
            term = replace(term, scale=term.scale * count, counted=term.counted | {axis})
        return replace(whole(term, axis), partial=term.partial | {axis})

    return change


def _folded(axis: str, count: Scale, mean: bool):  # type: ignore[no-untyped-def]
    """Pieces added up place by place."""

    def change(term: Term) -> Term:
        if axis in term.folded:  # all have the same already
            return term if mean else replace(term, scale=term.scale * count, counted=term.counted | {axis})
        scale = term.scale * count.inverse() if mean else term.scale
        return replace(term, scale=scale, folded=term.folded | {axis}, summed_in_place=term.summed_in_place | {axis})

    return change


def _unfolded(axis: str, otherwise):  # type: ignore[no-untyped-def]
    return lambda term: _lose(axis)(term) if axis in term.folded else otherwise(term)


def _own_piece(axis: str, dim: str, shape: Shape):  # type: ignore[no-untyped-def]
    """Cut without adding up. Where a device's share is nothing outside of the piece it keeps, that is all of it."""

    def change(term: Term) -> Term:
        if axis in term.partial and (axis, dim, cutting(shape, dim)) in term.aligned:
            return whole(term, axis)
        return tied(axis)(term)

    return change


def _padded(piece: Piece):  # type: ignore[no-untyped-def]
    """A piece, and zeros in the place of those of others."""
    return lambda term: replace(shared(piece[0])(term), aligned=term.aligned | {piece})


def cutting(shape: Shape, dim: str) -> tuple[str, ...]:
    """The axes that cut a dimension, from the outside."""
    return tuple(axis for axis, cut in shape.items() if cut == dim)


def _lose(axis: str):  # type: ignore[no-untyped-def]
    return lambda term: replace(term, lost=term.lost | {axis})
