"""Blocks back to syntax, for `show`."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.compat import assert_never
from placelogic.program import block as bl
from placelogic.program.ops import Axes
from placelogic.source import NOWHERE
from placelogic.syntax import ast


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
    made = [ast.OperationLine(op.output, _operator(op), NOWHERE) for op in block.operations]
    done = 0
    for region in sorted(block.regions, key=lambda region: region.first):
        if region.every is not None:
            continue  # a statement of its own
        lines += made[done : region.first]
        lines.append(ast.CheckpointLine(tuple(made[region.first : region.last + 1]), NOWHERE))
        done = region.last + 1
    return ast.BlockStmt(block.name, block.repeat, (*lines, *made[done:]), NOWHERE)


def _operator(op: bl.Operation) -> ast.Operator:
    match op:
        case bl.Linear(_, x, weights, contracted, produced, grouped):
            return ast.LinearOp(grouped, x, weights, contracted, produced, NOWHERE)
        case bl.Bias(_, x, weights, over, scale):
            return ast.BiasOp(x, weights, over, scale, NOWHERE)
        case bl.Embedding(_, x, weights, vocabulary, produced):
            return ast.EmbeddingOp(x, weights, vocabulary, produced, NOWHERE)
        case bl.Norm(_, x, weights, over):
            return ast.NormOp(x, weights, over, NOWHERE)
        case bl.Elementwise():
            return ast.FunctionOp(op.function, op.input, op.factor, NOWHERE)
        case bl.Add(_, inputs):
            return ast.AddTensorsOp(inputs, NOWHERE)
        case bl.Multiply(_, inputs):
            return ast.MultiplyOp(inputs, NOWHERE)
        case bl.Concat(_, inputs, into):
            return ast.ConcatOp(inputs, into, NOWHERE)
        case bl.Attention():
            words = ("causal", "fused", "dropout", "positions")
            written = tuple(word for word in words if getattr(op, word))
            return ast.AttentionOp(op.query, op.key, op.value, written, NOWHERE)
        case bl.Router(_, x, weights, contracted, experts, top):
            return ast.RouterOp(x, weights, contracted, experts, top, NOWHERE)
        case bl.Dispatch(_, x, router):
            return ast.DispatchOp(False, x, router, NOWHERE)
        case bl.Combine(_, x, router):
            return ast.DispatchOp(True, x, router, NOWHERE)
        case bl.CrossEntropy(_, x, vocabulary, parallel):
            return ast.CrossEntropyOp(x, vocabulary, parallel, NOWHERE)
        case bl.Collective(_, x, kind, how, axes, dim, into):
            return ast.CollectiveOp(kind, x, refs(axes), how, dim, into, NOWHERE)
        case _:
            assert_never(op)


def refs(axes: Axes) -> tuple[ast.AxisRef, ...]:
    """One reference per atom."""
    return tuple(ast.AxisRef((axis,), NOWHERE) for axis in axes)
