"""Proves the statements of `proofs/` again, with every solver that is installed, each from the same text."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from placelogic.prove import second, solver
from placelogic.prove.statements import Query, Statement
from placelogic.report.proofs import Decision, QueryReport, StatementReport

TIMEOUT_S = 10.0
"""Wall clock per query and solver; nearly all take a few milliseconds."""


def versions() -> dict[str, str | None]:
    """The solvers that are asked, None where one is not installed."""
    try:
        return {"z3": solver.version(), "cvc5": second.version()}
    except second.NotInstalled:
        return {"z3": solver.version(), "cvc5": None}


def reprove(statement: Statement, solvers: dict[str, str | None]) -> StatementReport:
    """Every query of the statement, decided by each solver."""
    queries = tuple(_report(statement, query, solvers) for query in statement.queries)
    return StatementReport(statement.name, statement.title, statement.source, statement.assumes, queries)


def _report(statement: Statement, query: Query, solvers: dict[str, str | None]) -> QueryReport:
    return QueryReport(query.name, statement.file(query), query.expected, tuple(_decisions(query.text, solvers)))


def _decisions(text: str, solvers: dict[str, str | None]) -> Iterator[Decision]:
    for name, version in solvers.items():
        if version is None:
            yield Decision(name, None)
            continue
        started = perf_counter()
        if name == "z3":
            answer = solver.answer(text, solver.Limits(timeout_s=TIMEOUT_S))
        else:
            answer = second.answer(text, TIMEOUT_S)
        yield Decision(name, answer.status, perf_counter() - started, answer.reason)
