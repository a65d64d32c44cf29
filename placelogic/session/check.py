"""From a file to its report. Whatever goes wrong becomes a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from placelogic.files import Found, whole
from placelogic.problem import SpecError
from placelogic.report.diagnostic import NOTHING_STATED, FileReport, Finding, SpecReport
from placelogic.requirements.claims import Judge
from placelogic.requirements.expectations import settle
from placelogic.session.errors import failed, findings_of, sources_of
from placelogic.session.session import Session, Spec
from placelogic.session.settings import Settings
from placelogic.source import Span

if TYPE_CHECKING:
    from placelogic.program.program import Program
    from placelogic.syntax.ast import File


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
    return check_session(Session(text, path, settings), library=library)


def check_session(session: Session, *, library: bool = False) -> FileReport:
    """Check every spec of a file. `library`: as for `check_file`."""
    path, settings = session.path, session.settings
    try:
        if library and is_library(session.file):
            return FileReport(path, (), session.text, library=True)
        specs = session.specs
        judge = Judge.of(specs, settings.options)
    except Exception as error:
        return failed(path, session.text, error)
    reports = tuple(_check_spec(spec, _Place.of(spec, session), judge) for spec in specs)
    if settings.fixes:
        reports = tuple(_with_fixes(report, session) for report in reports)
    return FileReport(path, reports, session.text, sources_of(path, reports))


def _with_fixes(report: SpecReport, session: Session) -> SpecReport:
    """A refuted spec with a fix where one edit mends it; one that is meant to be refuted is left alone."""
    if report.verdict != "refuted" or (report.expected and session.settings.fixes != "always"):
        return report
    from placelogic.mend.attach import with_fixes

    try:
        return with_fixes(report, session)
    except Exception as error:  # the verdict stands all the same
        return replace(report, findings=(*report.findings, *findings_of(error, whole(session.path))))


def is_library(file: File) -> bool:
    """Whether the file is made to be imported: it defines strategies, models or weights, without a mesh
    and without anything that only a spec would say."""
    from placelogic.syntax import ast

    shared = (
        ast.StrategyDef, ast.ModelDef, ast.ImportStmt, ast.WeightsStmt, ast.ModelStmt, ast.LetStmt,
        ast.FreezeStmt, ast.OptimizerStmt, ast.PrecisionStmt,
    )  # fmt: skip
    return bool(file.statements) and all(isinstance(statement, shared) for statement in file.statements)


class _Place(Struct, frozen=True):
    """Where to tell what concerns a spec as a whole: on its first line, instead of over all its lines."""

    whole: tuple[Span, ...]
    head: Span

    @classmethod
    def of(cls, spec: Spec, session: Session) -> _Place:
        file, span = session.file, spec.elaborated.span
        start = file.statements[0].span if span == file.span and file.statements else span
        lines = session.text.split("\n")
        if not 1 <= start.line <= len(lines):
            start = whole(file.path)
        elif start.end_line > start.line:
            line = lines[start.line - 1].split("#")[0].rstrip()
            start = replace(start, end_line=start.line, end_column=max(len(line), start.column) + 1)
        return cls((span, file.span), start)

    def placed(self, finding: Finding) -> Finding:
        if finding.span.line and finding.span not in self.whole:
            return finding
        return replace(finding, span=self.head)


def _check_spec(spec: Spec, place: _Place, judge: Judge) -> SpecReport:
    settings = spec.settings
    try:
        program = spec.program
        try:
            report = spec.verdict
        except SpecError as error:
            report = SpecReport(spec.name, "error", findings=findings_of(error, place.head))
        report = judge.judge(report, spec)
        if settings.minimum:
            from placelogic.requirements.minimum_sizes import reaching

            report = reaching(report, program, settings.minimum, place.head, settings.options)
    except Exception as error:
        report = SpecReport(spec.name, "error", findings=findings_of(error, place.head))
    report = settle(report, spec.elaborated.expectations)
    if settings.require_stated and report.verdict == "proved" and not report.obligations.stated:
        report = replace(report, findings=(*report.findings, _nothing_stated(place.head, spec.program)))
    return replace(report, findings=tuple(map(place.placed, report.findings)))


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
