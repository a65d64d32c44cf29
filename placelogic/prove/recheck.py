"""Puts every question that a verdict rests on to a second solver."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from placelogic.prove import second
from placelogic.prove.formula import Formula
from placelogic.prove.queries import Basis, Question
from placelogic.prove.solver import TIMEOUT_S, Answer

Outcome = Literal["agreed", "only_z3", "only_cvc5", "undecided", "trivial", "disagreed"]


class Second(Struct, frozen=True):
    """A question with the second solver's answer; None where the question is trivial, and it was not asked."""

    question: Question
    answer: Answer | None

    @property
    def outcome(self) -> Outcome:
        if self.answer is None:
            return "trivial"
        first, other = self.question.status, self.answer.status
        if first == "unknown":
            return "undecided" if other == "unknown" else "only_cvc5"
        if other == "unknown":
            return "only_z3"
        return "agreed" if first == other else "disagreed"


def recheck(basis: Basis, timeout_s: float = TIMEOUT_S) -> tuple[Second, ...]:
    """Every question, in order. A question that occurs several times is asked once.

    Raises second.NotInstalled."""
    answers: dict[Formula, Answer] = {}
    out: list[Second] = []
    for question in basis.questions:
        if question.trivial:
            out.append(Second(question, None))
            continue
        if question.goal not in answers:
            answers[question.goal] = second.answer(basis.text(question), timeout_s)
        out.append(Second(question, answers[question.goal]))
    return tuple(out)
