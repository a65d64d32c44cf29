"""Blocks back to syntax, for `show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from placelogic.program import block as bl
from placelogic.program.ops import Axes, Origin
from placelogic.source import NOWHERE
from placelogic.syntax import ast

UNWRITTEN = Origin(NOWHERE, stated=True)


def layer_statements(layers: bl.Layers | None) -> Iterator[ast.Statement]:
    """The sizes of dimensions, every block, and what is said about boundaries."""
    if layers is None:
        return
    sizes = tuple(ast.DimSize(name, size, NOWHERE) for name, size in layers.sizes.items())
    if sizes:
        yield ast.DimsStmt(sizes, NOWHERE)
    for block in layers.blocks:
        yield _block(block)
        for region in block.regions:
            if region.every is not None:
                yield ast.CheckpointStmt(block.name, None, None, region.every, NOWHERE)
    for way in layers.attention:
        yield ast.AttentionStmt(refs((way.axis,)), way.by, NOWHERE)
    for line in layers.drawn:
        yield ast.DrawnStmt(line.tensor, line.block, refs((line.axis,)), line.kind, NOWHERE)
    for place in layers.counted:
        yield ast.PositionsStmt(place.tensor, place.block, refs((place.axis,)), place.kind, NOWHERE)
    for o in layers.overrides:
        yield ast.OverrideStmt(o.direction, o.tensor, o.block, refs(o.axes), o.by, o.scale, NOWHERE)


def _block(block: bl.Block) -> ast.BlockStmt:
    lines: list[ast.BlockLine] = [ast.InputLine(block.input, block.tensors[block.input], NOWHERE)]
    made = [ast.OperationLine(written(op), NOWHERE) for op in block.operations]
    done = 0
    for region in sorted(block.regions, key=lambda region: region.first):
        if region.every is not None:
            continue  # a statement of its own
        lines += made[done : region.first]
        lines.append(ast.CheckpointLine(tuple(made[region.first : region.last + 1]), NOWHERE))
        done = region.last + 1
    return ast.BlockStmt(block.name, block.repeat, (*lines, *made[done:]), NOWHERE)


def written(op: Any) -> Any:
    """An operation of a step or of a layer as a person writes it: one reference for each of its axes."""
    said = {"origin": UNWRITTEN} | ({"axes": refs(op.axes)} if hasattr(op, "axes") else {})
    return replace(op, **said)


def refs(axes: Axes) -> tuple[ast.AxisRef, ...]:
    """One reference per atom."""
    return tuple(ast.AxisRef((axis,), NOWHERE) for axis in axes)
