"""From text to report: read, parse, elaborate, derive, prove. Whatever goes wrong becomes a finding."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from placelogic.failing import failed, findings_of, sources_of
from placelogic.files import Found, find, whole
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import NOTHING_STATED, FileReport, Finding, Report, SpecReport
from placelogic.source import Span

if TYPE_CHECKING:
    from placelogic.claims import Judge
    from placelogic.elaborate import ElaboratedSpec
    from placelogic.evidence import Evidence
    from placelogic.program.program import Program
    from placelogic.prove import Options
    from placelogic.syntax.ast import File

TEXT = "<text>"


@dataclass(frozen=True, slots=True)
class Settings:
    """`at` fixes sizes by name. `rlimit` (solver steps) and `timeout` (seconds, wall clock) bound one
    query to the solver; None leaves its own limits. `fixes`: look for an edit that mends a refuted
    spec, for those not meant to be refuted ("wanted"), for all ("always"), or never (None). `recheck`:
    ask cvc5 too. `emit_smt2`: the folder to write every question into. `evidence`: where it is gathered.
    `minimum`: sizes that a spec which has them must reach together. `budget`: a budget that every spec has to
    keep beside its own, and where that is written. `every_fault`: of one gradient, tell also the faults that the
    first one hides."""

    at: Mapping[str, int] = field(default_factory=dict)
    require_stated: bool = False
    rlimit: int | None = None
    timeout: float | None = None
    fixes: Literal["always", "wanted"] | None = "wanted"
    recheck: bool = False
    emit_smt2: str | None = None
    evidence: Evidence | None = None
    minimum: Mapping[str, int] = field(default_factory=dict)
    budget: tuple[str, Span] | None = None
    every_fault: bool = False

    def __post_init__(self) -> None:
        for name, size in self.at.items():
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError(f"at: {name} must be a positive whole number, not {size!r}")
        if self.rlimit is not None and self.rlimit < 1:
            raise ValueError(f"rlimit must be at least 1, not {self.rlimit}")
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise ValueError(f"timeout must be more than 0 seconds, and not endless: {self.timeout} is not")


def check(
    source: str | os.PathLike[str],
    *,
    at: Mapping[str, int] | None = None,
    require_stated: bool = False,
    rlimit: int | None = None,
    timeout: float | None = None,
    recheck: bool = False,
    emit_smt2: str | os.PathLike[str] | None = None,
) -> Report:
    """Check a spec, a file, or every `.place` file below a folder.

    `source` is a path, or the text of a spec: a string is text when it spans several lines, or names
    no file and has more than one word. `recheck` asks a second solver, `emit_smt2` is a folder to write
    every question into (docs/recheck.md). What is wrong with the input is in the report, as findings;
    ValueError is raised only for options that make no sense.
    """
    folder = None if emit_smt2 is None else os.fspath(emit_smt2)
    settings = Settings(dict(at or {}), require_stated, rlimit, timeout, recheck=recheck, emit_smt2=folder)
    path = os.fspath(source)
    if isinstance(source, str) and is_text(source):
        from placelogic.evidence import gather

        return Report(tuple(gather(lambda inner: [check_text(source, TEXT, inner)], settings)))
    return Report(tuple(check_files(find([path]), settings)))


def check_files(found: Sequence[Found], settings: Settings, jobs: int = 1) -> Iterator[FileReport]:
    """One report per file, as they are done, in the order of the files whatever the number of processes.
    Libraries alone are nothing to check, which is no pass: then an error comes last; so does evidence
    that cannot be written."""
    if not settings.recheck and settings.emit_smt2 is None:
        return _check_each(found, settings, jobs)
    from placelogic.evidence import gather

    return gather(lambda inner: _check_each(found, inner, jobs), settings)


def _check_each(found: Sequence[Found], settings: Settings, jobs: int) -> Iterator[FileReport]:
    from placelogic.parallel import reports

    specs = False
    for report in reports(found, settings, jobs):
        specs = specs or not report.library
        yield report
    if found and not specs:
        count = f"{len(found)} libraries" if len(found) > 1 else "a library"
        path = os.path.dirname(found[-1].path)
        message = f"there is nothing to check: {count}, and no spec"
        yield failed(path, "", SpecError(Problem("PL015", message, whole(path), "name a file or folder with specs")))


def check_found(found: Found, settings: Settings) -> FileReport:
    """Check what was found, or tell why there is nothing to read."""
    if found.problem is not None:
        return failed(found.path, "", SpecError(found.problem))
    if found.data is not None:
        return check_bytes(found.data, found.path, settings, library=found.in_folder)
    return check_file(found.path, settings, library=found.in_folder)


def check_file(path: str, settings: Settings = Settings(), *, library: bool = False) -> FileReport:
    """Check one file. `library`: it may be one without specs, which is then no error."""
    try:
        from placelogic.syntax.read import read_source

        text = read_source(path)
    except Exception as error:
        return failed(path, "", error)
    return check_text(text, path, settings, library=library)


def check_bytes(data: bytes, path: str, settings: Settings, *, library: bool = False) -> FileReport:
    """Check what came without a file, or was read before."""
    try:
        from placelogic.syntax.read import decode

        text = decode(data, path)
    except Exception as error:
        return failed(path, "", error)
    return check_text(text, path, settings, library=library)


def check_text(text: str, path: str, settings: Settings = Settings(), *, library: bool = False) -> FileReport:
    """Check the text of one file; `path` is what the report calls it, and where imports start from."""
    try:
        from placelogic.claims import judge_of
        from placelogic.elaborate import elaborate_file
        from placelogic.syntax.parse import normalised, parse

        text = normalised(text)
        file = parse(text, path)
        if library and is_library(file):
            return FileReport(path, (), text, library=True)
        if settings.budget is not None:
            from placelogic.gate.config import budget_statement

            file = replace(file, statements=(*file.statements, budget_statement(*settings.budget)))
        specs = elaborate_file(file, settings.at)
    except Exception as error:
        return failed(path, text, error)
    judge = judge_of(specs, _options(settings))
    reports = tuple(_check_spec(spec, _Place.of(spec, file, text), settings, judge) for spec in specs)
    if settings.fixes:
        reports = tuple(_with_fixes(report, file, text, settings) for report in reports)
    return FileReport(path, reports, text, sources_of(path, reports))


def _with_fixes(report: SpecReport, file: File, text: str, settings: Settings) -> SpecReport:
    """A refuted spec with a fix where one edit mends it; one that is meant to be refuted is left alone."""
    if report.verdict != "refuted" or (report.expected and settings.fixes != "always"):
        return report
    from placelogic.mend.attach import with_fixes

    try:
        return with_fixes(report, file, text, settings.at, _options(settings))
    except Exception as error:  # the verdict stands all the same
        return replace(report, findings=(*report.findings, *findings_of(error, whole(file.path))))


def is_library(file: File) -> bool:
    """Whether the file is made to be imported: it defines strategies, models or weights, without a mesh
    and without anything that only a spec would say."""
    from placelogic.syntax import ast

    shared = (
        ast.StrategyDef, ast.ModelDef, ast.ImportStmt, ast.WeightsStmt, ast.ModelStmt, ast.LetStmt,
        ast.FreezeStmt, ast.OptimizerStmt, ast.PrecisionStmt,
    )  # fmt: skip
    return bool(file.statements) and all(isinstance(statement, shared) for statement in file.statements)


def complete(spec: ElaboratedSpec) -> Program:
    """The program of a spec with its derived step. Raises SpecError."""
    from placelogic.elaborate.derive import derive

    if spec.program is None or spec.stated is None:
        raise SpecError(*spec.problems)
    return derive(spec.program, spec.stated)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to tell what concerns a spec as a whole: on its first line, instead of over all its lines."""

    whole: tuple[Span, ...]
    head: Span

    @classmethod
    def of(cls, spec: ElaboratedSpec, file: File, text: str) -> _Place:
        start = file.statements[0].span if spec.span == file.span and file.statements else spec.span
        lines = text.split("\n")
        if not 1 <= start.line <= len(lines):
            start = whole(file.path)
        elif start.end_line > start.line:
            line = lines[start.line - 1].split("#")[0].rstrip()
            start = replace(start, end_line=start.line, end_column=max(len(line), start.column) + 1)
        return cls((spec.span, file.span), start)

    def placed(self, finding: Finding) -> Finding:
        if finding.span.line and finding.span not in self.whole:
            return finding
        return replace(finding, span=self.head)


