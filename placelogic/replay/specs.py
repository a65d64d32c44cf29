"""`replay`: specs executed by PyTorch, and what comes out held against their verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.files import whole
from placelogic.problem import Problem, SpecError
from placelogic.report.replayed import NotReplayed, Replayed, ReplayReport, on_one_device

if TYPE_CHECKING:
    from placelogic.program.program import Program
    from placelogic.replay.cases import Case, Left
    from placelogic.replay.judge import Choice, Outcome
    from placelogic.replay.native.recognise import Native
    from placelogic.report.diagnostic import Finding, SpecReport

MOST_COUNTED = 4096
"""Ranks of a mesh whose bytes are counted without running it."""

OPTIMIZERS: dict[str, tuple[str | None, ...]] = {
    "both": ("sgd", "adam"),
    "sgd": ("sgd",),
    "adam": ("adam",),
    "spec": (None,),
}
"""Adam hides a gradient that is only scaled, so both are run unless told otherwise."""


class Wishes(Struct, frozen=True):
    """What the command line asks for. `counterexamples`: only refuted specs. `way`:
    "direct", "native", or "both" where a component does what the program says."""

    mesh: Mapping[str, int] = field(default_factory=dict)
    device: str = "cpu"
    dtype: str = "float64"
    steps: int = 3
    optimizer: str = "both"
    seed: int = 0
    counterexamples: bool = False
    way: str = "both"
    limit: float = 120.0


Tell = Callable[[str], None]


def replay_text(text: str, path: str, name: str | None, wishes: Wishes, tell: Tell) -> ReplayReport:
    """Replay the specs of a file, or the one named. `tell` hears what is being done. Raises SpecError,
    with PL061 where torch or NumPy is missing."""
    need_torch(path, wishes.device)
    replayed: list[Replayed] = []
    left: list[NotReplayed] = []
    for spec, program, report in judged(text, path, name, tell):
        if program is None:
            left.append(NotReplayed(spec, report.verdict, _why(report), True))
            continue
        for outcome in _spec(program, report, wishes, tell):
            (replayed if isinstance(outcome, Replayed) else left).append(outcome)  # type: ignore[arg-type]
    return ReplayReport(path, wishes.device, wishes.dtype, wishes.steps, tuple(replayed), tuple(left))


def need_torch(path: str, device: str) -> None:
    """Raises SpecError PL061, also where NumPy is missing, which torch does not bring along, or the device."""
    from importlib.util import find_spec

    for module, name in (("torch", "PyTorch"), ("numpy", "NumPy")):
        if find_spec(module) is None:
            hint = "pip install '.[replay]' in the checkout"
            raise SpecError(Problem("PL061", f"a replay needs {name}, which is not installed", whole(path), hint))
    if device == "cuda":
        from placelogic.replay.launch import gpus

        if not gpus():
            message = "there is no GPU that PyTorch can use"
            raise SpecError(Problem("PL061", message, whole(path), "leave out `--device cuda`"))


def judged(text: str, path: str, name: str | None, tell: Tell) -> Iterator[tuple[str, Program | None, SpecReport]]:
    """Every spec with its program and the verdict on it. Raises SpecError PL014 for an unknown name."""
    from placelogic.report.diagnostic import SpecReport
    from placelogic.session.errors import findings_of
    from placelogic.session.session import Session

    for spec in Session(text, path).named(name):
        tell(f"{spec.name}: proving")
        try:
            yield spec.name, spec.program, spec.verdict
        except SpecError as error:
            yield spec.name, None, SpecReport(spec.name, "error", findings=findings_of(error, whole(path)))


def _why(report: SpecReport) -> str:
    return "; ".join(f"{finding.code}: {finding.message}" for finding in report.findings[:2])


def _spec(program: Program, report: SpecReport, wishes: Wishes, tell: Tell) -> Iterator[Replayed | NotReplayed]:
    from placelogic.replay.cases import Case, cases
    from placelogic.replay.meshes import MOST_RANKS

    if wishes.counterexamples and report.verdict != "refuted":
        yield NotReplayed(report.name, report.verdict, "it has no counterexample", False)
        return
    for one in cases(program, report, wishes.mesh, MOST_COUNTED if wishes.mesh else MOST_RANKS):
        if isinstance(one, Case):
            yield from _case(one, wishes, tell)
        else:
            yield _not(one)


def _not(left: Left) -> NotReplayed:
    return NotReplayed(left.name, left.verdict, left.reason, left.failed)


def _case(case: Case, wishes: Wishes, tell: Tell) -> Iterator[Replayed | NotReplayed]:
    from placelogic.replay.launch import ReplayFailed

    sizes = ", ".join(f"{name}={size}" for name, size in case.meeting.sizes.items())
    tell(f"{case.name}: replaying at {sizes}")
    start = time.monotonic()
    try:
        for one in _run(case, wishes, start):
            yield on_one_device(one) if isinstance(one, Replayed) else one
    except ReplayFailed as failure:
        yield NotReplayed(case.name, case.verdict, str(failure), True)


def _run(case: Case, wishes: Wishes, start: float) -> Iterator[Replayed | NotReplayed]:
    from placelogic.replay.judge import replay
    from placelogic.replay.meshes import MOST_RANKS
    from placelogic.replay.native.recognise import NoComponent, recognise

    choice, native = choice_of(wishes), None
    try:
        if case.verdict == "refuted":
            raise NoComponent("components do what is right")
        native = recognise(case.meeting.program, case.meeting.sizes, case.meeting.quantities)
        if wishes.device != "cpu":
            from placelogic.replay.native.replay import check

            check(native, choice.place)
        reason = ""
    except NoComponent as found:
        native, reason = None, f"no component of torch: {found}"
    if case.meeting.ranks > MOST_RANKS:
        yield _counted(case, native, reason, choice)
        return
    if wishes.way != "native":
        for outcome in replay([case], choice):
            yield replace(told(outcome, time.monotonic() - start), reason=reason)
    elif native is None:
        yield NotReplayed(case.name, case.verdict, reason, False)
    if wishes.way != "direct" and native is not None:
        from placelogic.replay.native.replay import replayed

        yield from replayed(case, native, choice)


def _counted(case: Case, native: Native | None, reason: str, choice: Choice) -> Replayed | NotReplayed:
    """A mesh too large to run: what one rank of it holds and sends."""
    from placelogic.replay.native import large
    from placelogic.replay.native.recognise import NoComponent

    if native is not None:
        try:
            large.check(native)
            return large.replayed(case, native, choice)
        except NoComponent as found:
            reason = str(found)
    return NotReplayed(case.name, case.verdict, f"{case.meeting.ranks} devices are too many to run; {reason}", False)


def choice_of(wishes: Wishes) -> Choice:
    from placelogic.replay.judge import Choice
    from placelogic.replay.launch import Place

    place = Place(wishes.device, wishes.dtype)
    return Choice(OPTIMIZERS[wishes.optimizer], wishes.steps, wishes.seed, place, wishes.limit)


def told(outcome: Outcome, seconds: float) -> Replayed:
    """An outcome of the direct way, as the report has it."""
    from placelogic.replay.accounts import accounts

    case = outcome.case
    agrees = None if outcome.result == "inconclusive" else outcome.agrees
    return Replayed(
        spec=case.name,
        verdict=case.verdict,
        mesh=dict(case.meeting.sizes),
        quantities=dict(case.meeting.quantities),
        way="direct",
        reason="",
        result=outcome.result,
        agrees=agrees,
        code=case.code,
        weights=case.weights,
        smaller=dict(case.meeting.smaller),
        differences=dict(outcome.worst),
        factor=outcome.factor,
        stopped=outcome.reason if outcome.result == "cannot run" else None,
        optimizers=tuple(run.optimizer for run in outcome.runs),
        bytes=accounts(case, outcome.runs[-1]) if case.expected == "equal" else (),
        seconds=seconds,
    )


def script_of(text: str, path: str, name: str | None, tell: Tell) -> tuple[str, str]:
    """A short program that shows the counterexample of the first refuted spec, or of the one named, and what
    it shows. Raises SpecError: PL014, PL062, or what is wrong with the spec."""
    for spec, program, report in judged(text, path, name, tell):
        if program is None:
            raise SpecError(*(f.problem for f in report.findings))
        errors = [f for f in report.findings if f.severity == "error" and f.counterexample is not None]
        if report.verdict == "refuted" and errors:
            found, text = _first_shown(program, errors, f"{path}, spec {spec}")
            return text, f"{found.code} of {spec}"
    raise SpecError(Problem("PL062", "no spec here is refuted, so there is no counterexample to show", whole(path)))


def _first_shown(program: Program, errors: list[Finding], source: str) -> tuple[Finding, str]:
    """The first finding that a short program shows. Raises SpecError PL062: why the first of all is not shown."""
    from placelogic.replay.script import script

    first: SpecError | None = None
    for finding in errors:
        try:
            return finding, script(program, finding, source)
        except SpecError as error:
            first = first or error
    assert first is not None
    raise first
