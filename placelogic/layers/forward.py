"""What one operation leaves, given what it reads: the rules of the forward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from placelogic.layers import attention
from placelogic.layers.operations import is_name_only
from placelogic.layers.parts import put_together
from placelogic.layers.places import experts_dim
from placelogic.layers.scale import scale_of
from placelogic.layers.values import (
    Disorder,
    Key,
    Misfit,
    Part,
    Shape,
    Term,
    Value,
    added,
    each,
    fresh,
    lies,
    merged,
    product,
    share,
    through,
    unsummed,
    without,
)
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import mixing, needs_right
from placelogic.program.plan import Work
from placelogic.program.table import facts


def forward(
    block: Block,
    index: int,
    name: int,
    ins: Sequence[Value],
    work: Mapping[str, Work],
    nominal: Sequence[Shape] | None,
    router: Shape | None = None,
) -> Value:
    """The output before its boundaries. Raises Misfit where an input does not lie as the operation needs
    it. `name`: of the operation in this layer, unlike all others. `nominal`: how the inputs lie where nothing is overridden; `router`: how the scores of a dispatch lie."""
    op = block.operations[index]
    value = ins[0]
    match op:
        case bl.Linear():
            return _linear(block, op, name, value, work)
        case bl.Bias():
            return _bias(block, op, name, value, work)
        case bl.Embedding():
            return _embedding(op, name, value, work)
        case bl.Elementwise() if is_name_only(op):
            return value
        case bl.Add():
            _alike(ins)
            return added(ins)
        case bl.Multiply():
            _alike(ins)
            return multiplied(ins[0], ins[1], name)
        case bl.Concat():
            return put_together(block, op, ins, name)
        case bl.Attention():
            attention.check(block, op, ins)
            return _as(attention.made(block, op, ins), ins[2], name)
        case bl.Dispatch():
            return _dispatch(block, op, name, value, work, router)
        case bl.Combine():
            return _combine(block, op, name, ins, work)
        case bl.CrossEntropy():
            _vocabulary(op, value, nominal)
            return fresh({a: dim for a, dim in value.shape.items() if dim != op.vocabulary}, (name,))
        case bl.Collective():
            raise AssertionError("a collective is a move")
        case _:
            return _alone(op, name, value, work)


def _alone(op: bl.Operation, name: int, value: Value, work: Mapping[str, Work]) -> Value:
    """An operation of one tensor, as the table has it: it needs all of what it mixes, and its own part of the rest."""
    for axis, dim in value.shape.items():
        if (does := mixing(op, dim)) is not None:
            raise Misfit(axis, "pieces", does=does.removesuffix(" {}"), dim=dim)
    for axis, where in work.items():
        cut, dim = where.weights, value.shape.get(axis)
        if cut is not None and dim != cut:
            raise Misfit(axis, "its part", does=facts(op).does, dim=cut, gets=lies(dim))
        if cut is not None:
            _outermost(value, axis, work)
    return fresh(value.shape, (name,)) if needs_right(op) else through(value, name)


def _alike(ins: Sequence[Value]) -> None:
    for slot, other in enumerate(ins[1:], 1):
        for axis in (*ins[0].shape, *other.shape):
            one, two = ins[0].shape.get(axis), other.shape.get(axis)
            if one != two:
                raise Misfit(axis, "unlike", slot, one=lies(one), other=lies(two))
        for dim in set(ins[0].shape.values()):
            _same_order(ins[0].shape, dim, other.shape, dim)


def _same_order(one: Shape, dim: str, other: Shape, same: str) -> None:
    """Two tensors that meet are cut over several axes in one order."""
    here, there = ([axis for axis, cut in shape.items() if cut == d] for shape, d in ((one, dim), (other, same)))
    if here != there:
        raise Disorder(here[0], f"pieces of {dim} over {' and '.join(here)} meet pieces over {' and '.join(there)}")


def _as(shape: Shape, value: Value, name: int) -> Value:
    """Linear in `value`, the rest is right."""
    return fresh(shape, (name,)) if value.right else replace(through(value, name), shape=dict(shape))


def _linear(block: Block, op: bl.Linear, name: int, value: Value, work: Mapping[str, Work]) -> Value:
    shape = dict(value.shape)
    out = through(value, name)
    experts = experts_dim(block, op)
    for axis, dim in value.shape.items():
        cut = work[axis].weights if axis in work else None
        if cut is None and dim in op.contracted:
            raise Misfit(axis, "pieces", does="adds up over", dim=dim)
    for axis, where in work.items():
        cut, dim = where.weights, value.shape.get(axis)
        if cut is None:
            continue
        if dim == cut == experts:
            _outermost(value, axis, work)
        if cut == experts or cut in op.contracted:
            if dim != cut:
                raise Misfit(axis, "its part", does="multiplies by", dim=cut, gets=lies(dim))
            if cut in op.contracted:
                shape = without(shape, axis)
                out = share(out, axis, shape)
        elif dim is not None:
            raise Misfit(axis, "its part", does="makes", dim=cut, gets=lies(dim))
        else:
            shape[axis] = cut
            out = each(out, unsummed(axis), shape)
    return out


def _outermost(value: Value, axis: str, work: Mapping[str, Work]) -> None:
    """Pieces of whole weights are taken out of what shards of them leave, not the other way round, and shards
    over several axes nest in the order of the mesh."""
    dim = value.shape[axis]
    order = [other for other, cut in value.shape.items() if cut == dim]
    shards = [other for other, where in work.items() if where.weights == dim and other in order]
    if order[: len(shards)] != shards:
        others = " and ".join(order)
        raise Disorder(
            axis, f"its pieces of {dim} are cut over {others} in this order, and weights over {' and '.join(shards)}"
        )


def _bias(block: Block, op: bl.Bias, name: int, value: Value, work: Mapping[str, Work]) -> Value:
    pieces = set()
    for axis, where in work.items():
        dim = value.shape.get(axis)
        if where.weights is not None and dim is None:
            pieces.add(axis)
        elif where.weights is not None and dim == where.weights:
            _outermost(value, axis, work)
        elif where.weights is not None:
            raise Misfit(axis, "its part", does="adds", dim=where.weights, gets=lies(dim))
    term = Term(scale_of(op.scale), frozenset(pieces))
    parts: dict[Key, Part] = {**value.parts, frozenset([(name,)]): Part(1, (term,))}
    return merged(Value(value.shape, parts))


def _embedding(op: bl.Embedding, name: int, value: Value, work: Mapping[str, Work]) -> Value:
    out = fresh(value.shape, (name,))
    for axis, where in work.items():
        if where.weights is None:
            continue
        if axis in value.shape:
            raise Misfit(axis, "table")
        if where.weights == op.vocabulary:
            out = share(out, axis, out.shape)
        else:
            out = replace(out, shape={**out.shape, axis: where.weights})
    return out


def multiplied(one: Value, two: Value, name: int) -> Value:
    """Place by place: linear in each of the two."""
    if one.right and two.right:
        return fresh(one.shape, (name,))
    parts: dict[Key, Part] = {}
    for a, left in one.parts.items():
        for b, right in two.parts.items():
            key: Key = frozenset([(hash((a, b)), name)])
            terms = tuple(product(x, y) for x in left.terms for y in right.terms)
            parts[key] = Part(left.times * right.times, terms)
    return merged(Value(one.shape, parts))


def _dispatch(
    block: Block, op: bl.Dispatch, name: int, value: Value, work: Mapping[str, Work], router: Shape | None
) -> Value:
    out = through(value, name)
    for axis in dict.fromkeys((*value.shape, *(router or {}))):
        if router is not None and value.shape.get(axis) != router.get(axis):
            raise Misfit(axis, "scores", gets=lies(value.shape.get(axis)), scores=lies(router.get(axis)))
    for axis in work:  # along which each device has experts of its own
        if axis in value.shape:
            raise Misfit(axis, "tokens", gets=lies(value.shape[axis]))
        out = each(out, unsummed(axis), {**out.shape, axis: block.tensors[op.output][0]})
    return out


def _combine(block: Block, op: bl.Combine, name: int, ins: Sequence[Value], work: Mapping[str, Work]) -> Value:
    made, scores = ins
    for axis in dict.fromkeys((*made.shape, *scores.shape, *work)):
        m, s = made.shape.get(axis), scores.shape.get(axis)
        if axis in work:
            if m != work[axis].pieces or s is not None:
                raise Misfit(axis, "experts", gets=lies(m), scores=lies(s))
        elif m != s and not (s is None and m in _rest(block, op)):
            raise Misfit(axis, "scores", gets=lies(m), scores=lies(s))
    shape = without(made.shape, *work)
    out = multiplied(made, scores, name)
    for axis in work:
        out = share(out, axis, shape)
    return out


def _rest(block: Block, op: bl.Combine) -> set[str]:
    """The dimensions of what experts make that scores do not have."""
    return set(block.tensors[op.input]) - set(block.tensors[op.router])


def _vocabulary(op: bl.CrossEntropy, value: Value, nominal: Sequence[Shape] | None) -> None:
    for axis, dim in value.shape.items():
        if dim == op.vocabulary and not op.parallel:
            raise Misfit(axis, "pieces", does="takes a softmax over", dim=dim)
    for axis, dim in (nominal[0] if nominal else {}).items():
        if dim == op.vocabulary and op.parallel and value.shape.get(axis) != dim:
            raise Misfit(axis, "vocabulary", dim=dim, gets=lies(value.shape.get(axis)))
