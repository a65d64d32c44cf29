"""The one place that talks to z3. Queries are SMT-LIB text, so that another solver can repeat them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any, Literal

from msgspec import Struct

from placelogic.interruption import checkpoint
from placelogic.prove.formula import FALSE, TRUE, Formula, smt, symbol, unquoted, variables

RLIMIT = 20_000_000
"""Solver steps per query: the same on every machine, some seconds of work at most."""
CONVENIENCE_RLIMIT = 2_000_000
"""The same for queries that only make a counterexample smaller."""
TIMEOUT_S = 20.0
"""Wall clock per query, a backstop only."""


Status = Literal["sat", "unsat", "unknown"]


class Limits(Struct, frozen=True):
    rlimit: int = RLIMIT
    timeout_s: float = TIMEOUT_S


class Answer(Struct, frozen=True):
    """`model` where sat; `core` (names of assumptions) where unsat; `reason` where unknown."""

    status: Status
    model: Mapping[str, int] | None = None
    core: tuple[str, ...] = ()
    reason: str = ""


class Named(Struct, frozen=True):
    """An assumption that a proof may use, under the name that reports print."""

    name: str
    formula: Formula


def version() -> str:
    """The version of z3."""
    import z3

    return z3.get_version_string()


def interrupt() -> None:
    """End the query that runs in another thread, if any: it comes out as unknown."""
    if (z3 := sys.modules.get("z3")) is not None:
        z3.main_ctx().interrupt()
        if _shared.made is not None:
            _shared.made.interrupt()


class _Shared:
    """A context for texts with definitions. These stay in a context, and in every model that is made in it: so not in
    that of `Solver`, and it is made anew after some texts."""

    MOST = 20

    def __init__(self) -> None:
        self.made: Any = None
        self._left = 0

    def context(self) -> Any:
        import z3

        if self._left == 0:
            self.made, self._left = z3.Context(), self.MOST
        self._left -= 1
        return self.made


_shared = _Shared()


def answer(text: str, limits: Limits = Limits(), tactics: bool = True) -> Answer:
    """z3's answer to a text with one `(check-sat)`, asked on its own: nothing is left of other queries. Without
    `tactics`: by its plain core, which decides most within milliseconds, in a context that some such texts share."""
    import z3

    checkpoint()
    solver = z3.Solver(ctx=z3.Context()) if tactics else z3.SimpleSolver(ctx=_shared.context())
    solver.set("random_seed", 0)
    solver.set("ctrl_c", False)
    solver.set("rlimit", limits.rlimit)
    solver.set("timeout", max(1, int(limits.timeout_s * 1000)))
    try:
        solver.from_string(text)
        result = str(solver.check())
    except z3.Z3Exception as error:  # what it cannot read
        return Answer("unknown", reason=f"z3 failed: {' '.join(str(error).split())}")
    return Answer("unknown", reason=solver.reason_unknown()) if result == "unknown" else Answer(result)  # type: ignore[arg-type]


class Solver:
    """Decides whether a goal can hold under background facts and named assumptions.

    Deterministic: fixed seed, a resource limit per query. Raises Interrupted before and after a query when
    nobody waits for it any more (placelogic/interruption.py)."""

    def __init__(self, background: Iterable[Formula], named: Iterable[Named], limits: Limits) -> None:
        import z3

        self._z3 = z3
        self._limits = limits
        self._solver = z3.Solver()
        self._solver.set("random_seed", 0)
        self._solver.set(
            "ctrl_c", False
        )  # else an interrupt would come out as "unknown"; Python raises it after the query
        self._solver.set("rlimit", limits.rlimit)
        self._solver.set("timeout", max(1, int(limits.timeout_s * 1000)))
        self._names: dict[str, str] = {}
        facts = [formula for formula in background if formula != TRUE]
        named = list(named)
        parsed = self._parse([*facts, *(assumption.formula for assumption in named)])
        self._solver.add(*parsed[: len(facts)])
        for index, (assumption, term) in enumerate(zip(named, parsed[len(facts) :])):
            self._names[f"a{index}"] = assumption.name
            self._solver.assert_and_track(term, f"a{index}")

    def _parse(self, formulas: list[Formula]) -> list:
        names = dict.fromkeys(name for formula in formulas for name in variables(formula))
        lines = [f"(declare-const {symbol(name)} Int)" for name in names]
        # Wrapping keeps one parsed term per formula: a top-level `and` would be split.
        lines += [f"(assert (or {smt(formula)} false))" for formula in formulas]
        return list(self._z3.parse_smt2_string("\n".join(lines)))

    def check(self, goal: Formula = TRUE, *more: Formula, model: bool = False, quick: bool = False) -> Answer:
        """Whether `goal` (and `more`) can hold; `model`: also give sizes at which it does. `quick`: with a part of
        the steps only, where an answer is a convenience."""
        goals = [formula for formula in (goal, *more) if formula != TRUE]
        if FALSE in goals:
            return Answer("unsat")
        checkpoint()
        self._solver.push()
        if quick:
            self._solver.set("rlimit", min(CONVENIENCE_RLIMIT, self._limits.rlimit))
        try:
            if goals:
                self._solver.add(*self._parse(goals))
            started = monotonic()
            result = self._solver.check()
            checkpoint()
            if result == self._z3.sat:
                try:
                    return Answer("sat", model=self._model() if model else None)
                except ValueError:  # Python reads no number of so many digits
                    return Answer("unknown", reason="the sizes it found have thousands of digits")
            if result == self._z3.unsat:
                core = {str(term) for term in self._solver.unsat_core()}  # in an order of z3's own
                return Answer("unsat", core=tuple(name for key, name in self._names.items() if key in core))
            return Answer("unknown", reason=self._reason(monotonic() - started))
        finally:
            self._solver.pop()
            if quick:
                self._solver.set("rlimit", self._limits.rlimit)

    def _reason(self, seconds: float) -> str:
        """Why the solver gave up, in a person's words; z3 calls either limit "canceled"."""
        said = self._solver.reason_unknown()
        if seconds >= self._limits.timeout_s:
            return f"it ran for {self._limits.timeout_s:g} s, the limit"
        if "cancel" in said or "resource" in said:
            return f"it used {self._limits.rlimit} solver steps, the limit"
        return said

    def _model(self) -> dict[str, int]:
        model = self._solver.model()
        values = {}
        for declaration in model.decls():
            value = model[declaration]
            if self._z3.is_int_value(value):
                values[unquoted(declaration.name())] = value.as_long()
        return values
