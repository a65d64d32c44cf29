"""What is said about random numbers and about positions inside a layer."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.elaborate.boundaries import find_block
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import select
from placelogic.problem import closest
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.habits import Counted, Drawn
from placelogic.program.ops import Origin
from placelogic.syntax import ast


def read_drawn(items: Sequence[Item], blocks: tuple[Block, ...], sizes: Declared, log: Log) -> tuple[Drawn, ...]:
    """One per tensor and atom."""
    found: dict[tuple[str, str, str], Drawn] = {}
    for item in select(items, ast.DrawnStmt):
        node = item.statement
        assert isinstance(node, ast.DrawnStmt)
        axes = sizes.axes(node.axes, item)
        op = _operation(item, node, blocks, log)
        if op is None:
            continue
        if not (isinstance(op, bl.Elementwise) and op.random or isinstance(op, bl.Attention) and op.dropout):
            log.at(item, "PL378", f"nothing random happens where `{node.tensor}` is made", node.span,
                   "name what a `dropout`, or an `attention ... dropout`, makes")  # fmt: skip
        for axis in axes:
            new = Drawn(node.block, node.tensor, axis, node.kind, item.origin(node.span))
            old = found.setdefault((node.block, node.tensor, axis), new)
            if old.kind != new.kind:
                _twice(item, node, axis, old.origin, log)
    return tuple(found.values())


def read_counted(items: Sequence[Item], blocks: tuple[Block, ...], sizes: Declared, log: Log) -> tuple[Counted, ...]:
    """One per tensor and atom."""
    found: dict[tuple[str, str, str], Counted] = {}
    for item in select(items, ast.PositionsStmt):
        node = item.statement
        assert isinstance(node, ast.PositionsStmt)
        axes = sizes.axes(node.axes, item)
        op = _operation(item, node, blocks, log)
        if op is None:
            continue
        rotary = isinstance(op, bl.Attention) and op.positions
        if not rotary and not (isinstance(op, bl.Bias) and "sequence" in op.over):
            log.at(item, "PL378", f"no positions are used where `{node.tensor}` is made", node.span,
                   "name what an `attention ... positions`, or a bias over `sequence`, makes")  # fmt: skip
        for axis in axes:
            new = Counted(node.block, node.tensor, axis, node.kind, item.origin(node.span))
            old = found.setdefault((node.block, node.tensor, axis), new)
            if old.kind != new.kind:
                _twice(item, node, axis, old.origin, log)
    return tuple(found.values())


def _operation(
    item: Item, node: ast.DrawnStmt | ast.PositionsStmt, blocks: tuple[Block, ...], log: Log
) -> bl.Operation | None:
    block = find_block(node.block, item, node.span, blocks, log)
    if block is None:
        return None
    found = next((op for op in block.operations if op.output == node.tensor), None)
    if found is None:
        made = [op.output for op in block.operations]
        log.at(item, "PL223", f"no operation of block `{node.block}` makes `{node.tensor}`", node.span,
               closest(node.tensor, made) or f"it makes {', '.join(made)}")  # fmt: skip
    return found


def _twice(item: Item, node: ast.DrawnStmt | ast.PositionsStmt, axis: str, first: Origin, log: Log) -> None:
    log.at(item, "PL322", f"this is stated differently for `{node.tensor}` over {axis} in line {first.span.line}",
           node.span, "say it once")  # fmt: skip
