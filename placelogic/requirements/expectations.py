"""`expect` lines: what a spec says will come out of it, held against what did."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from placelogic.program.program import Expectation
from placelogic.report.diagnostic import UNMET, Finding, SpecReport


def settle(report: SpecReport, expectations: Iterable[Expectation]) -> SpecReport:
    """The report with `expected` set, and a finding for every expectation that is not met."""
    expectations = tuple(expectations)
    if not expectations:
        return report
    unmet = tuple(_unmet(report, wanted) for wanted in expectations if not met(report, wanted))
    unmet += _beside(report, expectations) if not unmet else ()
    return replace(report, expected=not unmet, findings=(*report.findings, *unmet))


def _beside(report: SpecReport, expectations: tuple[Expectation, ...]) -> tuple[Finding, ...]:
    """What came out that is another question than the one whose answer is expected: who waits for a fault of the
    training has not waited for a false claim, or for a budget that is exceeded."""
    if any(wanted.code is None and wanted.verdict in ("refuted", "undecided") for wanted in expectations):
        return ()
    named = {wanted.code for wanted in expectations}
    found = dict.fromkeys(finding.code for finding in report.findings if finding.severity == "error")
    codes = ", ".join(code for code in found if code in _OF_COSTS and code not in named)
    if not codes:
        return ()
    message = f"{codes} came out too, which no `expect` line of this spec names"
    return (Finding(UNMET, "error", message, expectations[0].span, help="mend it, or expect it by its code"),)


_OF_COSTS = frozenset({"BU01", "CL01", "CL02"})


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
