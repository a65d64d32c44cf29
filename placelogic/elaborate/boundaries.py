"""What is said about boundaries between operations: overrides, and how attention meets a split sequence."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import Groups, select
from placelogic.problem import closest
from placelogic.program.block import Attention, Block
from placelogic.program.habits import Exchange, Override
from placelogic.program.program import Split
from placelogic.source import Span
from placelogic.syntax import ast


def find_block(name: str, item: Item, span: Span, blocks: Sequence[Block], log: Log) -> Block | None:
    found = next((block for block in blocks if block.name == name), None)
    if found is None:
        names = [block.name for block in blocks]
        log.at(item, "PL225", f"there is no block `{name}`", span,
               closest(name, names) or (f"blocks: {', '.join(names)}" if names else "write one: `block layer { ... }`"))  # fmt: skip
    return found


# --- overrides --------------------------------------------------------------------------------


def read_overrides(
    items: Sequence[Item], blocks: tuple[Block, ...], sizes: Declared, groups: Groups, log: Log
) -> tuple[Override, ...]:
    result: list[Override] = []
    seen: dict[tuple[str, str | None, str, str], int] = {}
    for item in select(items, ast.OverrideStmt):
        node = item.statement
        assert isinstance(node, ast.OverrideStmt)
        place = _named(item, node, blocks, groups, log)
        axes = sizes.axes(node.axes, item)
        scale = None if node.scale is None else sizes.expr(node.scale, item, node.span)
        if place is None:
            continue
        for axis in axes:
            key = (node.direction, place.block, node.tensor, axis)
            line = seen.setdefault(key, item.at(node.span).line)
            if len(result) and any(_same(known, key) for known in result):
                log.at(item, "PL322", f"what happens {node.direction} to `{node.tensor}` over {axis} is stated in line "
                       f"{line} already", node.span, "say it once")  # fmt: skip
        result.append(Override(node.direction, place.block, node.tensor, axes, node.by, scale, item.origin(node.span)))
    return tuple(result)


def _same(override: Override, key: tuple[str, str | None, str, str]) -> bool:
    direction, block, tensor, axis = key
    return (override.direction, override.block, override.tensor) == (direction, block, tensor) and axis in override.axes


class _Place(Struct, frozen=True):
    """Where an override applies; no block where it names weights."""

    block: str | None


def _named(item: Item, node: ast.OverrideStmt, blocks: tuple[Block, ...], groups: Groups, log: Log) -> _Place | None:
    if not blocks:
        if node.block is not None:
            find_block(node.block, item, node.span, blocks, log)
        elif node.direction == "forward":
            log.at(item, "PL378", "what happens forward can only be said of the tensors of a block", node.span,
                   "write the operations of a layer: `block layer repeat L { ... }`")  # fmt: skip
        elif node.tensor not in groups.names:
            log.at(item, "PL202", f"there are no weights `{node.tensor}`", node.span,
                   closest(node.tensor, groups.names) or f"weights: {', '.join(sorted(groups.names)) or 'none'}")  # fmt: skip
        else:
            return _Place(None)
        return None
    if node.block is not None:
        found = find_block(node.block, item, node.span, blocks, log)
        if found is None:
            return None
        having = [found] if node.tensor in found.tensors else []
    else:
        having = [block for block in blocks if node.tensor in block.tensors]
    if len(having) == 1:
        return _Place(having[0].name)
    if having:
        names = " and ".join(f"`{block.name}`" for block in having)
        log.at(item, "PL378", f"there is a tensor `{node.tensor}` in {names}", node.span,
               f"say which: `{node.tensor} of {having[0].name}`")  # fmt: skip
    else:
        known = [name for block in blocks if node.block in (None, block.name) for name in block.tensors]
        log.at(item, "PL223", f"there is no tensor `{node.tensor}`", node.span,
               closest(node.tensor, known) or f"tensors: {', '.join(dict.fromkeys(known))}")  # fmt: skip
    return None


# --- attention over a split sequence ----------------------------------------------------------


def read_exchanges(
    items: Sequence[Item], blocks: tuple[Block, ...], splits: tuple[Split, ...], sizes: Declared, log: Log
) -> tuple[Exchange, ...]:
    """One per atom. In a spec without attention a library strategy may say so all the same, nobody else."""
    found: dict[str, Exchange] = {}
    attends = any(isinstance(op, Attention) for block in blocks for op in block.operations)
    for item in select(items, ast.AttentionStmt):
        node = item.statement
        assert isinstance(node, ast.AttentionStmt)
        axes = sizes.axes(node.axes, item)
        if not attends:
            if item.use is None:
                log.at(item, "PL376", "no block of this spec has attention, so nothing heeds this statement",
                       node.span, "leave it out, or write the operations of a layer")  # fmt: skip
            continue
        for axis in axes:
            exchange = Exchange(axis, node.by, item.origin(node.span))
            first = found.setdefault(axis, exchange)
            if first.by != node.by:
                log.at(item, "PL322", f"attention over {axis} is stated differently in line {first.origin.span.line}",
                       node.span, "say it once")  # fmt: skip
            elif not any(split.axis == axis and split.dim == "sequence" for split in splits):
                log.at(item, "PL351", f"axis `{axis}` does not split the sequence, so attention has nothing to exchange "
                       "over it", node.span, f"say `sequence over {axis}`, or leave the line out")  # fmt: skip
    return tuple(found.values())
