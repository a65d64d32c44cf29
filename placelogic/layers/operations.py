"""What an operation reads and multiplies by, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.compat import assert_never
from placelogic.program import block as bl
from placelogic.program.expr import number


def inputs(op: bl.Operation) -> tuple[str, ...]:
    """The tensors whose values and gradients pass through it, in order. What a dispatch reads of its router
    only chooses: it has no gradient."""
    match op:
        case bl.Add(inputs=several) | bl.Multiply(inputs=several) | bl.Concat(inputs=several):
            return tuple(several)
        case bl.Attention():
            return (op.query, op.key, op.value)
        case bl.Combine():
            return (op.input, op.router)
        case (
            bl.Linear()
            | bl.Bias()
            | bl.Embedding()
            | bl.Norm()
            | bl.Elementwise()
            | bl.Router()
            | bl.Dispatch()
            | bl.CrossEntropy()
            | bl.Collective()
        ):
            return (op.input,)
        case _:
            assert_never(op)


def weights_of(op: bl.Operation) -> str | None:
    match op:
        case bl.Linear() | bl.Bias() | bl.Embedding() | bl.Norm() | bl.Router():
            return op.weights
        case _:
            return None


def apart(block: bl.Block, op: bl.Operation) -> frozenset[str]:
    """The dimensions along which no place of an input meets another place: a gradient that is nothing at a place of
    the output is nothing there of every input."""
    dims = frozenset(block.tensors[op.output])
    match op:
        case bl.Linear() | bl.Router():
            made = op.produced if isinstance(op, bl.Linear) else (op.experts,)
            return dims & frozenset(block.tensors[op.input]) - {*op.contracted, *made}
        case bl.Norm():
            return dims - {*op.over}
        case bl.Bias() | bl.Elementwise() | bl.Add() | bl.Multiply():
            return dims
        case bl.Concat():
            return dims - {block.tensors[op.output][-1]}
        case bl.Attention():
            ends = (block.tensors[op.key][-1], block.tensors[op.value][-1])
            return dims - {op.sequence, op.heads, op.kv_heads, *ends}
        case bl.CrossEntropy():
            return dims - {op.vocabulary}
        case _:
            return frozenset()  # rows that are sent to experts are not where they were


def tables(blocks: Sequence[bl.Block]) -> frozenset[tuple[str, bl.Dims, bl.Dims]]:
    """The tables of embeddings, as a linear that uses them turned round would name them."""
    return frozenset(
        (op.weights, op.produced, (op.vocabulary,))
        for block in blocks
        for op in block.operations
        if isinstance(op, bl.Embedding)
    )


def tied(blocks: Sequence[bl.Block]) -> frozenset[str]:
    """Weights whose table is used twice in a pass: by an embedding, and turned round by a linear. All other
    operations have a matrix or vector of their own in their group."""
    known = tables(blocks)
    linears = (op for block in blocks for op in block.operations if isinstance(op, bl.Linear))
    return frozenset(op.weights for op in linears if (op.weights, op.contracted, op.produced) in known)


def is_name_only(op: bl.Operation) -> bool:
    """`y = scale x by 1`: the same tensor, by a name of its own."""
    return isinstance(op, bl.Elementwise) and op.function == "scale" and op.factor == number(1)


def name_of(op: bl.Operation) -> str:
    """For people: what the operation is called in the language."""
    return {
        "Linear": "linear",
        "Bias": "bias",
        "Embedding": "embedding",
        "Norm": "norm",
        "Add": "add",
        "Multiply": "multiply",
        "Concat": "concat",
        "Attention": "attention",
        "Router": "router",
        "Dispatch": "dispatch",
        "Combine": "combine",
        "CrossEntropy": "cross_entropy",
    }.get(type(op).__name__, getattr(op, "function", None) or getattr(op, "kind", ""))
