"""What goes wrong, as findings; and the report on a file that could not be read as specs at all."""

from __future__ import annotations

import os
import sys

from placelogic.files import whole
from placelogic.problem import SpecError
from placelogic.report.diagnostic import FileReport, Finding, SpecReport
from placelogic.source import Span


def findings_of(error: Exception, place: Span) -> tuple[Finding, ...]:
    """What an exception means to the person who wrote the spec."""
    match error:
        case SpecError(problems=problems):
            return tuple(Finding.of(p) for p in problems)
        case RecursionError():
            message = "this is nested too deeply to be read"
            return (Finding("PL902", "error", message, place, help="split long expressions with `let`"),)
        case MemoryError():
            return (Finding("PL903", "error", "the machine ran out of memory on this spec", place),)
    if os.environ.get("PLACELOGIC_DEBUG"):
        import traceback

        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    said = (str(error).splitlines() or [""])[0][:200]
    message = f"internal error: {type(error).__name__}" + (f": {said}" if said else "")
    help_ = "this is a bug in placelogic: please report it with the spec (PLACELOGIC_DEBUG=1 prints a traceback)"
    return (Finding("PL900", "error", message, place, help=help_),)


def failed(path: str, text: str, error: Exception) -> FileReport:
    """The report on a file that could not be read as specs at all."""
    name = os.path.splitext(os.path.basename(path))[0]
    report = SpecReport(name, "error", findings=findings_of(error, whole(path)))
    return FileReport(path, (report,), text, sources_of(path, (report,)))


def sources_of(path: str, reports: tuple[SpecReport, ...]) -> dict[str, str]:
    """The text of other files that findings lie in; one that cannot be read any more has none."""
    others = {finding.span.path for report in reports for finding in report.findings} - {path, ""}
    sources: dict[str, str] = {}
    for other in sorted(others):
        from placelogic.syntax.read import normalised, read_source

        try:
            sources[other] = normalised(read_source(other))
        except SpecError:
            continue
    return sources
