"""Puts every question that a verdict rests on, as it stands, to z3 and to a second solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from placelogic.prove import second, solver
from placelogic.prove.queries import Basis, Question
from placelogic.prove.solver import RLIMIT, TIMEOUT_S, Answer, Limits


class Checked(Struct, frozen=True):
    """A question, and what z3 and cvc5 say to it as it stands; None: cvc5 was not asked."""

    question: Question
    z3: Answer
    cvc5: Answer | None = None

    @property
    def answers(self) -> tuple[Answer, ...]:
        return (self.z3,) if self.cvc5 is None else (self.z3, self.cvc5)

    @property
    def apart(self) -> bool:
        """The solvers contradict each other."""
        return {"sat", "unsat"} <= {answer.status for answer in self.answers}

    @property
    def confirmed_by(self) -> tuple[str, ...]:
        """The solvers that say what the verdict rests on."""
        pairs = zip(("z3", "cvc5"), self.answers)
        return tuple(name for name, answer in pairs if answer.status == self.question.status)

    @property
    def confirmed(self) -> bool:
        """Some solver says what the verdict rests on, and none says otherwise. What was never decided, or of which
        nothing is written, needs none."""
        said = {answer.status for answer in self.answers} - {"unknown"}
        return self.question.status == "unknown" or self.question.bare or said == {self.question.status}

    @property
    def contradicted(self) -> bool:
        """Some solver says otherwise than what the verdict rests on."""
        said = {answer.status for answer in self.answers} - {"unknown"}
        return self.question.status != "unknown" and bool(said - {self.question.status})

    @property
    def only_z3(self) -> bool:
        return self.z3.status != "unknown" and self.cvc5 is not None and self.cvc5.status == "unknown"


def confirm(basis: Basis, rlimit: int = RLIMIT, timeout_s: float = TIMEOUT_S) -> tuple[Checked, ...]:
    """What z3 says to every question as it stands."""
    limits = Limits(rlimit, timeout_s)

    def ask(text: str) -> Answer:
        found = solver.answer(text, limits, tactics=False)
        return solver.answer(text, limits) if found.status == "unknown" else found

    said = _all(basis, ask)
    return tuple(Checked(question, said[id(question)]) for question in basis.questions)


def recheck(basis: Basis, rlimit: int = RLIMIT, timeout_s: float = TIMEOUT_S) -> tuple[Checked, ...]:
    """What both solvers say, in order. Raises second.NotInstalled."""
    said = _all(basis, lambda text: second.answer(text, timeout_s))
    return tuple(replace(one, cvc5=said[id(one.question)]) for one in confirm(basis, rlimit, timeout_s))


def _all(basis: Basis, ask: Callable[[str], Answer]) -> Mapping[int, Answer]:
    """What should hold nowhere, and what should hold at one example, all at once; one by one only if that does not
    decide them."""
    found = {id(one): Answer("unknown") for one in basis.questions if one.bare}
    asked = [one for one in basis.questions if not one.bare]
    proofs = [one for one in asked if one.status == "unsat"]
    fitting = [one for one in asked if one.kind == "fitting"]
    for how, status, several in (("or", "unsat", proofs), ("and", "sat", fitting)):
        if len(several) > 1 and (answer := ask(basis.together(how, several))).status == status:
            found.update((id(one), answer) for one in several)
    return {**found, **_each(basis, (one for one in asked if id(one) not in found), ask)}


def _each(basis: Basis, questions: Iterable[Question], ask: Callable[[str], Answer]) -> Mapping[int, Answer]:
    known: dict[str, Answer] = {}
    found = {}
    for one in questions:
        text = basis.text(one)
        if text not in known:
            known[text] = ask(text)
        found[id(one)] = known[text]
    return found
