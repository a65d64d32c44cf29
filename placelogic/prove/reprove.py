"""Proves the statements of `proofs/` again, with every solver that is installed, each from the same text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import perf_counter

from placelogic.prove.statements import Query, Statement
from placelogic.report.proofs import Answer, Decision, QueryReport, StatementReport

RLIMIT = 40_000_000
TIMEOUT_MS = 10_000
"""Bounds on one query, z3's own steps and the wall clock; most take a few milliseconds."""


def reprove(statement: Statement) -> StatementReport:
    """Every query of the statement, decided by each solver."""
    queries = tuple(_report(statement, query) for query in statement.queries)
    return StatementReport(statement.name, statement.title, statement.source, statement.assumes, queries)


def versions() -> dict[str, str | None]:
    """The solvers that could be asked, None where one is not installed."""
    import z3

    found: dict[str, str | None] = {"z3": z3.get_version_string(), "cvc5": None}
    if _has_cvc5():
        import cvc5

        found["cvc5"] = str(cvc5.__version__)
    return found


def _has_cvc5() -> bool:
    return find_spec("cvc5") is not None


def _report(statement: Statement, query: Query) -> QueryReport:
    return QueryReport(query.name, statement.file(query), query.expected, tuple(_decisions(query.text)))


def _decisions(text: str) -> Iterator[Decision]:
    yield _timed("z3", ask_z3, text)
    yield _timed("cvc5", ask_cvc5, text) if _has_cvc5() else Decision("cvc5", None)


def _timed(solver: str, ask: Callable[[str], tuple[Answer, str]], text: str) -> Decision:
    started = perf_counter()
    answer, reason = ask(text)
    return Decision(solver, answer, perf_counter() - started, reason)


def ask_z3(text: str) -> tuple[Answer, str]:
    """The answer to a query, and why there is none where it is unknown."""
    import z3

    solver = z3.Solver(ctx=z3.Context())
    solver.set("random_seed", 0)
    solver.set("ctrl_c", False)
    solver.set("rlimit", RLIMIT)
    solver.set("timeout", TIMEOUT_MS)
    solver.from_string(text)
    result = solver.check()
    if result == z3.unknown:
        return "unknown", solver.reason_unknown()
    return ("sat" if result == z3.sat else "unsat"), ""


def ask_cvc5(text: str) -> tuple[Answer, str]:
    """As ask_z3."""
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", str(TIMEOUT_MS))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "query")
    symbols = parser.getSymbolManager()
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols).strip() or said
    match said:
        case "sat" | "unsat":
            return said, ""
        case "unknown":
            return "unknown", "it gave up"
        case _:
            return "unknown", " ".join(said.split())
