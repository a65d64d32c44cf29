"""What a check is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from placelogic.cost.data import Options as Counting
    from placelogic.program.program import Program
    from placelogic.prove import Options
    from placelogic.report.diagnostic import SpecReport
    from placelogic.syntax.ast import BudgetStmt

Prover: TypeAlias = "Callable[[Program, Options], SpecReport]"


MOST_RLIMIT = 4_000_000_000
MOST_SECONDS = 1_000_000
"""What a solver can count: 32 bits of steps, and of milliseconds."""


class Settings(Struct, frozen=True):
    """`at` fixes sizes by name. `rlimit` (solver steps) and `timeout` (seconds, wall clock) bound one
    query to the solver; None leaves its own limits. `fixes`: look for an edit that mends a refuted
    spec, for those not meant to be refuted ("wanted"), for all ("always"), or never (None). `recheck`:
    ask cvc5 too. `emit_smt2`: the folder to write every question into. `prover`: what decides a program, where
    `prove.prove` does not. `minimum`: sizes that a spec which has them must reach together. `budget`: one that
    every spec has to keep beside its own. `every_fault`: of one gradient, tell also the faults that the first one
    hides. `counting`: how costs are counted."""

    at: Mapping[str, int] = field(default_factory=dict)
    require_stated: bool = False
    rlimit: int | None = None
    timeout: float | None = None
    fixes: Literal["always", "wanted"] | None = "wanted"
    recheck: bool = False
    emit_smt2: str | None = None
    prover: Prover | None = None
    minimum: Mapping[str, int] = field(default_factory=dict)
    budget: BudgetStmt | None = None
    every_fault: bool = False
    counting: Counting | None = None

    def __post_init__(self) -> None:
        for name, size in self.at.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"at: {name} must be a positive whole number, not {size!r}")
        if self.rlimit is not None and not 1 <= self.rlimit <= MOST_RLIMIT:
            raise ValueError(f"rlimit must be from 1 to {MOST_RLIMIT}, not {self.rlimit}")
        if self.timeout is not None and not 0 < self.timeout <= MOST_SECONDS:
            raise ValueError(f"timeout must be more than 0 and at most {MOST_SECONDS} seconds: {self.timeout} is not")

    @property
    def options(self) -> Options:
        """For the prover."""
        from placelogic.prove import Options

        options = Options(require_stated=self.require_stated, every=self.every_fault)
        if self.rlimit is not None:
            options = replace(options, rlimit=self.rlimit)
        if self.timeout is not None:
            options = replace(options, timeout_s=self.timeout)
        return options
