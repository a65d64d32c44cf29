"""Evidence beside a verdict: a second solver's answers (`--recheck`), and every question as a file (`--emit-smt2`)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
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
    from placelogic.prove.recheck import Second

DISAGREEMENTS = "placelogic-disagreement"
"""The folder, below the current one, for questions that the solvers answer differently."""


class Evidence(Struct):
    """What is gathered during one run. `recheck`: ask the second solver too."""

    recheck: bool = False
    export: Export | None = None
    _decided: dict[str, tuple[Basis, tuple[Second, ...] | None]] = field(default_factory=dict)

    def prove(self, program: Program, options: Options) -> SpecReport:
        """As `prove.prove`; what the report rests on is kept until its file is done."""
        from placelogic.prove import decide

        decision = decide(program, options)
        report, seconds = decision.report, None
        if self.recheck:
            from placelogic.prove.recheck import recheck

            seconds = recheck(decision.basis, options.timeout_s)
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


def rechecked(report: SpecReport, place: Span, basis: Basis, seconds: Sequence[Second]) -> SpecReport:
    """The report with what the second solver said. Where the two disagree nothing is proved: the verdict
    is an internal error (PL904), and each such question is saved."""
    counts = Counter(second.outcome for second in seconds)
    apart = [second for second in seconds if second.outcome == "disagreed"]
    if apart:
        told = tuple(_disagreement(report.name, place, basis, second) for second in apart)
        return replace(report, verdict="error", assumptions_used=(), obligations=Obligations(), findings=told)
    told = report.findings
    alone = [second for second in seconds if second.outcome == "only_z3"]
    if alone:
        told = (*told, _only_z3(alone, counts, place))
    names = ("agreed", "only_z3", "only_cvc5", "undecided", "trivial")
    return replace(report, findings=told, recheck=Recheck(*(counts[name] for name in names)))


def _only_z3(alone: Sequence[Second], counts: Counter[str], place: Span) -> Finding:
    names = list(dict.fromkeys(f"`{second.question.name}`" for second in alone))
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    reasons = ", ".join(dict.fromkeys(second.answer.reason for second in alone if second.answer is not None))
    asked = sum(counts.values()) - counts["trivial"]
    message = f"{len(alone)} of {asked} questions are decided by z3 only: cvc5 gave up on {shown} ({reasons})"
    return Finding("NT06", "note", message, place, help="raise --timeout, or fix some sizes with --at")


def _disagreement(spec: str, place: Span, basis: Basis, second: Second) -> Finding:
    question = second.question
    theirs = second.answer.status if second.answer is not None else "unknown"
    try:
        text, verdicts = _save(Path(DISAGREEMENTS), spec, basis, second)
    except OSError:  # the current folder is not ours to write
        import tempfile

        text, verdicts = _save(Path(tempfile.mkdtemp(prefix=f"{DISAGREEMENTS}-")), spec, basis, second)
    return Finding(
        "PL904",
        "error",
        f"internal error: z3 says {question.status} and cvc5 says {theirs} to `{question.name}`",
        place,
        weights=question.weights,
        help=f"this is a bug in placelogic or in a solver: please report it with {text} and {verdicts}",
    )


def _save(folder: Path, spec: str, basis: Basis, second: Second) -> tuple[Path, Path]:
    """The text of the question, and who said what to it. Raises OSError."""
    from placelogic.prove import second as cvc5
    from placelogic.prove import solver as z3

    question = second.question
    text = basis.explained(question, spec)
    digest = hashlib.sha256(text.encode()).hexdigest()
    said = {
        "schema": "placelogic/disagreement/1",
        "placelogic": __version__,
        "spec": spec,
        "kind": question.kind,
        "name": question.name,
        "sha256": digest,
        "z3": {"version": z3.version(), "says": question.status},
        "cvc5": {"version": cvc5.version(), "says": second.answer.status if second.answer is not None else None},
    }
    stem = f"{slug(spec)}-{slug(question.name)}-{digest[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{stem}.smt2", folder / f"{stem}.json"
    put(paths[0], text)
    put(paths[1], json.dumps(said, indent=2) + "\n")
    return paths
