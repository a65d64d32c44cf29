"""Biases that are added to shares, before a sum that leaves each device a piece."""

from __future__ import annotations

from collections.abc import Mapping

from placelogic.program.block import Add, Bias, Block, Collective, Linear
from placelogic.program.operations import inputs
from placelogic.program.program import Program


def scattered_biases(program: Program) -> Mapping[str, frozenset[str]]:
    """weights -> the axes along which all biases of the group come into a stated `reduce_scatter`. Added after it
    instead, each device adds a bias to its own piece, so its gradient is a share, to be summed there."""
    found: dict[str, frozenset[str]] = {}
    for block in program.layers.blocks if program.layers is not None else ():
        for op in block.operations:
            if isinstance(op, Bias):
                axes = _scattered(block, op.output)
                found[op.weights] = found.get(op.weights, axes) & axes
    return found


def _scattered(block: Block, tensor: str) -> frozenset[str]:
    axes: set[str] = set()
    waiting = [tensor]
    for name in waiting:  # grows: what is made of it by operations that hand shares on
        for op in block.operations:
            if name not in inputs(op):
                continue
            if isinstance(op, Collective) and op.kind == "reduce_scatter":
                axes.update(op.axes)
            elif isinstance(op, Add | Bias | Linear):
                waiting.append(op.output)
    return frozenset(axes)
