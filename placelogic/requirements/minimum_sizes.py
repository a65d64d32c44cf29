"""Sizes that a repository wants its proofs to reach: a proof for dp <= 8 says nothing about dp = 64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from placelogic.report.diagnostic import NO_SUCH_SIZE, NOT_REACHED, Finding, Severity, SpecReport
from placelogic.source import Span

if TYPE_CHECKING:
    from placelogic.program.program import Program
    from placelogic.prove import Options


def reaching(
    report: SpecReport, program: Program, minimum: Mapping[str, int], place: Span, options: Options
) -> SpecReport:
    """The report, with a finding where the spec lacks a name that a least size is asked for; on a proved one, with an
    error where no mesh it allows reaches the sizes, and undecided where the solver does not know."""
    from placelogic.prove.possible import lacking, reachable

    if missing := lacking(program, minimum):
        none = len(missing) == len(minimum)
        names = ", ".join(f"`{name}`" for name in missing)
        message = f"this spec has no size {names}, for which the configuration asks for a least one"
        help_ = "was it renamed? then nothing asks for large meshes here"
        severity: Severity = "warning" if none else "note"
        finding = Finding(NO_SUCH_SIZE, severity, message, place, axes=missing, help=help_)
        report = replace(report, findings=(*report.findings, finding))
    if report.verdict != "proved":
        return report
    status = reachable(program, minimum, options)
    if status == "sat":
        return report
    # Which of them: the ones out of reach by themselves, or all together.
    alone = {name: size for name, size in minimum.items() if reachable(program, {name: size}, options) == "unsat"}
    told = " and ".join(f"{name} >= {size}" for name, size in (alone or minimum).items())
    if status == "unsat":
        message = f"no mesh that this spec allows has {told}, which the configuration asks for"
        help_ = "open the sizes, or give the sizes that are really used"
        finding = Finding(NOT_REACHED, "error", message, place, axes=tuple(alone), help=help_)
        return replace(report, findings=(*report.findings, finding))
    message = f"undecided: whether a mesh that this spec allows has {told}"
    finding = Finding("UN01", "error", message, place, help="fix some sizes, or raise rlimit")
    return replace(report, verdict="undecided", findings=(*report.findings, finding))
