"""The answer: sound, costly, unsound, or a combination that cannot even be written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.combine.compose import PATH, Composition, compose
from placelogic.combine.conditions import Condition, conditions
from placelogic.compat import assert_never
from placelogic.problem import SpecError
from placelogic.program.program import Program
from placelogic.report.diagnostic import FileReport, Finding, SpecReport
from placelogic.session.check import check_session
from placelogic.session.session import Session
from placelogic.session.settings import Settings

if TYPE_CHECKING:
    from placelogic.cost.repeated import Repeated

Answer = Literal["sound", "costly", "unsound", "meaningless", "undecided"]


class Combination(Struct, frozen=True):
    """`answer`: *sound* and *costly* are proved; *costly* where one strategy works by micro-batches and another
    moves more with every one of them; `staged` is the axis of the former, and
    `uncosted` says why costs are not known, where they are not. *meaningless*: the strategies contradict each other in what they say of
    one axis, or say what is not modelled, so that there is no spec to decide. `overridden`: strategies of which
    no cut is left, because others say more specifically where everything lies. `together`: the answer where the strategies share their first axis; None if asked
    for that, or where there is no axis to share. `refused`: rules of a framework against it, if one was asked about."""

    composition: Composition
    answer: Answer
    report: FileReport
    conditions: tuple[Condition, ...] = ()
    costs: tuple[Repeated, ...] = ()
    uncosted: str | None = None
    staged: str | None = None
    overridden: tuple[str, ...] = ()
    together: Combination | None = None
    refused: tuple[Finding, ...] = ()

    @property
    def spec(self) -> SpecReport:
        return self.report.specs[0]

    @property
    def codes(self) -> tuple[str, ...]:
        """What is wrong, each once."""
        errors = (finding.code for finding in self.spec.findings if finding.severity == "error")
        return tuple(dict.fromkeys(errors))


class Question(Struct, frozen=True):
    """`words`: names of strategies, or calls. `more`: statements to add. `at`: sizes to fix."""

    words: tuple[str, ...]
    same_axis: bool = False
    imports: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    at: Mapping[str, int] = field(default_factory=dict)


def answer(question: Question, *, full: bool = True) -> Combination:
    """Whether these strategies can be combined. `full`: also with what it rests on, and what becomes of it on
    one axis. Raises SpecError for words that name no strategy."""
    composition = compose(question.words, question.same_axis, question.imports, question.more)
    decided, program = _decided(composition, question)
    if not full:
        return decided
    held: tuple[Condition, ...] = ()
    if program is not None and decided.spec.verdict == "proved":
        held = conditions(composition, program, lambda text: check_session(_session(text, question)).specs[0])
    together = None
    if not question.same_axis and _can_share(question):
        shared = compose(question.words, True, question.imports, question.more)
        if shared.text != composition.text:
            together, _ = _decided(shared, question)
    return replace(decided, conditions=held, together=together)


def _can_share(question: Question) -> bool:
    """Where axes are named, they are the ones that are asked about."""
    return len(question.words) > 1 and not any("(" in word for word in question.words)


def _decided(composition: Composition, question: Question) -> tuple[Combination, Program | None]:
    session = _session(composition.text, question)
    report, program = check_session(session), _program(session)
    costs: tuple[Repeated, ...] = ()
    uncosted: str | None = None
    left: tuple[str, ...] = ()
    if program is not None and report.specs[0].verdict == "proved":
        from placelogic.cost.repeated import repeated

        left = _overridden(composition, question, program)
        try:
            costs = repeated(program)
        except SpecError as error:
            uncosted = error.problems[0].message
    staged = program.stages.axis if program is not None and program.stages is not None else None
    answered = _answer(report, bool(costs and staged))
    return Combination(composition, answered, report, (), costs, uncosted, staged, left), program


def _overridden(composition: Composition, question: Question, program: Program) -> tuple[str, ...]:
    """The strategies that cut something alone, and of whose cuts nothing is left."""
    kept = _cuts(program)
    found = []
    for part in composition.parts:
        alone = _program(_session(compose((part.call,), False, question.imports).text, question))
        mine = _cuts(alone) if alone is not None else set()
        if mine and not mine & kept:
            found.append(part.name)
    return tuple(found)


def _cuts(program: Program) -> set[tuple[str, str, str, str, str | None]]:
    layouts = {
        (group.name, state): layout
        for group in program.weights
        for state, layout in (
            ("params", group.params), ("optimizer", group.optimizer_state),
            ("gradients", group.gradients), ("activations", group.activations),
        )
    }  # fmt: skip
    return {
        (name, state, axis, cut.letter, cut.dim)
        for (name, state), layout in layouts.items()
        for cut in layout.cuts
        for axis in cut.axes
    }


def _answer(report: FileReport, costly: bool) -> Answer:
    verdict = report.specs[0].verdict
    match verdict:
        case "proved":
            return "costly" if costly else "sound"
        case "refuted":
            return "unsound"
        case "error":
            return "meaningless"
        case "undecided" | "vacuous":
            return "undecided"
        case _:
            assert_never(verdict)


def _session(text: str, question: Question) -> Session:
    return Session(text, PATH, Settings(question.at, fixes=None))


def _program(session: Session) -> Program | None:
    """Of its one spec, where it has just one that says what can be decided."""
    try:
        (spec,) = session.specs
        return spec.program
    except (SpecError, ValueError):
        return None
