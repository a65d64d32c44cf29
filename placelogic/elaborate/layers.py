"""The blocks of a spec, the sizes of their dimensions, and what is said about their boundaries."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from placelogic.elaborate.boundaries import find_block, read_exchanges, read_overrides
from placelogic.elaborate.drawn import read_counted, read_drawn
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.shapes import BlockReader, used_dims
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import Groups, select
from placelogic.problem import closest
from placelogic.program.block import Block, CrossEntropy, Dims, Layers, Region
from placelogic.program.expr import Expr, Num, number, show
from placelogic.program.program import Split
from placelogic.source import Span
from placelogic.syntax import ast

MAX_OPERATIONS = 500
"""In all blocks together: more than any layer needs."""


def read_layers(
    items: Sequence[Item], splits: tuple[Split, ...], sizes: Declared, groups: Groups, log: Log
) -> Layers | None:
    """All blocks of a spec, in written order; None in a spec that says nothing about operations."""
    dims = _dims(items, sizes, log)
    blocks: dict[str, tuple[Block, Item]] = {}
    joined: dict[str, Dims] = {}
    count = 0
    for item in select(items, ast.BlockStmt):
        node = item.statement
        assert isinstance(node, ast.BlockStmt)
        count += len(node.lines) + sum(len(x.lines) for x in node.lines if isinstance(x, ast.CheckpointLine))
        if count > MAX_OPERATIONS:
            log.once(item, "PL303", f"the blocks have more than {MAX_OPERATIONS} operations", node.span,
                     "a layer that is repeated needs one block: `block layer repeat L { ... }`")  # fmt: skip
            break
        if node.name in blocks:
            line = blocks[node.name][0].span.line
            log.at(item, "PL210", f"block `{node.name}` stands twice, first in line {line}", node.span, "rename one")
            continue
        block = _block(node, item, dims, sizes, groups, log, joined)
        if block is not None:
            blocks[node.name] = (block, item)
    _chain(blocks, log)
    for item in select(items, ast.CheckpointStmt):
        _checkpoint(item, blocks, sizes, log)
    for block, item in blocks.values():
        _check_regions(block, item, log)
    read = tuple(block for block, _ in blocks.values())
    overrides = read_overrides(items, read, sizes, groups, log)
    attention = read_exchanges(items, read, splits, sizes, log)
    if not select(items, ast.BlockStmt):
        for item in select(items, ast.DimsStmt)[:1]:
            log.at(item, "PL376", "dimensions are declared, and there is no block whose tensors have any",
                   item.statement.span, "write the operations of a layer: `block layer repeat L { ... }`")  # fmt: skip
        read_drawn(items, read, sizes, log)
        read_counted(items, read, sizes, log)
        return Layers({}, (), overrides) if overrides else None
    _check_used(items, read, log)
    drawn, counted = read_drawn(items, read, sizes, log), read_counted(items, read, sizes, log)
    used = used_dims(read)
    return Layers({name: dims[name] for name in dims if name in used}, read, overrides, attention, drawn, counted)


def _dims(items: Sequence[Item], sizes: Declared, log: Log) -> dict[str, Expr]:
    found: dict[str, tuple[Expr, Item, Span]] = {}
    names: list[str] = []
    for item in select(items, ast.DimsStmt):
        assert isinstance(item.statement, ast.DimsStmt)
        for dim in item.statement.sizes:
            names.append(dim.name)
            if dim.size is None:
                continue
            value = sizes.expr(dim.size, item, dim.span)
            sizes.positive(value, f"dimension `{dim.name}`", item, dim.span)
            first = found.setdefault(dim.name, (value, item, dim.span))
            if first[0] != value:
                log.at(item, "PL309", f"dimension `{dim.name}` has another size in line {first[1].at(first[2]).line}",
                       dim.span, "give it one size")  # fmt: skip
    return {name: found[name][0] if name in found else sizes.dims[name] for name in dict.fromkeys(names)}


def _check_used(items: Sequence[Item], blocks: tuple[Block, ...], log: Log) -> None:
    """A size for a dimension that no tensor has is most likely meant for another: logged in the file itself."""
    used = used_dims(blocks)
    for item in select(items, ast.DimsStmt):
        assert isinstance(item.statement, ast.DimsStmt)
        for dim in item.statement.sizes:
            if blocks and item.use is None and dim.size is not None and dim.name not in used:
                log.doubt(item, "PL224", f"no tensor of a block has the dimension `{dim.name}`", dim.span,
                       closest(dim.name, used) or f"dimensions: {', '.join(sorted(used))}")  # fmt: skip


def _block(
    node: ast.BlockStmt, item: Item, dims: dict[str, Expr], sizes: Declared, groups: Groups, log: Log,
    joined: dict[str, Dims],
) -> Block | None:  # fmt: skip
    before = len(log.problems)
    first, *rest = node.lines
    inputs = [line for line in node.lines if isinstance(line, ast.InputLine)]
    if len(inputs) != 1 or inputs[0] is not first:
        log.at(item, "PL373", f"block `{node.name}` must say once, in its first line, what it reads",
               (inputs[-1] if len(inputs) > 1 else node).span, "begin it with `input x(batch, sequence, hidden)`")  # fmt: skip
        return None
    repeat = None if node.repeat is None else sizes.expr(node.repeat, item, node.span)
    if repeat is not None:
        sizes.positive(repeat, f"the number of layers of block `{node.name}`", item, node.span)
    reader = BlockReader(item, dims, sizes, groups, log, joined)
    if reader.known(inputs[0].dims, inputs[0].span):
        reader.define(inputs[0].name, inputs[0].dims, inputs[0].span)
    else:
        reader.failed.add(inputs[0].name)
    regions: list[Region] = []
    for line in rest:
        if isinstance(line, ast.CheckpointLine):
            start = len(reader.operations)
            for inner in line.lines:
                reader.read(inner)
            regions.append(Region(start, len(reader.operations) - 1, item.origin(line.span)))
        elif isinstance(line, ast.OperationLine):
            reader.read(line)
    if len(log.problems) > before:
        return None
    if not reader.operations:
        log.at(item, "PL373", f"block `{node.name}` does nothing with what it reads", node.span, "leave it out")
        return None
    result = reader.operations[-1].output
    unused = [name for name in reader.tensors if name not in reader.used and name != result]
    if unused:
        span = next((op.origin.span for op in reader.operations if op.output == unused[0]), item.at(inputs[0].span))
        log.add("PL374", f"nothing uses `{unused[0]}`: a block leaves what its last line makes, `{result}`", span,
                "use it, or leave it out")  # fmt: skip
    return Block(
        node.name, repeat, inputs[0].name, result, reader.tensors, tuple(reader.operations), tuple(regions),
        item.at(node.span),
    )  # fmt: skip


def _chain(blocks: dict[str, tuple[Block, Item]], log: Log) -> None:
    """Each block reads what the one before it leaves; equal layers read what they leave."""
    before: Block | None = None
    names = list(blocks)
    for block, item in blocks.values():
        arrives, leaves = block.tensors[block.input], block.tensors[block.result]
        if before is not None and before.tensors[before.result] != arrives:
            shape = f"{before.result}({', '.join(before.tensors[before.result])})"
            log.at(item, "PL375", f"block `{block.name}` reads {block.input}({', '.join(arrives)}), and block "
                   f"`{before.name}` before it leaves {shape}", item.statement.span,
                   "blocks follow each other in written order")  # fmt: skip
        if block.repeat not in (None, number(1)) and arrives != leaves:
            log.at(item, "PL375", f"block `{block.name}` is repeated, and leaves ({', '.join(leaves)}) where it reads "
                   f"({', '.join(arrives)})", item.statement.span, "a layer leaves what it reads")  # fmt: skip
        for position, op in enumerate(block.operations):
            last = block.name == names[-1] and position == len(block.operations) - 1
            if isinstance(op, CrossEntropy) and not (last and block.repeat in (None, number(1))):
                log.add("PL375", "the loss stands at the very end: in the last line of the last block, which is not "
                        "repeated", op.origin.span, "move it there")  # fmt: skip
        before = block


# --- recomputation ----------------------------------------------------------------------------


def _checkpoint(item: Item, blocks: dict[str, tuple[Block, Item]], sizes: Declared, log: Log) -> None:
    node = item.statement
    assert isinstance(node, ast.CheckpointStmt)
    found = find_block(node.block, item, node.span, [block for block, _ in blocks.values()], log)
    if found is None:
        return
    outputs = [op.output for op in found.operations]
    ends = (0, len(outputs) - 1)
    every = None if node.every is None else sizes.expr(node.every, item, node.span)
    if every is not None:
        sizes.positive(every, "the number of layers that run again together", item, node.span)
        _fits(found, every, item, log)
    if node.first is not None:
        for name in (node.first, node.last or node.first):
            if name not in outputs:
                log.at(item, "PL223", f"no operation of block `{node.block}` makes `{name}`", node.span,
                       closest(name, outputs) or f"it makes {', '.join(outputs)}")  # fmt: skip
                return
        ends = (outputs.index(node.first), outputs.index(node.last or node.first))
        if ends[0] > ends[1]:
            log.at(item, "PL377", f"`{node.last}` is made before `{node.first}`", node.span, "turn them round")
            return
    if every == number(1):
        every = None  # each by itself
    region = Region(*ends, item.origin(node.span), every)
    blocks[found.name] = (replace(found, regions=(*found.regions, region)), blocks[found.name][1])


def _fits(block: Block, every: Expr, item: Item, log: Log) -> None:
    """Logged where there are fewer layers than are to run together."""
    repeat = number(1) if block.repeat is None else block.repeat
    if isinstance(every, Num) and (every.value.denominator != 1 or isinstance(repeat, Num) and repeat.value < every.value):
        log.at(item, "PL377", f"block `{block.name}` has {show(repeat)} layers, which are not run again by {show(every)}",
               item.statement.span, "let it be a whole number, and no more than there are layers")  # fmt: skip


def _check_regions(block: Block, item: Item, log: Log) -> None:
    ordered = sorted(block.regions, key=lambda region: region.first)
    for left, right in zip(ordered, ordered[1:]):
        if right.first <= left.last:
            log.add("PL377", f"two checkpoints of block `{block.name}` share operations", right.origin.span,
                    "recompute each operation in one region")  # fmt: skip
