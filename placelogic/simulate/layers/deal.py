"""Dealing out the dimensions of layers at their real sizes: what does not come out even."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program.expr import evaluate
from placelogic.program.operations import inputs
from placelogic.program.plan import Plan
from placelogic.program.program import Axes, Program


class Uneven(Struct, frozen=True):
    """`left` places of a dimension remain when it is dealt out along the axes, one after the other."""

    tensor: str
    dim: str
    axes: Axes
    left: int


def uneven(program: Program, mesh: Mapping[str, int], quantities: Mapping[str, int]) -> tuple[Uneven, ...]:
    """Everything that a device would have a broken piece of on this mesh."""
    layers, layering = program.layers, program.layering
    assert layers is not None and layering is not None
    env: dict[str, Fraction | int] = {**mesh, **quantities}
    for let in program.lets:
        if let.value is not None:
            env[let.name] = evaluate(let.value, env)
    found: dict[Uneven, None] = {}
    for tensor, dim, axes, pieces in _cuts(program, layering.plan):
        places = evaluate(layers.sizes[dim], env)
        for axis in axes:
            left = places % (mesh[axis] * pieces) if mesh[axis] > 1 else 0  # one device has all of it, in one piece
            if left:
                found.setdefault(Uneven(tensor, dim, axes[: axes.index(axis) + 1], int(left)))
                break
            places /= mesh[axis]
    return tuple(found)


def _cuts(program: Program, plan: Plan) -> Iterator[tuple[str, str, Axes, int]]:
    """Tensor, dimension, the axes that cut it in the order of the mesh, and pieces per device."""
    layers = program.layers
    assert layers is not None
    rings = [exchange.axis for exchange in layers.attention if exchange.by == "ring"]
    for block in layers.blocks:
        for tensor, dims in block.tensors.items():
            made = plan.shapes.get((block.name, tensor), {})
            for dim in dims:
                yield tensor, dim, _along(program, made, dim), 1
        for index, op in enumerate(block.operations):
            for slot, tensor in enumerate(inputs(op)):
                read = dict(plan.shapes.get((block.name, tensor), {}))
                for boundary in plan.at(block.name, tensor, (index, slot)):
                    read.pop(boundary.axis, None)
                    there = boundary.forward
                    new = there.into if there.kind == "exchange" else there.dim
                    if there.kind != "gather" and new is not None:
                        read[boundary.axis] = new
                for dim in block.tensors[tensor]:
                    axes = _along(program, read, dim)
                    yield tensor, dim, axes, 1
                    if isinstance(op, bl.Attention) and op.causal and dim == op.sequence:
                        yield tensor, dim, tuple(axis for axis in axes if axis in rings), 2
            for axis, work in plan.work.get((block.name, index), {}).items():
                for dim in (work.weights, work.pieces):
                    if dim is not None:
                        yield op.output, dim, (axis,), 1


def _along(program: Program, lay: Mapping[str, str], dim: str) -> Axes:
    return tuple(axis for axis in program.mesh.axes if lay.get(axis) == dim)