def _check_spec(spec: ElaboratedSpec, place: _Place, settings: Settings, judge: Judge) -> SpecReport:
    from placelogic.expectations import settle
    from placelogic.program.open import open_sizes

    try:
        program = complete(spec)
        try:
            report = replace(_prove(program, settings), name=spec.name, open_sizes=open_sizes(program))
        except SpecError as error:
            report = SpecReport(spec.name, "error", findings=findings_of(error, place.head))
        report = judge.judge(report, program)
        if settings.minimum and report.verdict == "proved":
            from placelogic.reaching import reaching

            report = reaching(report, program, settings.minimum, place.head, _options(settings))
    except Exception as error:
        report = SpecReport(spec.name, "error", findings=findings_of(error, place.head))
    report = settle(report, spec.expectations)
    if settings.require_stated and report.verdict == "proved" and not report.obligations.stated:
        report = replace(report, findings=(*report.findings, _nothing_stated(place.head, program)))
    return replace(report, findings=tuple(map(place.placed, report.findings)))


def _prove(program: Program, settings: Settings) -> SpecReport:
    from placelogic.prove import prove

    if settings.evidence is not None:
        return settings.evidence.prove(program, _options(settings))
    return prove(program, _options(settings))


def _options(settings: Settings) -> Options:
    from placelogic.prove import Options

    options = Options(require_stated=settings.require_stated, every=settings.every_fault)
    if settings.rlimit is not None:
        options = replace(options, rlimit=settings.rlimit)
    if settings.timeout is not None:
        options = replace(options, timeout_s=settings.timeout)
    return options


def _nothing_stated(place: Span, program: Program) -> Finding:
    blocks = program.layers is not None and bool(program.layers.blocks)
    lines = "`step`, `clip`, `forward` or `backward`" if blocks else "`step` or `clip`"
    return Finding(
        NOTHING_STATED,
        "error",
        "nothing is stated, so this verdict says nothing about anybody's code",
        place,
        help=f"say what your code does with `sync`, `scale`, {lines}; `placelogic show` prints what is derived",
    )


def is_text(source: str) -> bool:
    words = not os.path.exists(source) and not source.endswith(".place") and len(source.split()) > 1
    return "\n" in source or not source or words
