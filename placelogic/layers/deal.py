"""Which dimensions are dealt out evenly over which axes: what sizes must divide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placelogic.layers.saved import lay_at
from placelogic.program import block as bl
from placelogic.program.operations import inputs
from placelogic.program.plan import Dealt, Plan
from placelogic.program.program import Axes, Program


def dealt(program: Program, plan: Plan) -> tuple[Dealt, ...]:
    """The largest products of axes for each dimension, with a tensor that is dealt out so; smaller ones
    follow from them."""
    layers = program.layers
    assert layers is not None
    order = {axis: place for place, axis in enumerate(program.mesh.axes)}
    found: dict[tuple[str, Axes, bool], Dealt] = {}
    for block, tensor, lay, twice in _lays(program, plan):
        for dim in dict.fromkeys(dim for dim in lay.values() if dim in layers.sizes):
            axes = tuple(sorted((axis for axis in lay if lay[axis] == dim), key=order.__getitem__))
            found.setdefault((dim, axes, twice), Dealt(dim, axes, twice, block, tensor))
    return tuple(
        one
        for (dim, axes, twice), one in found.items()
        if not any(
            other != (dim, axes, twice) and other[0] == dim and set(axes) <= set(other[1]) and twice <= other[2]
            for other in found
        )
    )


def _lays(program: Program, plan: Plan) -> Iterator[tuple[str, str, Mapping[str, str], bool]]:
    """Block, tensor, how it lies, and whether in two pieces; as it is made, read, and worked on."""
    layers = program.layers
    assert layers is not None
    rings = {exchange.axis for exchange in layers.attention if exchange.by == "ring"}
    for block in layers.blocks:
        for tensor in block.tensors:
            yield block.name, tensor, plan.shapes.get((block.name, tensor), {}), False
        for index, op in enumerate(block.operations):
            for slot, tensor in enumerate(inputs(op)):
                lay = lay_at(plan, block, (index, slot))
                yield block.name, tensor, lay, False
                if isinstance(op, bl.Attention) and op.causal:
                    ring = {axis: dim for axis, dim in lay.items() if dim == op.sequence and axis in rings}
                    yield block.name, tensor, ring, True
            for axis, work in plan.work.get((block.name, index), {}).items():
                for dim in (work.weights, work.pieces):
                    if dim is not None:
                        yield block.name, op.output, {axis: dim}, False
