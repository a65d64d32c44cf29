"""What a person would try where a fault lies in the operations of a layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace as changed

from placelogic.mend.edits import Edit, after, delete, replace
from placelogic.program import block as bl
from placelogic.report.diagnostic import Finding
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.forms import text_of
from placelogic.syntax.unparse import line_text, statement_text


def candidates(source: str, node: object, body: Sequence[ast.Statement], finding: Finding) -> Iterator[Edit]:
    """In the order in which they are tried."""
    match node:
        case ast.OverrideStmt(by=by):
            for other in ("sum", "none", "slice", "mean", "gather"):
                if other != by:
                    yield replace(node.span, statement_text(changed(node, by=other, scale=None)))
            if node.scale is not None:
                yield replace(node.span, statement_text(changed(node, scale=None)))
            yield delete(source, node.span)
        case bl.Collective(op="sum") if finding.code == "FW04":
            yield from _bias_after(node, body)
            if node.kind == "reduce":
                yield replace(node.span, text_of(changed(node, op="mean")))
        case bl.Collective() if finding.code == "FW06":
            yield from _handed_back(source, node, body, finding)
        case bl.CrossEntropy(parallel=False) if finding.code == "FW05":
            yield replace(node.span, text_of(changed(node, parallel=True)))


def _handed_back(source: str, node: bl.Collective, body: Sequence[ast.Statement], finding: Finding) -> Iterator[Edit]:
    """A line of what comes back through the collective, after its block."""
    for block in (statement for statement in body if isinstance(statement, ast.BlockStmt)):
        for line in block.lines:
            if isinstance(line, ast.OperationLine) and line.operator is node:
                for by in ("slice", "gather", "none", "sum"):
                    yield after(source, block.span, f"backward {line.output} over {', '.join(finding.axes)} by {by}")


def _bias_after(node: bl.Collective, body: Sequence[ast.Statement]) -> Iterator[Edit]:
    """`b = bias p ...`, `r = reduce b ...` turned round: the sum first, under the name of the other."""
    for block in (statement for statement in body if isinstance(statement, ast.BlockStmt)):
        lines = [line for line in block.lines if isinstance(line, ast.OperationLine)]
        for first, second in zip(lines, lines[1:]):
            bias = first.operator
            if second.operator is not node or not isinstance(bias, bl.Bias) or node.input != first.output:
                continue
            summed = changed(first, operator=changed(node, input=bias.input, output=first.output))
            added = changed(second, operator=changed(bias, input=first.output, output=second.output))
            span = Span(
                first.span.path, first.span.line, first.span.column, second.span.end_line, second.span.end_column
            )
            pad = " " * (first.span.column - 1)
            yield replace(span, f"{line_text(summed)}\n{pad}{line_text(added)}")
