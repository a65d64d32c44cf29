"""What a verdict rests on, as data: the questions put to the solver, its answers, and their text.

Whoever does not trust one solver can ask another: the text is complete in itself.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from placelogic.prove.formula import FALSE, Formula
from placelogic.prove.solver import Named, Status, script

Kind = Literal["assumptions", "arithmetic", "obligation"]

MEANING: dict[Kind, str] = {
    "assumptions": "sat: some mesh is allowed. unsat: none is, and the spec says nothing.",
    "arithmetic": "unsat: this makes sense at every allowed size. sat: it does not, and a model is such a size.",
    "obligation": "unsat: the obligation holds at every allowed size. sat: it fails, and a model is such a size.",
}
"""What the answer to a question of each kind says."""


class Premises(Struct, frozen=True):
    """What holds at every allowed size: facts (sizes are positive, remainders), and the assumptions."""

    facts: tuple[Formula, ...] = ()
    assumptions: tuple[Named, ...] = ()


class Question(Struct, frozen=True):
    """Whether `goal` can hold under the premises, and what z3 said. `code` and `weights`: those of an
    obligation."""

    kind: Kind
    name: str
    goal: Formula
    status: Status
    code: str | None = None
    weights: str | None = None

    @property
    def trivial(self) -> bool:
        """The goal is the constant false, by exact arithmetic on polynomials: no solver was asked."""
        return self.goal == FALSE


class Basis(Struct, frozen=True):
    """Every question that a verdict rests on. Empty where nothing was asked."""

    premises: Premises = field(default_factory=Premises)
    questions: tuple[Question, ...] = ()

    def text(self, question: Question) -> str:
        """The question in SMT-LIB 2, without z3's answer."""
        return script(self._named(), question.goal)

    def explained(self, question: Question, spec: str) -> str:
        """The same, with comments for a reader, and z3's answer as its status."""
        about = f"{question.kind}: {question.name}"
        heading = (f"spec: {spec}", about, MEANING[question.kind], _VARIABLES)
        return script(self._named(), question.goal, heading=heading, status=question.status)

    def _named(self) -> tuple[Named, ...]:
        facts = (Named("fact", fact) for fact in self.premises.facts)
        return (*facts, *(Named(f"assume {one.name}", one.formula) for one in self.premises.assumptions))


_VARIABLES = "|size.NAME| is the size NAME of the spec; a variable without this prefix is internal."
