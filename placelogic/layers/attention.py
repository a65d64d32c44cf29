"""Attention along the axes that cut queries, keys and values: what it needs of them, and what comes back to each.

Nothing of a sample meets another sample, and nothing of a head another head: a device that has whole keys and values
uses those of its own samples and heads. Of the places of a sequence every key meets every query."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from placelogic.layers.values import Disorder, Misfit, Piece, Shape, Value, aligned, each, lies, share
from placelogic.program import block as bl
from placelogic.program.block import Block


def check(block: Block, op: bl.Attention, ins: Sequence[Value]) -> None:
    """Raises Misfit, or Disorder where several axes cut queries and keys in another order."""
    query, key, value = (tensor.shape for tensor in ins)
    mixing = (op.sequence, op.heads, op.kv_heads, block.tensors[op.key][-1])
    for axis in dict.fromkeys((*query, *key, *value)):
        q, k, v = query.get(axis), key.get(axis), value.get(axis)
        if k != v and not (q is None and k is None and axis in _parts(block, op, value)):
            raise Misfit(axis, "keys and values", 2, one=lies(k), other=lies(v))
        by_heads = q == op.heads and k in (op.kv_heads, None)
        by_place = q == op.sequence and k is None
        apart = q not in mixing and k in (q, None)
        if by_heads or by_place or apart:
            continue
        if k == op.sequence:
            raise Misfit(axis, "pieces of the sequence", 1, dim=k)
        if q == k == mixing[-1]:
            raise Misfit(axis, "pieces", 1, does="adds up over", dim=k)
        raise Misfit(axis, "queries and keys", 1, one=lies(q), other=lies(k))
    for dim in dict.fromkeys(key.values()):
        _own_places(query, op.heads if dim == op.kv_heads else dim, key, dim)


def made(block: Block, op: bl.Attention, ins: Sequence[Value]) -> Shape:
    """How the result lies: as the queries, and cut inside of each head where the values are."""
    return {**ins[0].shape, **_parts(block, op, ins[2].shape)}


def _parts(block: Block, op: bl.Attention, value: Shape) -> Shape:
    """Where values are cut inside of each head: that needs nothing of the others, it is the result that is cut so."""
    inside = block.tensors[op.value][-1]
    return {axis: dim for axis, dim in value.items() if dim == inside}


def part_of_scores(block: Block, op: bl.Attention, ins: Sequence[Value], back: Value) -> Value:
    """What comes back to the scores: they are felt in every place of the values."""
    for axis in _parts(block, op, ins[2].shape):
        back = share(back, axis, ins[0].shape)
    return back


def _own_places(query: Shape, dim: str, key: Shape, same: str) -> None:
    """The places of a device's queries are among those of its keys: axes that cut only queries cut inside of
    those that cut keys too."""
    outer = [axis for axis, cut in key.items() if cut == same]
    axes = [axis for axis, cut in query.items() if cut == dim]
    if axes[: len(outer)] != outer:
        raise Disorder(outer[0], f"pieces of {dim} over {' and '.join(axes)} meet pieces over {' and '.join(outer)}")


def of_key_heads(op: bl.Attention, back: Value) -> Value:
    """What is nothing outside of some query heads is nothing outside of their key heads."""

    def named(piece: Piece) -> Piece:
        return (piece[0], op.kv_heads, piece[2]) if piece[1] == op.heads else piece

    return each(back, lambda term: replace(term, aligned=frozenset(map(named, term.aligned))))


def part_of_keys(op: bl.Attention, query: Shape, back: Value, shape: Shape) -> Value:
    """What comes back to keys, or values, that lie as `shape`. Along an axis that cuts queries alone it is about
    these queries: of whole keys it is nothing but the piece of their samples or heads."""
    outer: dict[str, tuple[str, ...]] = {}
    for axis, dim in query.items():
        around = outer.get(dim, ())
        outer[dim] = (*around, axis)
        if axis in shape:
            continue
        back = share(back, axis, shape)
        if dim != op.sequence:
            piece: Piece = (axis, op.kv_heads if dim == op.heads else dim, around)
            back = aligned(back, piece)
    return replace(back, shape=shape)
