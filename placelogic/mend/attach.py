"""Puts verified fixes into a report."""

from __future__ import annotations

from msgspec.structs import replace

from placelogic.mend.mend import mend
from placelogic.report.diagnostic import FileReport, SpecReport, TextEdit
from placelogic.session.session import Session
from placelogic.session.settings import Settings

RLIMIT = 200_000
"""Solver steps for one query about a candidate: a fix is a service, and must not cost more than the verdict."""
TIMEOUT_S = 2.0
"""Wall clock for one such query: steps on polynomials of high degree can be slow."""
MAX_UNDECIDED = 2
"""Candidates that the solver gives up on before the search stops."""


def with_fixes(report: SpecReport, session: Session) -> SpecReport:
    """The report of a refuted spec of a file, each finding with an edit that mends the spec, where one was found
    within the limits."""
    options, undecided = session.settings.options, 0

    def proved(edited: str) -> bool:
        nonlocal undecided
        if undecided >= MAX_UNDECIDED:
            return False
        from placelogic.prove import prove

        after = Session(edited, session.path, Settings(session.settings.at))
        spec = next((spec for spec in after.specs if spec.name == report.name), None)
        limits = {"rlimit": min(options.rlimit, RLIMIT), "timeout_s": min(options.timeout_s, TIMEOUT_S)}
        limited = replace(options, explain=False, **limits)
        verdict = prove(spec.program, limited).verdict if spec is not None else None
        undecided += verdict == "undecided"
        return verdict == "proved"

    fixes = mend(session.file, session.text, report.name, report.findings, proved)
    findings = list(report.findings)
    for index, edit in fixes.items():
        findings[index] = replace(findings[index], fix=edit.says, edit=TextEdit(edit.span, edit.text))
    return replace(report, findings=tuple(findings))


def file_with_fixes(report: FileReport) -> FileReport:
    """A report that was made without fixes, with them; specs that are meant to be refuted, and those that somebody
    accepted as they are, are left alone.

    Raises what the search raises: the report stands all the same."""
    session = Session(report.text, report.path)
    specs = (
        with_fixes(spec, session) if spec.verdict == "refuted" and not spec.expected and not spec.accepted else spec
        for spec in report.specs
    )
    return replace(report, specs=tuple(specs))
