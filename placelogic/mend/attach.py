"""Puts verified fixes into a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from placelogic.mend.mend import mend
from placelogic.program.program import Program
from placelogic.report.diagnostic import FileReport, SpecReport, TextEdit
from placelogic.syntax.ast import File

if TYPE_CHECKING:
    from placelogic.prove import Options

RLIMIT = 200_000
"""Solver steps for one query about a candidate: a fix is a service, and must not cost more than the verdict."""
TIMEOUT_S = 2.0
"""Wall clock for one such query: steps on polynomials of high degree can be slow."""
MAX_UNDECIDED = 2
"""Candidates that the solver gives up on before the search stops."""


def with_fixes(report: SpecReport, file: File, text: str, at: Mapping[str, int], options: Options) -> SpecReport:
    """The report of a refuted spec, each finding with an edit that mends the spec, where one was found
    within the limits."""
    undecided = 0

    def proved(edited: str, name: str) -> bool:
        nonlocal undecided
        if undecided >= MAX_UNDECIDED:
            return False
        limits = {"rlimit": min(options.rlimit, RLIMIT), "timeout_s": min(options.timeout_s, TIMEOUT_S)}
        limited = replace(options, explain=False, **limits)
        verdict = _verdict(edited, file.path, name, at, limited)
        undecided += verdict == "undecided"
        return verdict == "proved"

    fixes = mend(file, text, report.name, report.findings, proved)
    findings = list(report.findings)
    for index, edit in fixes.items():
        findings[index] = replace(findings[index], fix=edit.says, edit=TextEdit(edit.span, edit.text))
    return replace(report, findings=tuple(findings))


def _verdict(text: str, path: str, name: str, at: Mapping[str, int], options: Options) -> str | None:
    """The verdict on the named spec of this text, if it is there. Raises SpecError when it cannot be read."""
    from placelogic.elaborate import elaborate_file
    from placelogic.elaborate.derive import derive
    from placelogic.prove import prove
    from placelogic.syntax.parse import parse

    specs = elaborate_file(parse(text, path), at)
    spec = next((spec for spec in specs if spec.name == name), None)
    if spec is None or spec.program is None or spec.stated is None:
        return None
    program: Program = derive(spec.program, spec.stated)
    return prove(program, options).verdict


def file_with_fixes(report: FileReport) -> FileReport:
    """A report that was made without fixes, with them; specs that are meant to be refuted, and those that somebody
    accepted as they are, are left alone.

    Raises what the search raises: the report stands all the same."""
    from placelogic.prove import Options
    from placelogic.syntax.parse import parse

    wanted = {
        id(spec) for spec in report.specs if spec.verdict == "refuted" and not spec.expected and not spec.accepted
    }
    if not wanted:
        return report
    file = parse(report.text, report.path)
    specs = (
        with_fixes(spec, file, report.text, {}, Options()) if id(spec) in wanted else spec for spec in report.specs
    )
    return replace(report, specs=tuple(specs))
