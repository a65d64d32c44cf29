"""The one place that talks to cvc5: it answers a question from its SMT-LIB text alone.

cvc5 is not needed to check a spec. It is imported when it is first asked.
"""

from __future__ import annotations

from time import monotonic

from placelogic.prove.solver import TIMEOUT_S, Answer

RLIMIT = 500_000
"""Steps per question, in cvc5's own count: some seconds of work at most."""


class NotInstalled(Exception):
    """There is no cvc5 to ask."""


def version() -> str:
    """The version of cvc5. Raises NotInstalled."""
    try:
        import cvc5
    except ImportError as error:
        raise NotInstalled(str(error)) from None
    return cvc5.__version__


def answer(text: str, timeout_s: float = TIMEOUT_S, rlimit: int = RLIMIT) -> Answer:
    """cvc5's answer to a text with one `(check-sat)`; unknown, with a reason, where it gives up or fails.

    Raises NotInstalled."""
    version()
    import cvc5

    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(max(1, int(timeout_s * 1000))))
    solver.setOption("rlimit-per", str(rlimit))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    symbols = parser.getSymbolManager()
    said: list[str] = []
    started = monotonic()
    try:
        while not (command := parser.nextCommand()).isNull():
            said += str(command.invoke(solver, symbols)).split("\n")
    except Exception as error:  # what it cannot read, and what goes wrong inside it
        return Answer("unknown", reason=f"cvc5 failed: {' '.join(str(error).split()) or type(error).__name__}")
    match [line for line in said if line]:
        case ["sat"]:
            return Answer("sat")
        case ["unsat"]:
            return Answer("unsat")
        case _ if monotonic() - started >= timeout_s:
            return Answer("unknown", reason=f"it ran for {timeout_s:g} s, the limit")
        case lines:
            return Answer("unknown", reason=" ".join(lines) or "it said nothing")
