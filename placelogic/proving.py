"""The command `prove`: the statements of proofs/, proved again and told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TextIO

from placelogic.problem import closest
from placelogic.prove import statements
from placelogic.prove.reprove import reprove, versions
from placelogic.report.proofs import ProofReport, StatementReport, closing_lines, render, statement_lines
from placelogic.report.terminal import Printer, Progress, terminal_width


class UnknownStatement(Exception):
    """There is no statement of this name; the message has the closest one."""


def prove_statements(names: Sequence[str], form: Literal["text", "json"], out: TextIO, err: TextIO) -> int:
    """Prove the statements of these names, or all, and print the report. Returns the exit code.

    Raises UnknownStatement, and statements.BadProof."""
    known = statements.names()
    for name in names:
        if name not in known:
            hint = closest(name, known)
            raise UnknownStatement(f"there is no statement `{name}`{f'; {hint}' if hint else ''}")
    chosen = statements.load(names)
    solvers = versions()
    width = terminal_width(out)
    printer = Printer(out)
    progress = Progress([one.name for one in chosen], err)
    column = max((len(one.name) for one in chosen), default=0)
    done: list[StatementReport] = []
    try:
        progress.step()
        for one in chosen:
            done.append(reprove(one, solvers))
            if form == "text":
                progress.clear()
                printer.lines(statement_lines(done[-1], tuple(solvers), column, width))
            progress.step()
    finally:
        progress.clear()
    report = ProofReport(solvers, tuple(done))
    if form == "text":
        printer.lines(closing_lines(report))
    else:
        out.write(render(report) + "\n")
    return report.exit_code
