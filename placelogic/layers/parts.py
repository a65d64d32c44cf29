"""Putting tensors together along their last dimensions: what that does to values and gradients.

It is a sum of parts, each with zeros in the place of the others. A part that lacks a dimension is the same along
it, so its gradient is added up along it: what devices with pieces of that dimension have of it are shares.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from placelogic.layers.values import Misfit, Shape, Value, added, lies, share, through
from placelogic.program import block as bl
from placelogic.program.block import Block


def put_together(block: Block, op: bl.Concat, ins: Sequence[Value], name: int) -> Value:
    """Raises Misfit where the parts do not lie alike, or are cut on what is put together."""
    first = ins[0].shape
    for slot, (tensor, value) in enumerate(zip(op.inputs, ins)):
        dims = block.tensors[tensor]
        for axis in dict.fromkeys((*first, *value.shape)):
            there = first.get(axis) if first.get(axis) in dims[:-1] else None
            if value.shape.get(axis) != there:
                got = value.shape.get(axis)
                other = "a whole one" if first.get(axis) is None else f"pieces of {first[axis]}"
                raise Misfit(axis, "put together", slot, one=lies(got), other=other)
        for dim in set(value.shape.values()):
            orders = [[axis for axis, cut in shape.items() if cut == dim] for shape in (first, value.shape)]
            if orders[0] != orders[1]:
                raise Misfit(orders[1][0], "another order", slot, dim=dim)
    return added([through(value, _part(name, slot)) for slot, value in enumerate(ins)])  # lies as the first one


def taken_apart(arrived: Value, ins: Sequence[Value], shape: Shape, name: int) -> tuple[Value, ...]:
    found = []
    for slot, value in enumerate(ins):
        back = replace(through(arrived, _part(name, slot)), shape=value.shape)
        for axis in shape:
            if axis not in value.shape:
                back = share(back, axis, value.shape)
        found.append(back)
    return tuple(found)


def _part(name: int, slot: int) -> int:
    """Each part is something of its own."""
    return hash((name, slot, "part"))
