"""The report as JUnit XML, as test dashboards take it: a suite for each file, a case for each spec."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from placelogic.io.quoting import visible_lines
from placelogic.report.blocks import Look
from placelogic.report.diagnostic import FileReport, Finding, Report, SpecReport, exit_code
from placelogic.report.layout import plain
from placelogic.report.places import Root
from placelogic.report.telling import accepted_by
from placelogic.report.text import finding_lines

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, root: Root) -> str:
    """The report as XML text, in ASCII. Refuted specs are failures, and so is what the policy denies; errors
    and verdicts that decide nothing are errors; what is accepted is skipped, with the reason."""
    suites = Element("testsuites", name="placelogic")
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for file in report.files:
        suite = _suite(file, root)
        if suite is not None:
            suites.append(suite)
            for name in totals:
                totals[name] += int(suite.get(name, "0"))
    for name, number in totals.items():
        suites.set(name, str(number))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="us-ascii").decode().split("?>\n")[-1]


def _suite(file: FileReport, root: Root) -> Element | None:
    if not file.specs and not file.findings:
        return None
    name = _clean(root.name(file.path))
    suite = Element("testsuite", name=name)
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for spec in file.specs:
        outcome = _case(suite, file, spec, name)
        counts["tests"] += 1
        if outcome:
            counts[outcome] += 1
    failing = [finding for finding in file.findings if finding.severity == "error"]
    if failing:
        case = SubElement(suite, "testcase", classname=name, name="suppressions", file=name)
        tag = "failure" if any(finding.denied for finding in failing) else "error"
        _tell(case, tag, file, failing)
        counts["tests"] += 1
        counts["failures" if tag == "failure" else "errors"] += 1
    for key, number in counts.items():
        suite.set(key, str(number))
    return suite


def _case(suite: Element, file: FileReport, spec: SpecReport, name: str) -> str | None:
    case = SubElement(suite, "testcase", classname=name, name=_clean(spec.name), file=name)
    first = next((f.span.line for f in spec.findings if f.span.line and f.span.path in ("", file.path)), None)
    if first is not None:
        case.set("line", str(first))
    code = exit_code(spec)
    if code == 0:
        accepted = [finding for finding in spec.findings if finding.accepted is not None]
        if spec.accepted:
            message = "; ".join(dict.fromkeys(f"{finding.code}: {accepted_by(finding)}" for finding in accepted))
            SubElement(case, "skipped", message=_clean(f"refuted, {message}"))
            return "skipped"
        return None
    findings = [f for f in spec.findings if f.severity == "error" and f.accepted is None]
    _tell(case, "failure" if code == 1 else "error", file, findings, spec)
    return "failures" if code == 1 else "errors"


def _tell(case: Element, tag: str, file: FileReport, findings: list[Finding], spec: SpecReport | None = None) -> None:
    told = findings[0].message if findings else spec.verdict if spec is not None else ""
    kind = findings[0].code if findings else "verdict"
    element = SubElement(case, tag, message=_clean(told), type=kind or "finding")
    blocks = ["\n".join(plain(line) for line in finding_lines(file, finding, Look())) for finding in findings]
    head = [] if spec is None else [f"verdict: {spec.verdict}"]
    element.text = _clean("\n\n".join([*head, *blocks]))


def _clean(text: str) -> str:
    """Without the characters that XML has no way to write, or that are not for being shown."""
    return _NOT_XML.sub("\ufffd", visible_lines(text))
