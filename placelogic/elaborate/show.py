"""A complete step program printed as a spec: the derived step, written out in the language.

What is printed parses and elaborates to the same program again, only that now everything is stated.
"""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.elaborate.tree import to_ast
from placelogic.program.catalog import STATES
from placelogic.program.program import Program
from placelogic.report.sentences import Sentence
from placelogic.syntax import ast


def show(program: Program) -> str:
    """The program as text. It must be complete: one step per trained group."""
    sentences = (Sentence("CC01", "conflict", one.weights, (one.axis,), one.words) for one in program.conflicts)
    notes = [f"# CC01: {sentence.text('message')}" for sentence in sentences]
    (first, *_) = statements = to_ast(program).statements
    if isinstance(first, ast.SpecDef):
        lines = [f"spec {first.name} {{", *_texts(first.body, 1), "}"]
    else:
        lines = _texts(statements, 0)
    return "\n".join([*notes, *lines]) + "\n"


def _texts(statements: Sequence[ast.Statement], indent: int) -> list[str]:
    """Placements of all four states as the paper's tuple; an empty line between unlike statements."""
    from placelogic.syntax.unparse import INDENT, axes_text, mode_letters, statement_text, target_text

    result: list[str] = []
    for before, node in zip((None, *statements), statements, strict=False):
        alone = isinstance(node, ast.StepStmt | ast.BlockStmt) or isinstance(before, ast.BlockStmt)
        apart = alone or type(node) in _SECTIONS and type(node) is not type(before)
        if before is not None and apart:
            result.append("")
        if isinstance(node, ast.PlaceStmt) and len(node.entries) == len(STATES) and node.axes:
            letters = ", ".join(mode_letters(entry.mode) for entry in node.entries)
            result.append(
                f"{INDENT * indent}place {target_text(node.target)} over {axes_text(node.axes)} = ({letters})"
            )
        else:
            result.append(statement_text(node, indent))
    return result


_SECTIONS = (ast.WeightsStmt, ast.DimsStmt, ast.PlaceStmt, ast.OptimizerStmt, ast.ExpectStmt)
