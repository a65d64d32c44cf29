"""The report of the gate for people: what fails as blocks, and one line for each file."""

from __future__ import annotations

from collections import Counter

from placelogic.io.quoting import visible
from placelogic.report import text
from placelogic.report.blocks import Look, wrapped
from placelogic.report.diagnostic import FileReport, Finding, FindingSet, Report
from placelogic.report.layout import Line, Style
from placelogic.report.telling import accepted_by, as_expected
from placelogic.report.text import finding_lines


def render(report: Report, look: Look = Look()) -> str:
    """The whole report as plain text."""
    return text.render(report, look, file_lines)


def file_lines(file: FileReport, look: Look) -> list[Line]:
    """The findings that count, then one line for the file, and one for each thing that is accepted in it. When
    quiet, only files that fail or have warnings."""
    counting = _counting(file)
    if look.quiet and not counting and file.exit_code == 0:
        return []
    lines: list[Line] = []
    for finding in counting:
        lines += [(), *finding_lines(file, finding, look), ()]
    if file.specs or file.library or file.findings:
        lines.append(_summary(file))
    for spec in file.specs:
        for finding in spec.findings:
            if finding.accepted is not None and not finding.consequence:
                place = f"{file.path}:{finding.span.line}: " if finding.span.line else ""
                why = f"{finding.code} {place}{accepted_by(finding)}"
                lines += wrapped(why, look, indent="  ", style="note")
    return [*lines, ()] if counting else lines


def _counting(file: FileReport) -> list[Finding]:
    """Errors and warnings that nobody accepted, each once; not the errors that a spec expects."""
    found: list[Finding] = list(file.findings)
    seen = FindingSet()
    for finding in found:
        seen.add(finding)
    for spec in file.specs:
        for finding in spec.findings:
            counts = finding.severity != "note" and finding.accepted is None and not as_expected(spec, finding)
            if counts and seen.add(finding):
                found.append(finding)
    return found


def failing(file: FileReport) -> list[Finding]:
    """What of the file nobody accepted, and fails."""
    return [finding for finding in _counting(file) if finding.severity == "error"]


def _summary(file: FileReport) -> Line:
    code = file.exit_code
    warnings = sum(finding.severity == "warning" for finding in _counting(file))
    counts: Counter[str] = Counter()
    for spec in file.specs:
        more = (
            ", accepted" if spec.accepted else {True: " as expected", False: " not as expected"}.get(spec.expected, "")
        )
        counts[spec.verdict + more] += 1
    parts = [f"{number} {verdict}" for verdict, number in counts.items()]
    parts += [f"{warnings} warning{'s' * (warnings > 1)}"] if warnings else []
    parts += ["a library"] if file.library else []
    word = "ok" if code == 0 else "FAILS"
    style: Style = "good" if code == 0 else "bad"
    detail = f" ({'; '.join(parts)})" if parts else ""
    return ((f"{visible(file.path)}: ", "strong"), (word, style), (detail, ""))
