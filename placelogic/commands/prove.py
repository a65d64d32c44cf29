"""The command `prove`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from placelogic.prove.statements import Statement
    from placelogic.report.proofs import ProofReport, StatementReport


@click.command(short_help="Prove again, with every solver installed, what the verdicts rest on.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
def prove(names: tuple[str, ...], form: str) -> int:
    """Prove again the statements that verdicts rest on, all or those named: the rules of the value
    calculus for every N, and the theorem. z3 decides each, and cvc5 too where it is installed.

    \b
    placelogic prove
    placelogic prove reduce_share loop_sum
    placelogic prove --format json | jq '.statements[].verdict'

    Exit codes: 0 all proved, 1 any failed, 2 any error, 3 any undecided by every solver.
    """
    from placelogic.problem import closest
    from placelogic.prove import statements
    from placelogic.report.proofs import closing_lines, render
    from placelogic.report.terminal import Printer

    known = statements.names()
    for name in names:
        if name not in known:
            hint = closest(name, known)
            raise click.UsageError(f"there is no statement `{name}`{f'; {hint}' if hint else ''}")
    try:
        report = _proved(statements.load(names), form)
    except statements.BadProof as error:
        raise click.ClickException(str(error)) from None
    if form == "text":
        Printer(sys.stdout).lines(closing_lines(report))
    else:
        sys.stdout.write(render(report) + "\n")
    return report.exit_code


def _proved(chosen: Sequence[Statement], form: str) -> ProofReport:
    """The statements, each told as soon as it is decided."""
    from placelogic.prove.reprove import reprove, versions
    from placelogic.report.proofs import ProofReport, statement_lines
    from placelogic.report.terminal import Printer, Progress, terminal_width

    solvers = versions()
    width = terminal_width(sys.stdout)
    printer = Printer(sys.stdout)
    progress = Progress([one.name for one in chosen], sys.stderr)
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
    return ProofReport(solvers, tuple(done))
