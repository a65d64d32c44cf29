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
    for file in report.files:
        if file.specs or file.findings:
            _suite(suites, file, root)
    _count(suites)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="us-ascii").decode().split("?>\n")[-1]


def _count(element: Element) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(len(element.findall(f".//{tag}"))))


def _suite(suites: Element, file: FileReport, root: Root) -> None:
    name = _clean(root.name(file.path))
    suite = SubElement(suites, "testsuite", name=name)
    for spec in file.specs:
        _case(suite, file, spec, name)
    failing = [finding for finding in file.findings if finding.severity == "error"]
    if failing:
        case = SubElement(suite, "testcase", classname=name, name="suppressions", file=name)
        tag = "failure" if any(finding.denied for finding in failing) else "error"
        _tell(case, tag, file, failing)
    _count(suite)


def _case(suite: Element, file: FileReport, spec: SpecReport, name: str) -> None:
    case = SubElement(suite, "testcase", classname=name, name=_clean(spec.name), file=name)
    first = next((f.span.line for f in spec.findings if f.span.line and f.span.path in ("", file.path)), None)
    if first is not None:
        case.set("line", str(first))
    code = exit_code(spec)
    if code:
        findings = [f for f in spec.findings if f.severity == "error" and f.accepted is None]
        _tell(case, "failure" if code == 1 else "error", file, findings, spec)
    elif spec.accepted:
        accepted = (f"{f.code}: {accepted_by(f)}" for f in spec.findings if f.accepted is not None)
        message = "; ".join(dict.fromkeys(accepted))
        SubElement(case, "skipped", message=_clean(f"refuted, {message}"))


def _tell(case: Element, tag: str, file: FileReport, findings: list[Finding], spec: SpecReport | None = None) -> None:
    message = findings[0].message if findings else spec.verdict if spec is not None else ""
    kind = findings[0].code if findings else "verdict"
    element = SubElement(case, tag, message=_clean(message), type=kind or "finding")
    blocks = ["\n".join(plain(line) for line in finding_lines(file, finding, Look())) for finding in findings]
    head = [] if spec is None else [f"verdict: {spec.verdict}"]
    element.text = _clean("\n\n".join([*head, *blocks]))


def _clean(text: str) -> str:
    """Without the characters that XML has no way to write, or that are not for being shown."""
    return _NOT_XML.sub("\ufffd", visible_lines(text))
