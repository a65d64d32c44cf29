"""`expect` lines: what a spec says will come out of it, held against what did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from placelogic.program.program import Expectation
from placelogic.report.diagnostic import UNMET, Finding, SpecReport


def settle(report: SpecReport, expectations: Iterable[Expectation]) -> SpecReport:
    """The report with `expected` set, and a finding for every expectation that is not met."""
    expectations = tuple(expectations)
    if not expectations:
        return report
    unmet = tuple(_unmet(report, wanted) for wanted in expectations if not met(report, wanted))
    return replace(report, expected=not unmet, findings=(*report.findings, *unmet))


def met(report: SpecReport, wanted: Expectation) -> bool:
    """The verdict is the one expected and, where a code or weights are named, one finding has both.
    For `refuted` and `error` only errors count; any severity does for the other verdicts."""
    if report.verdict != wanted.verdict or any(finding.code.startswith("PL9") for finding in report.findings):
        return False  # what went wrong in placelogic itself is nothing to expect
    if wanted.code is None and wanted.weights is None:
        return True
    return any(
        (wanted.code is None or finding.code == wanted.code)
        and (wanted.weights is None or wanted.weights in _weights(finding))
        for finding in report.findings
        if finding.severity == "error" or wanted.verdict not in ("refuted", "error")
    )


def _weights(finding: Finding) -> list[str]:
    return [name.strip() for name in (finding.weights or "").split(",")]


def _unmet(report: SpecReport, wanted: Expectation) -> Finding:
    hoped = " ".join(part for part in (wanted.verdict, wanted.code, wanted.weights) if part)
    found = ", ".join(
        dict.fromkeys(
            f"{finding.code} {finding.weights}" if finding.weights else finding.code
            for finding in report.findings
            if finding.code and finding.severity == "error"
        )
    )
    came = f"{report.verdict} ({found})" if found else report.verdict
    return Finding(
        UNMET,
        "error",
        f"`expect {hoped}` is not met: the verdict is {came}",
        wanted.span,
        weights=wanted.weights,
        label=f"it is {came}",
    )
