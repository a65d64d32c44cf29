"""One operation on one device, forward and backward."""

from __future__ import annotations

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.simulate.layers import functions as fn
from placelogic.simulate.layers import mixing
from placelogic.simulate.layers.arrays import Array, filled
from placelogic.simulate.layers.functions import Element, Gradients, Local
from placelogic.simulate.layers.parts import put_together, taken_apart


def one_forward(block: Block, local: Local, op: bl.Operation, ins: list[Array], scores: Array | None) -> Array:
    """What the operation leaves on one device. Raises GroupStop where it cannot."""
    match op:
        case bl.Linear():
            return fn.linear(local, op, ins[0], op.produced)
        case bl.Bias():
            return fn.bias(local, op, ins[0])
        case bl.Embedding():
            return fn.embedding(local, op, ins[0])
        case bl.Norm():
            return fn.normalised(local, op.over, ins[0])
        case bl.Elementwise():
            return fn.elementwise(local, ins[0])
        case bl.Add():
            return fn.summed(ins)
        case bl.Multiply():
            return fn.multiplied(*ins)
        case bl.Concat():
            return put_together(local, op, ins)
        case bl.Attention():
            return mixing.Attention(local, *ins).forward()
        case bl.Router():
            return mixing.route(local, ins[0])
        case bl.Dispatch():
            assert scores is not None
            dim = block.tensors[op.output][0]
            return mixing.dispatch(op, local.places(dim), dim, ins[0], scores)
        case bl.Combine():
            return mixing.combine(ins[0], ins[1], block.tensors[op.input][0])
    raise AssertionError(op)


def one_back(
    block: Block, local: Local, op: bl.Operation, ins: list[Array], here: Array, scores: Array | None,
    total: dict[Element, int] | None,
) -> tuple[list[Array], Gradients]:  # fmt: skip
    match op:
        case bl.Linear():
            back, gradient = fn.linear_back(local, op, ins[0], op.produced, here)
            return [back], gradient
        case bl.Bias():
            back, gradient = fn.bias_back(local, op, here)
            return [back], gradient
        case bl.Embedding():
            return [filled(ins[0].dims, ins[0].labels, lambda _: 0)], fn.embedding_back(local, op, ins[0], here)
        case bl.Norm():
            back, gradient = fn.normalised_back(local, op.over, ins[0], here)
            return [back], gradient if op.weights is not None else {}
        case bl.Elementwise():
            return [fn.elementwise_back(local, ins[0], here)], {}
        case bl.Add():
            return [here for _ in ins], {}
        case bl.Multiply():
            return [fn.multiplied(here, ins[1]), fn.multiplied(here, ins[0])], {}
        case bl.Concat():
            return taken_apart(local, ins, here), {}
        case bl.Attention():
            return list(mixing.Attention(local, *ins).backward(here)), {}
        case bl.Router():
            back, gradient = mixing.route_back(local, ins[0], here)
            return [back], gradient
        case bl.Dispatch():
            assert scores is not None
            return [mixing.dispatch_back(op, block.tensors[op.output][0], ins[0], scores, here)], {}
        case bl.Combine():
            return list(mixing.combine_back(ins[0], ins[1], block.tensors[op.input][0], here)), {}
        case bl.CrossEntropy():
            assert total is not None
            return [fn.loss_back(local, ins[0], here, lambda _: total)], {}
    raise AssertionError(op)


def inputs(op: bl.Operation) -> tuple[str, ...]:
    match op:
        case bl.Add() | bl.Multiply() | bl.Concat():
            return tuple(op.inputs)
        case bl.Attention():
            return op.query, op.key, op.value
        case bl.Combine():
            return op.input, op.router
        case _:
            return (op.input,)


def weights_dims(block: Block, op: bl.Operation) -> tuple[str, ...]:
    """The dimensions of an operation's weights, in the order in which its functions name them."""
    match op:
        case bl.Linear():
            grouped = (block.tensors[op.input][0],) if op.grouped else ()
            return (*grouped, *op.contracted, *op.produced)
        case bl.Bias() | bl.Norm():
            return op.over
        case bl.Embedding():
            return (op.vocabulary, *op.produced)
        case bl.Router():
            return (*op.contracted, op.experts)
        case _:
            return ()
