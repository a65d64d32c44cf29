"""Evidence beside a verdict: a second solver's answers (`--recheck`), and every question as a file (`--emit-smt2`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic import __version__
from placelogic.evidence.export import Export, slug
from placelogic.io.writing import put
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import FileReport, Finding, Obligations, Recheck, SpecReport
from placelogic.session.errors import failed
from placelogic.session.settings import Settings
from placelogic.source import Span

if TYPE_CHECKING:
    from placelogic.program.program import Program
    from placelogic.prove import Options
    from placelogic.prove.queries import Basis
    from placelogic.prove.recheck import Checked

DISAGREEMENTS = "placelogic-disagreement"
"""The folder, below the current one, for questions that the solvers answer differently."""


class Evidence(Struct):
    """What is gathered during one run. `recheck`: ask the second solver too."""

    recheck: bool = False
    export: Export | None = None
    _decided: dict[str, tuple[Basis, tuple[Checked, ...] | None]] = field(default_factory=dict)

    def prove(self, program: Program, options: Options) -> SpecReport:
        """As `prove.prove`; what the report rests on is kept until its file is done."""
        from placelogic.prove import decide

        decision = decide(program, replace(options, confirm=options.confirm and not self.recheck))
        report, seconds = decision.report, None
        if self.recheck:
            from placelogic.prove.recheck import recheck

            seconds = recheck(decision.basis, options.rlimit, options.timeout_s)
            report = rechecked(report, program.span, decision.basis, seconds)
        self._decided[program.name] = (decision.basis, seconds)
        return report

    def file_done(self, file: FileReport) -> None:
        """All specs of the file have their reports; one that was never put to a solver has no questions."""
        if self.export is not None and not file.library:
            from placelogic.prove.queries import Basis

            for spec in file.specs:
                basis, seconds = self._decided.get(spec.name, (Basis(), None))
                self.export.add(file.path, file.text, spec.name, spec.verdict, basis, seconds)
        self._decided.clear()


def gather(reports: Callable[[Settings], Iterable[FileReport]], settings: Settings) -> Iterator[FileReport]:
    """The reports, with the evidence that the settings ask for written at the end. What cannot be done is
    a report too: at once, and the only one, where that is known before anything is proved."""
    if not settings.recheck and settings.emit_smt2 is None:
        yield from reports(settings)
        return
    try:
        if settings.recheck:
            _need_second_solver()
        export = None if settings.emit_smt2 is None else Export(settings.emit_smt2, settings.at)
    except SpecError as error:
        yield failed(error.problems[0].span.path, "", error)
        return
    evidence = Evidence(settings.recheck, export)
    for file in reports(replace(settings, prover=evidence.prove)):
        evidence.file_done(file)
        yield file
    if export is not None:
        try:
            export.write()
        except SpecError as error:
            yield failed(error.problems[0].span.path, "", error)


def _need_second_solver() -> None:
    from placelogic.prove.second import NotInstalled, version

    try:
        version()
    except NotInstalled:
        message = "cvc5, the second solver, is not installed"
        hint = "pip install '.[recheck]' in the checkout, or pip install cvc5"
        raise SpecError(Problem("PL017", message, Span("--recheck", 0, 0, 0, 0), hint)) from None


def rechecked(report: SpecReport, place: Span, basis: Basis, seconds: Sequence[Checked]) -> SpecReport:
    """The report with what both solvers said to the questions as they stand. Where the two disagree nothing is proved:
    the verdict is an internal error (PL904), and each such question is saved."""
    from placelogic.prove.undecided import as_it_stands

    apart = [one for one in seconds if one.apart]
    if apart:
        told = tuple(_disagreement(report.name, place, basis, one) for one in apart)
        return replace(report, verdict="error", assumptions_used=(), obligations=Obligations(), findings=told)
    report = as_it_stands(report, place, seconds)
    alone = [one for one in seconds if one.only_z3]
    if alone:
        report = replace(report, findings=(*report.findings, _only_z3(alone, len(seconds), place)))
    z3, cvc5 = (sum(name in one.confirmed_by for one in seconds) for name in ("z3", "cvc5"))
    return replace(report, recheck=Recheck(len(seconds), z3, cvc5))


def _only_z3(alone: Sequence[Checked], asked: int, place: Span) -> Finding:
    names = list(dict.fromkeys(f"`{one.question.name}`" for one in alone))
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    reasons = ", ".join(dict.fromkeys(one.cvc5.reason for one in alone if one.cvc5 is not None))
    message = f"{len(alone)} of {asked} questions are decided by z3 only: cvc5 gave up on {shown} ({reasons})"
    return Finding("NT06", "note", message, place, help="raise --timeout, or fix some sizes with --at")


def _disagreement(spec: str, place: Span, basis: Basis, one: Checked) -> Finding:
    question = one.question
    theirs = one.cvc5.status if one.cvc5 is not None else "unknown"
    try:
        text, verdicts = _save(Path(DISAGREEMENTS), spec, basis, one)
    except OSError:  # the current folder is not ours to write
        import tempfile

        text, verdicts = _save(Path(tempfile.mkdtemp(prefix=f"{DISAGREEMENTS}-")), spec, basis, one)
    return Finding(
        "PL904",
        "error",
        f"internal error: z3 says {one.z3.status} and cvc5 says {theirs} to `{question.name}`",
        place,
        weights=question.weights,
        help=f"this is a bug in placelogic or in a solver: please report it with {text} and {verdicts}",
    )


def _save(folder: Path, spec: str, basis: Basis, one: Checked) -> tuple[Path, Path]:
    """The text of the question, and who said what to it. Raises OSError."""
    from placelogic.prove import second as cvc5
    from placelogic.prove import solver as z3

    question = one.question
    theirs = one.cvc5.status if one.cvc5 is not None else None
    text = basis.explained(question, spec)
    digest = hashlib.sha256(text.encode()).hexdigest()
    said = {
        "schema": "placelogic/disagreement/1",
        "placelogic": __version__,
        "spec": spec,
        "kind": question.kind,
        "name": question.name,
        "sha256": digest,
        "z3": {"version": z3.version(), "says": one.z3.status},
        "cvc5": {"version": cvc5.version(), "says": theirs},
    }
    stem = f"{slug(spec)}-{slug(question.name)}-{digest[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{stem}.smt2", folder / f"{stem}.json"
    put(paths[0], text)
    put(paths[1], json.dumps(said, indent=2) + "\n")
    return paths
