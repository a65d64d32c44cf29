"""How what an operation makes lies on one device, given how what it reads does.

As PyTorch would, an operation takes any pieces whose sizes fit, be they the right ones or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.replay.blocks.lay import Lay
from placelogic.run.stop import GroupStop
from placelogic.simulate.layers.arrays import Labels


def made(
    block: Block, op: bl.Operation, ins: Sequence[Lay], mine: Mapping[str, Labels], sizes: Mapping[str, int],
    scores: Lay | None,
) -> Lay:  # fmt: skip
    """`mine`: the places that its weights, or its experts, cover; `scores`: those of a dispatch. Raises GroupStop
    where a device cannot do it."""
    x = ins[0]

    def places(dim: str) -> Labels:
        return mine.get(dim) or tuple(range(sizes[dim]))

    match op:
        case bl.Linear():
            if op.grouped and set(x.labels[0]) - set(places(x.dims[0])):
                raise GroupStop("experts meet tokens of other experts")
            return _multiplied(x, op.contracted, op.produced, [places(d) for d in op.contracted], places)
        case bl.Router():
            return _multiplied(x, op.contracted, (op.experts,), [places(d) for d in op.contracted], places)
        case bl.Embedding():
            return Lay((*x.dims, *op.produced), (*x.labels, *map(places, op.produced)))
        case bl.Bias() | bl.Norm() | bl.Elementwise():
            return x
        case bl.Add() | bl.Multiply():
            if any(other.shape != x.shape for other in ins):
                raise GroupStop("two tensors that meet have pieces of different sizes")
            return x
        case bl.Concat():
            return _together(op, ins, sizes)
        case bl.Attention():
            return _attended(op, *ins, sizes)
        case bl.Dispatch():
            assert scores is not None
            dim = block.tensors[op.output][0]
            _scored(scores, dim, places(dim), x)
            return Lay((dim, *x.dims), (places(dim), *x.labels))
        case bl.Combine():
            left = Lay(x.dims[1:], x.labels[1:])
            _scored(ins[1], x.dims[0], x.labels[0], left)
            return left
        case bl.CrossEntropy():
            at = x.dims.index(op.vocabulary)
            return Lay((*x.dims[:at], *x.dims[at + 1 :]), (*x.labels[:at], *x.labels[at + 1 :]))
    raise AssertionError(op)


def _multiplied(x: Lay, contracted: Sequence[str], produced: Sequence[str], inner: list[Labels], places) -> Lay:  # type: ignore[no-untyped-def]
    start = x.dims.index(contracted[0])
    end = start + len(contracted)
    if x.shape[start:end] != tuple(map(len, inner)):
        raise GroupStop("a matrix meets more places than it has, or fewer")
    dims = (*x.dims[:start], *produced, *x.dims[end:])
    return Lay(dims, (*x.labels[:start], *map(places, produced), *x.labels[end:]))


def _together(op: bl.Concat, ins: Sequence[Lay], sizes: Mapping[str, int]) -> Lay:
    first = ins[0]
    for one in ins:
        if len(one.labels[-1]) != sizes[one.dims[-1]]:
            raise GroupStop("a part of what is put together is missing")
        if any(len(one.along(dim)) != len(first.along(dim)) for dim in one.dims[:-1]):
            raise GroupStop("two tensors that are put together have pieces of different sizes")
    whole = tuple(range(sum(len(one.labels[-1]) for one in ins)))
    return Lay((*first.dims[:-1], op.into), (*first.labels[:-1], whole))


def _attended(op: bl.Attention, query: Lay, key: Lay, value: Lay, sizes: Mapping[str, int]) -> Lay:
    if key.shape[:-1] != value.shape[:-1]:
        raise GroupStop("keys and values have pieces of different sizes")
    ratio = sizes[op.heads] // sizes[op.kv_heads]
    missing = {head // ratio for head in query.along(op.heads)} - set(key.along(op.kv_heads))
    for have, want in zip(key.labels[:-3], query.labels[:-3]):
        missing |= set(want) - set(have)
    if missing:
        raise GroupStop("attention needs keys of another head or sample")
    if query.shape[-1] != key.shape[-1]:
        raise GroupStop("queries and keys have pieces of heads of different sizes")
    return Lay((*query.dims[:-1], value.dims[-1]), (*query.labels[:-1], value.labels[-1]))


def _scored(scores: Lay, experts: str, here: Labels, tokens: Lay) -> None:
    """The tokens that are here need their scores, for the experts that are here: rows are counted by them."""
    if set(here) - set(scores.along(experts)):
        raise GroupStop("the scores of these experts are on another device")
    if any(dim != experts and have != tokens.along(dim) for dim, have in zip(scores.dims, scores.labels)):
        raise GroupStop("scores of other tokens meet these")
