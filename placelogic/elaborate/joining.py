"""`concat`: which tensors can be put together along their last dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placelogic.elaborate.count import differs
from placelogic.program import block as bl
from placelogic.program.block import Dims
from placelogic.program.expr import Binary, Expr, show

if TYPE_CHECKING:
    from placelogic.elaborate.shapes import BlockReader


def concat(reader: BlockReader, node: bl.Concat) -> Dims | None:
    """The dimensions of what it makes; None where something does not fit, which is logged."""
    if len(node.inputs) < 2:
        reader.problem("PL370", "one tensor is nothing to put together", node.span, "name the tensors that follow it")
        return None
    if not reader.known((node.into,), node.span):
        return None
    shapes = [reader.tensors[name] for name in node.inputs]
    rest, parts = shapes[0][:-1], tuple(dims[-1] for dims in shapes)
    told = "; ".join(f"{name}({', '.join(dims)})" for name, dims in zip(node.inputs, shapes))
    if len(set(parts)) < len(parts) or node.into in parts:
        reader.problem("PL370", f"each last dimension is to be another one than the rest: {told}", node.span,
                       "declare a dimension for each part, and one for the whole")  # fmt: skip
        return None
    for name, dims in zip(node.inputs, shapes):
        if dims[:-1] != tuple(dim for dim in rest if dim in dims[:-1]):
            reader.problem("PL370", f"`{name}` has other dimensions before its last one than `{node.inputs[0]}`, or in "
                           f"another order: {told}", node.span,
                           "name first the tensor that has them all; others may lack some, and are the same along these")  # fmt: skip
            return None
    known = reader.joined.setdefault(node.into, parts)
    nested = next((dim for dim in parts if dim in reader.joined), None)
    nested = nested or next((node.into for others in reader.joined.values() if node.into in others), None)
    if known != parts or nested is not None:
        message = f"`{node.into}` is put together of {', '.join(known)} before, and of {', '.join(parts)} here"
        if known == parts:
            message = f"`{nested}` is put together itself, and a part of another dimension"
        reader.problem("PL370", message, node.span, "give each its own dimension, and put all parts together at once")
        return None
    size = reader.dims[parts[0]]
    for dim in parts[1:]:
        size = Binary("+", size, reader.dims[dim])
    _check_size(reader, node, parts, size)
    return (*rest, node.into)


def _check_size(reader: BlockReader, node: bl.Concat, parts: Dims, size: Expr) -> None:
    if differs(reader.dims[node.into], size, reader.sizes):
        whole = show(reader.dims[node.into])
        reader.problem("PL370", f"`{node.into}` has {whole} places, and {', '.join(parts)} together {show(size)}",
                       node.span, f"`dims {node.into} = {show(size)}`")  # fmt: skip
