"""The report of `placelogic prove`, as data and as lines: what each solver said of each statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from placelogic import __version__
from placelogic.report.layout import Line, Style, wrap

SCHEMA = "placelogic/prove/1"

Answer = Literal["sat", "unsat", "unknown"]
Verdict = Literal["proved", "failed", "undecided"]

_STYLES: dict[str, Style] = {"proved": "good", "failed": "bad", "undecided": "doubt"}


class Decision(Struct, frozen=True):
    """What one solver made of one query. `answer` None: this solver is not installed."""

    solver: str
    answer: Answer | None
    seconds: float = 0.0
    reason: str = ""


class QueryReport(Struct, frozen=True):
    """One query. `expected` is what makes it a part of the proof: `unsat` for a step of it, `sat` for a witness."""

    name: str
    file: str
    expected: Literal["sat", "unsat"]
    decisions: tuple[Decision, ...]

    @property
    def verdict(self) -> Verdict:
        """Of all solvers together: one wrong answer fails, one right answer proves."""
        answers = {d.answer for d in self.decisions} - {None, "unknown"}
        if answers - {self.expected}:
            return "failed"
        return "proved" if answers else "undecided"

    def by(self, solver: str) -> Verdict | None:
        """What this solver alone makes of it; None where it is not installed."""
        for decision in self.decisions:
            if decision.solver == solver and decision.answer is not None:
                if decision.answer == "unknown":
                    return "undecided"
                return "proved" if decision.answer == self.expected else "failed"
        return None


class StatementReport(Struct, frozen=True):
    """One statement: its queries, and what they take for granted."""

    name: str
    title: str
    source: str
    assumes: tuple[str, ...]
    queries: tuple[QueryReport, ...]

    @property
    def verdict(self) -> Verdict:
        return _worst(query.verdict for query in self.queries)

    @property
    def seconds(self) -> float:
        return sum(d.seconds for query in self.queries for d in query.decisions)

    @property
    def disagreements(self) -> tuple[QueryReport, ...]:
        """Queries of which one solver says sat and another unsat: a bug in one of them."""
        return tuple(q for q in self.queries if {"sat", "unsat"} <= {d.answer for d in q.decisions})

    def by(self, solver: str) -> Verdict | None:
        found = [query.by(solver) for query in self.queries]
        known = [verdict for verdict in found if verdict is not None]
        return _worst(known) if known else None


class ProofReport(Struct, frozen=True):
    """`solvers`: name -> version, None where it is not installed."""

    solvers: dict[str, str | None]
    statements: tuple[StatementReport, ...]

    @property
    def exit_code(self) -> int:
        """0 all proved, 1 any failed, else 3 when one is undecided by every solver."""
        return {"proved": 0, "failed": 1, "undecided": 3}[_worst(s.verdict for s in self.statements)]


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return "failed" if "failed" in found else "undecided" if "undecided" in found else "proved"


# --- text -----------------------------------------------------------------------------------


def statement_lines(report: StatementReport, solvers: Sequence[str], width: int, columns: int | None) -> list[Line]:
    """One line of verdicts, then what it assumes; queries only where something is not as it should be."""
    cells: list[tuple[str, Style]] = [(report.name.ljust(width), "strong")]
    for solver in solvers:
        verdict = report.by(solver)
        said = "not installed" if verdict is None else verdict
        cells += [(f"  {solver} ", ""), (said.ljust(9), _STYLES.get(said, "note"))]
    cells.append((f"  {report.seconds:6.2f} s", ""))
    lines: list[Line] = [tuple(cells)]
    text = f"{report.title}"
    lines += [((f"    {part}", ""),) for part in wrap(text, columns and columns - 4)]
    for assumed in report.assumes:
        first, *rest = wrap(assumed, columns and columns - 14)
        lines += [((f"    assumes: {first}", "note"),), *(((f"             {part}", "note"),) for part in rest)]
    alone = [solver for solver in solvers if report.by(solver) == "proved"]
    given_up = [solver for solver in solvers if report.by(solver) == "undecided"]
    if alone and given_up:
        lines.append(((f"    decided by {' and '.join(alone)} only", "warning"),))
    for query in report.queries:
        for decision in query.decisions:
            if decision.answer not in (None, query.expected):
                style: Style = "warning" if decision.answer == "unknown" else "error"
                why = f": {decision.reason}" if decision.reason else ""
                said = f"{decision.solver} says {decision.answer}{why}, and {query.expected} is needed"
                lines.append(((f"    {query.name}: {said} ({query.file})", style),))
    for query in report.disagreements:
        lines.append(((f"    {query.name}: the solvers disagree, which is a bug in one of them", "error"),))
    return lines


def closing_lines(report: ProofReport) -> list[Line]:
    statements = report.statements
    queries = sum(len(s.queries) for s in statements)
    total = sum(s.seconds for s in statements)
    lines: list[Line] = [()]
    for solver, version in report.solvers.items():
        if version is None:
            lines.append(((f"{solver}: not installed (pip install {solver})", "note"),))
            continue
        proved = sum(s.by(solver) == "proved" for s in statements)
        lines.append(((f"{solver} {version}: {proved} of {len(statements)} proved", ""),))
    verdicts = [s.verdict for s in statements]
    parts = [f"{verdicts.count(v)} {v}" for v in ("proved", "failed", "undecided") if v in verdicts]
    disagreements = sum(len(s.disagreements) for s in statements)
    noun = "statement" if len(statements) == 1 else "statements"
    style = _STYLES[_worst(verdicts)]
    text = f"{len(statements)} {noun}, {queries} queries: {', '.join(parts)}"
    lines.append(((text, style), (f"; {disagreements} disagreements; {total:.1f} s", "")))
    return lines


# --- for programs ---------------------------------------------------------------------------


def as_dict(report: ProofReport) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": __version__,
        "solvers": dict(report.solvers),
        "exit_code": report.exit_code,
        "statements": [_statement(statement, tuple(report.solvers)) for statement in report.statements],
    }


def _statement(report: StatementReport, solvers: Sequence[str]) -> dict[str, Any]:
    return {
        "name": report.name,
        "title": report.title,
        "source": report.source,
        "assumes": list(report.assumes),
        "verdict": report.verdict,
        "by": {solver: report.by(solver) for solver in solvers},
        "seconds": round(report.seconds, 4),
        "queries": [
            {
                "name": query.name,
                "file": query.file,
                "expected": query.expected,
                "answers": {d.solver: d.answer for d in query.decisions},
            }
            for query in report.queries
        ],
    }


def render(report: ProofReport) -> str:
    return json.dumps(as_dict(report), indent=2, ensure_ascii=True)
