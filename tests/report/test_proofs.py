"""The report of `placelogic prove`: verdicts of statements from answers to queries."""

from __future__ import annotations

from placelogic.report.layout import plain
from placelogic.report.proofs import (
    Answer,
    Decision,
    ProofReport,
    QueryReport,
    StatementReport,
    as_dict,
    closing_lines,
    statement_lines,
)


def statement(*answers: tuple[Answer | None, Answer | None]) -> StatementReport:
    """A statement with one query per pair of answers, all expected to be unsat."""
    queries = tuple(
        QueryReport(f"q{i}", f"name.q{i}.smt2", "unsat", (Decision("z3", a, 0.1), Decision("cvc5", b, 0.2, "it gave up")))
        for i, (a, b) in enumerate(answers)
    )
    return StatementReport("name", "a title", "a source", ("something",), queries)


def text(report: StatementReport) -> str:
    return "\n".join(plain(line) for line in statement_lines(report, ("z3", "cvc5"), 6, None))


def test_proved_by_both() -> None:
    report = statement(("unsat", "unsat"), ("unsat", "unsat"))
    assert (report.verdict, report.by("z3"), report.by("cvc5")) == ("proved", "proved", "proved")
    assert text(report).splitlines() == [
        "name    z3 proved     cvc5 proved       0.60 s",
        "    a title",
        "    assumes: something",
    ]


def test_one_solver_only() -> None:
    report = statement(("unsat", "unknown"), ("unsat", "unsat"))
    assert (report.verdict, report.by("cvc5")) == ("proved", "undecided")
    assert "decided by z3 only" in text(report)
    assert "q0: cvc5 says unknown: it gave up, and unsat is needed (name.q0.smt2)" in text(report)


def test_each_query_by_another_solver() -> None:
    report = statement(("unsat", "unknown"), ("unknown", "unsat"))
    assert (report.verdict, report.by("z3"), report.by("cvc5")) == ("proved", "undecided", "undecided")


def test_undecided_and_failed() -> None:
    assert statement(("unknown", "unknown")).verdict == "undecided"
    assert statement(("sat", "sat"), ("unknown", "unknown")).verdict == "failed"
    assert ProofReport({}, (statement(("unknown", "unknown")),)).exit_code == 3
    assert ProofReport({}, (statement(("unknown", "unknown")), statement(("sat", "unknown")))).exit_code == 1
    assert ProofReport({}, (statement(("unsat", "unknown")),)).exit_code == 0


def test_disagreement_fails() -> None:
    report = statement(("unsat", "sat"))
    assert report.verdict == "failed"
    assert report.disagreements
    assert "the solvers disagree" in text(report)


def test_not_installed() -> None:
    report = statement(("unsat", None))
    assert (report.verdict, report.by("cvc5")) == ("proved", None)
    assert "cvc5 not installed" in text(report)
    closing = [plain(line) for line in closing_lines(ProofReport({"z3": "4.1", "cvc5": None}, (report,)))]
    assert closing[1:] == [
        "z3 4.1: 1 of 1 proved",
        "cvc5: not installed (pip install cvc5)",
        "1 statement, 1 queries: 1 proved; 0 disagreements; 0.3 s",
    ]


def test_for_programs() -> None:
    found = as_dict(ProofReport({"z3": "4.1", "cvc5": None}, (statement(("unsat", None)),)))
    assert found["schema"] == "placelogic/prove/1"
    assert found["exit_code"] == 0
    assert found["statements"][0]["by"] == {"z3": "proved", "cvc5": None}
    assert found["statements"][0]["queries"][0]["answers"] == {"z3": "unsat", "cvc5": None}
