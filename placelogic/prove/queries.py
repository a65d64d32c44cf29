"""What a verdict rests on, as data: the questions put to the solver, its answers, and their text.

Whoever does not trust one solver can ask another: the text is complete in itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from placelogic.prove.formula import FALSE, TRUE, Formula, equal
from placelogic.prove.raw import script
from placelogic.prove.solver import Named, Status
from placelogic.prove.written import Written

Kind = Literal["assumptions", "arithmetic", "obligation", "fitting", "left out"]

Settled = Literal["normal form", "z3"]

MEANING: dict[Kind, str] = {
    "assumptions": "sat: some mesh is allowed. unsat: none is, and the spec says nothing.",
    "arithmetic": "unsat: this makes sense at every allowed size. sat: it does not, and a model is such a size.",
    "fitting": "sat: there are sizes at which it comes out even. unsat: there are none.",
    "left out": "unsat: what was left out on the way holds nowhere. sat: it does, and something was left out wrongly.",
    "obligation": "unsat: the obligation holds at every allowed size. sat: it fails, and a model is such a size.",
}
"""What the answer to a question of each kind says."""


class Premises(Struct, frozen=True):
    """What holds at every allowed size: facts (sizes are positive, remainders), and the assumptions."""

    facts: tuple[Formula, ...] = ()
    assumptions: tuple[Named, ...] = ()


class Question(Struct, frozen=True):
    """Whether `goal` can hold under the premises, and the answer that the verdict rests on. `code` and `weights`: those
    of an obligation. `at`: sizes of an example, where there is one."""

    kind: Kind
    name: str
    goal: Formula
    status: Status
    code: str | None = None
    weights: str | None = None
    at: Mapping[str, int] | None = None

    @property
    def settled(self) -> Settled:
        """What the answer is from: where the normal form leaves a constant, no solver was asked."""
        return "normal form" if self.goal in (TRUE, FALSE) else "z3"

    @property
    def bare(self) -> bool:
        """Nothing is written of how it came out false: there is nothing to ask a solver."""
        return self.goal == FALSE and self.goal.raw is None

    @property
    def counts(self) -> bool:
        """Whether it is an obligation, as a report counts them."""
        return self.kind in ("obligation", "fitting")


class Basis(Struct, frozen=True):
    """Every question that a verdict rests on, as it stands. Empty where nothing was asked."""

    premises: Premises = field(default_factory=Premises)
    questions: tuple[Question, ...] = ()

    def text(self, question: Question) -> str:
        """The question in SMT-LIB 2, without an answer."""
        return script(self._named(), _goal(question))

    def together(self, how: Literal["or", "and"], questions: Iterable[Question]) -> str:
        """Whether any of these can hold, or all of them at once."""
        return script(self._named(), Written(how, tuple(map(_goal, questions))))

    def explained(self, question: Question, spec: str) -> str:
        """The same, with comments for a reader, and the answer that the verdict rests on as its status."""
        about = f"{question.kind}: {question.name}"
        heading = (f"spec: {spec}", about, MEANING[question.kind], _VARIABLES)
        return script(self._named(), _goal(question), heading, question.status)

    def _named(self) -> tuple[tuple[str, Formula], ...]:
        assumed = ((f"assume {one.name}", one.formula) for one in self.premises.assumptions)
        return (*(("fact", fact) for fact in self.premises.facts), *assumed)


def _goal(question: Question) -> Written:
    """At the sizes of its example, where there is one."""
    pins = (equal(name, value) for name, value in (question.at or {}).items() if "." not in name)
    return Written("and", (question.goal, *pins))


_VARIABLES = "|size.NAME| is the size NAME of the spec; a variable without this prefix is internal."
