"""What comes back through one operation: the rules of the backward pass.

It is linear in the gradient that arrives, so each term of that gives one term for every input, and one for
the operation's weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from placelogic.layers.attention import of_key_heads, part_of_keys, part_of_scores
from placelogic.layers.operations import is_name_only
from placelogic.layers.parts import taken_apart
from placelogic.layers.scale import scale_of
from placelogic.layers.values import Key, Part, Shape, Term, Value, each, merged, product, share, through, tie
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import apart, needs_right, weights_of
from placelogic.program.plan import Work


class Back(Struct, frozen=True):
    """The gradient of every input, and of the weights where there are some. `own`: axes along which each
    device has the elements of its own shard of the weights."""

    ins: tuple[Value, ...]
    weights: Value | None = None
    own: frozenset[str] = frozenset()


def backward(
    block: Block, index: int, name: int, arrived: Value, ins: Sequence[Value], shape: Shape, work: Mapping[str, Work]
) -> Back:
    """`arrived`: the gradient of the output, as it lies (`shape`) before its boundaries; `ins`: the inputs as
    they were read; `name`: of the operation in this layer, unlike all others."""
    op = block.operations[index]
    arrived = _handed_on(block, op, arrived, ins, shape)
    own = frozenset(axis for axis, where in work.items() if where.weights is not None)
    match op:
        case bl.Linear():
            back = through(arrived, name)
            for axis in own:
                if ins[0].shape.get(axis) is None:
                    back = share(back, axis, ins[0].shape)
                else:
                    back = tie(back, axis, ins[0].shape)
            met = each(arrived, _lose_folded(frozenset(shape)))
            return Back((replace(back, shape=ins[0].shape),), _of_weights(met, ins[0], ins[0].shape, own, name), own)
        case bl.Bias():
            table = frozenset(axis for axis, dim in shape.items() if dim in op.over)  # a place of its own for each
            gradient = _of_weights(each(arrived, _lose_folded(table)), None, shape, own, name)
            factor = scale_of(op.scale)
            return Back((arrived,), each(gradient, lambda t: replace(t, scale=t.scale * factor)), own)
        case bl.Elementwise() if is_name_only(op):
            return Back((replace(arrived, shape=ins[0].shape),))
        case bl.Add():
            return Back(tuple(arrived for _ in ins))
        case bl.Multiply():
            return Back(
                (_times(arrived, ins[1], ins[0].shape, name + 1), _times(arrived, ins[0], ins[1].shape, name + 2))
            )
        case bl.Concat():
            return Back(taken_apart(arrived, ins, shape, name))
        case bl.Attention():
            return _attention(block, op, arrived, ins, name)
        case bl.Dispatch():
            back = through(arrived, name)
            for axis in work:
                back = share(back, axis, ins[0].shape)
            return Back((replace(back, shape=ins[0].shape),))
        case bl.Combine():
            return _combine(arrived, ins, work, name)
        case _:
            return _alone(op, arrived, ins[0], shape, own, name)


def _alone(op: bl.Operation, arrived: Value, read: Value, shape: Shape, own: frozenset[str], name: int) -> Back:
    """Of an operation of one tensor. Where it is linear in that, its weights are multiplied by it: their gradient is
    worth what was read times what arrives."""
    back = replace(through(arrived, name), shape=read.shape)
    if weights_of(op) is None:
        return Back((back,))
    if needs_right(op):
        return Back((back,), _of_weights(arrived, None, shape, own, name), own)
    met = each(arrived, _lose_folded(frozenset(shape)))
    return Back((back,), _of_weights(met, read, shape, own, name), own)


def _handed_on(block: Block, op: bl.Operation, arrived: Value, ins: Sequence[Value], shape: Shape) -> Value:
    """What arrives, as this operation can hand it on. Place by place the same for all places: what was added up
    place by place still is. Else that is no gradient any more, as are pieces of something else. What is nothing
    outside of a piece still is, where places outside of it meet nothing in it."""
    simple = isinstance(op, (bl.Bias, bl.Add)) or (isinstance(op, bl.Elementwise) and op.function == "scale")
    kept = frozenset(shape) if simple else frozenset()
    if isinstance(op, bl.Linear):
        kept = frozenset(axis for axis, dim in shape.items() if ins[0].shape.get(axis) == dim)
    dims = apart(block, op)
    if isinstance(op, bl.Attention):  # nor does a head meet another
        dims |= {op.heads}

    def change(term: Term) -> Term:
        left = _lose_folded(term.folded - kept)(term)
        return replace(left, aligned=frozenset(piece for piece in left.aligned if piece[1] in dims))

    return each(arrived, change)


def _lose_folded(axes: frozenset[str]):  # type: ignore[no-untyped-def]
    return lambda term: replace(term, folded=term.folded - axes, lost=term.lost | (term.folded & axes))


def _of_weights(arrived: Value, read: Value | None, shape: Shape, own: frozenset[str], name: int) -> Value:
    """The gradient of weights that are whole, except along `own`, met by a tensor that is cut as `shape`
    says: each device has the contribution of its own pieces."""
    out = _times(arrived, read, shape, name) if read is not None else through(arrived, name)
    for axis in shape:
        if axis not in own:
            out = share(out, axis, shape)
    return out


def _times(arrived: Value, read: Value, shape: Shape, name: int) -> Value:
    """The gradient times what was read: shares of one of the two are shares of the product."""
    if read.right:
        return replace(through(arrived, name), shape=shape)
    parts: dict[Key, Part] = {}
    for a, left in arrived.parts.items():
        for b, right in read.parts.items():
            terms = tuple(product(x, y) for x in left.terms for y in right.terms)
            parts[frozenset([(hash((a, b)), name)])] = Part(left.times * right.times, terms)
    return merged(Value(shape, parts))


def _attention(block: Block, op: bl.Attention, arrived: Value, ins: Sequence[Value], name: int) -> Back:
    query, key, value = ins
    mixed = part_of_scores(block, op, ins, _times(arrived, value, query.shape, name))
    to_key = part_of_keys(op, query.shape, of_key_heads(op, through(mixed, name + 1)), key.shape)
    to_value = part_of_keys(op, query.shape, of_key_heads(op, through(arrived, name + 2)), value.shape)
    return Back((mixed, to_key, to_value))


def _combine(arrived: Value, ins: Sequence[Value], work: Mapping[str, Work], name: int) -> Back:
    made, scores = ins
    to_made = _times(arrived, scores, made.shape, name + 1)
    to_scores = _times(arrived, made, scores.shape, name + 2)
    for axis in work:
        to_made = tie(to_made, axis, made.shape)
    for axis in made.shape:
        if axis not in scores.shape:
            to_scores = share(to_scores, axis, scores.shape)  # adds up over its pieces of what experts make
    return Back((to_made, to_scores))
