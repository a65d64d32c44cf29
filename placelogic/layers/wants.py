"""How a tensor is wanted along one axis by what reads it: read backwards from the readers.

Only what a person stated, or what weights cut by experts need, is wanted; everything else takes what comes.
"""

from __future__ import annotations

from placelogic.layers.places import experts_dim, split_dim, stated_dim, weights_dim
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import mixed, needs_right
from placelogic.program.program import Program

PARTIAL = "+"
"""Devices hold shares that a person adds up later on."""


def wants(program: Program, block: Block, axis: str, result: str | None) -> dict[str, str]:
    """tensor -> the dimension it is wanted cut on, or `PARTIAL`. `result`: how the next block wants what this
    one leaves."""
    found: dict[str, str] = {}
    if result is not None:
        found[block.result] = result

    def want(tensor: str, dim: str | None) -> None:
        if dim is not None and (dim == PARTIAL or dim in block.tensors[tensor]):
            found.setdefault(tensor, dim)

    for op in reversed(block.operations):
        out = found.get(op.output)
        match op:
            case bl.Collective():
                if axis not in op.axes:
                    want(op.input, out)
                elif op.kind in ("reduce", "reduce_scatter"):
                    found[op.input] = PARTIAL
                elif op.kind in ("gather", "all_to_all"):
                    found[op.input] = op.dim or PARTIAL
            case bl.Linear():
                cut = weights_dim(program, block, op, axis)
                if cut is not None and cut == experts_dim(block, op):
                    want(op.input, None if axis in program.group(op.weights).routed else cut)
                elif cut is None:
                    kept = out if out not in op.produced else None
                    want(op.input, stated_dim(program, block, op, axis) or kept)
            case bl.Bias():
                pieces = weights_dim(program, block, op, axis) is not None
                want(op.input, out or (PARTIAL if pieces else stated_dim(program, block, op, axis)))
            case bl.Add() | bl.Multiply() | bl.Concat():
                for tensor in op.inputs:
                    want(tensor, out)
            case bl.Dispatch():
                want(op.input, None if out in (PARTIAL, block.tensors[op.output][0]) else out)
            case bl.Combine():
                want(op.input, out)
            case bl.Attention() | bl.CrossEntropy() | bl.Embedding():
                pass  # they decide for themselves
            case _:  # of one tensor, at each place or along the dimensions that it mixes
                lost = out in mixed(op) or (out == PARTIAL and needs_right(op))
                want(op.input, stated_dim(program, block, op, axis) or (None if lost else out))
    return found


def stream(program: Program, blocks: tuple[Block, ...], axis: str) -> tuple[str | None, ...]:
    """How each block's input is cut along the axis: as its work is split, or as the block wants it."""
    found: list[str | None] = [None] * len(blocks)
    after: str | None = None
    for position in reversed(range(len(blocks))):
        block = blocks[position]
        split = split_dim(program, axis, block)
        if split is not None:
            found[position] = after = split
            continue
        wanted = wants(program, block, axis, after).get(block.input)
        found[position] = after = None if wanted == PARTIAL else wanted
    for position, block in enumerate(blocks[:-1]):
        if block.repeat is not None:  # what a layer leaves lies as the next layer reads it
            found[position + 1] = found[position]
    return tuple(found)
