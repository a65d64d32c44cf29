"""Blocks and their operations to text."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.compat import assert_never
from placelogic.program.expr import show
from placelogic.syntax import ast

INDENT = "  "


def block_text(block: ast.BlockStmt, indent: int) -> str:
    """The block, its lines indented one level more than `indent`; the first line is not indented."""
    repeat = "" if block.repeat is None else f" repeat {show(block.repeat)}"
    lines = "\n".join(line_text(line, indent + 1) for line in block.lines)
    return f"block {block.name}{repeat} {{\n{lines}\n{INDENT * indent}}}"


def line_text(line: ast.BlockLine, indent: int = 0) -> str:
    pad = INDENT * indent
    match line:
        case ast.InputLine(name, dims):
            return f"{pad}input {name}({', '.join(dims)})"
        case ast.OperationLine(output, operator):
            return f"{pad}{output} = {operator_text(operator)}"
        case ast.CheckpointLine(lines):
            inner = "\n".join(line_text(one, indent + 1) for one in lines)
            return f"{pad}checkpoint {{\n{inner}\n{pad}}}"
        case _:
            assert_never(line)


def operator_text(op: ast.Operator) -> str:
    """`linear n with attn from hidden to heads, head`."""
    match op:
        case ast.LinearOp(grouped, x, weights, contracted, produced):
            return f"{'grouped ' if grouped else ''}linear {x} with {weights} from {_list(contracted)} to {_list(produced)}"
        case ast.BiasOp(x, weights, over, scale):
            scaled = "" if scale is None else f" scaled by {show(scale)}"
            return f"bias {x} with {weights} over {_list(over)}{scaled}"
        case ast.EmbeddingOp(x, weights, vocabulary, produced):
            return f"embedding {x} with {weights} from {vocabulary} to {_list(produced)}"
        case ast.NormOp(x, weights, over):
            return f"norm {x}{'' if weights is None else f' with {weights}'} over {_list(over)}"
        case ast.FunctionOp(function, x, factor):
            return f"{function} {x}{'' if factor is None else f' by {show(factor)}'}"
        case ast.AddTensorsOp(inputs):
            return f"add {_list(inputs)}"
        case ast.MultiplyOp(inputs):
            return f"multiply {_list(inputs)}"
        case ast.ConcatOp(inputs, into):
            return f"concat {_list(inputs)} to {into}"
        case ast.AttentionOp(query, key, value, words):
            return " ".join([f"attention {query}, {key}, {value}", *words])
        case ast.RouterOp(x, weights, contracted, experts, top):
            return f"router {x} with {weights} from {_list(contracted)} to {experts} top {show(top)}"
        case ast.DispatchOp(combine, x, router):
            return f"{'combine' if combine else 'dispatch'} {x} by {router}"
        case ast.CrossEntropyOp(x, vocabulary, parallel):
            return f"cross_entropy {x} over {vocabulary}{' parallel' if parallel else ''}"
        case ast.CollectiveOp():
            return _collective(op)
        case _:
            assert_never(op)


def _collective(op: ast.CollectiveOp) -> str:
    from placelogic.syntax.unparse import axes_text

    text = f"{op.kind} {op.input} over {axes_text(op.axes)}"
    match op.kind:
        case "reduce":
            return f"{text} by {op.op}"
        case "gather" | "slice" | "reduce_scatter":
            return f"{text} on {op.dim}"
        case "all_to_all":
            return f"{text} from {op.dim} to {op.into}"
        case "broadcast":
            return text
        case _:
            assert_never(op.kind)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
