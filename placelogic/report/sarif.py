"""The report in the Static Analysis Results Interchange Format, SARIF 2.1.0 (OASIS), as dashboards take it.

Columns count characters, as ours do. A result keeps its fingerprint when the lines around it move; GitHub
reads it under the name `primaryLocationLineHash`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from placelogic import __version__
from placelogic.explain.entries import UnknownCode, entry
from placelogic.io.quoting import visible_lines
from placelogic.report.diagnostic import FileReport, Finding, Report, Severity, SpecReport
from placelogic.report.places import Root
from placelogic.report.telling import level, story, telling
from placelogic.source import Span

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "placelogicFinding/v1"
_BASE = "%SRCROOT%"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "note"}


def render(report: Report, root: Root) -> str:
    """The report as SARIF text, in ASCII, so that any stream can carry it."""
    return json.dumps(_shown(as_dict(report, root)), indent=2)


def _shown(value: Any) -> Any:
    """With text that every reader can decode: a file name may hold bytes that are no character."""
    match value:
        case str():
            return visible_lines(value)
        case dict():
            return {name: _shown(one) for name, one in value.items()}
        case list():
            return [_shown(one) for one in value]
    return value


def as_dict(report: Report, root: Root) -> dict[str, Any]:
    """The SARIF log: one run, one result for each finding of each spec."""
    marks = [(file, *one) for file in report.files for one in telling(file)]
    codes = sorted({finding.code or "PL" for _, _, finding, _ in marks})
    results = [_result(*one, codes, root) for one in marks]
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {"driver": {"name": "placelogic", "version": __version__, "rules": list(_rules(codes))}},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_BASE: {"description": {"text": "The root of the repository."}}},
                "invocations": [{"executionSuccessful": report.exit_code != 2, "exitCode": report.exit_code}],
                "artifacts": [{"location": _location(file.path, root)} for file in report.files],
                "results": results,
            }
        ],
    }


def _rules(codes: Iterable[str]) -> Iterable[dict[str, Any]]:
    for code in codes:
        try:
            one = entry(code)
        except UnknownCode:
            yield {"id": code}
            continue
        title = one.title[:1].upper() + one.title[1:] + "."
        yield {
            "id": code,
            "shortDescription": {"text": title},
            "fullDescription": {"text": title},
            "help": {"text": f"`placelogic explain {code}` tells more.", "markdown": one.body},
        }


def _result(
    file: FileReport, spec: SpecReport | None, finding: Finding, fingerprint: str, codes: list[str], root: Root
) -> dict[str, Any]:
    path = finding.span.path or file.path
    code = finding.code or "PL"
    place: dict[str, Any] = {"artifactLocation": _location(path, root)}
    if finding.span.line >= 1:
        place["region"] = _region(finding.span)
    result: dict[str, Any] = {
        "ruleId": code,
        "ruleIndex": codes.index(code),
        "level": _LEVELS[level(finding)],
        "message": {"text": story(spec, finding, len(file.specs) > 1)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {FINGERPRINT: fingerprint, "primaryLocationLineHash": fingerprint},
        "properties": _properties(spec, finding),
    }
    if finding.accepted is not None:
        kind = "inSource" if finding.accepted.kind == "comment" else "external"
        result["suppressions"] = [{"kind": kind, "status": "accepted", "justification": finding.accepted.reason}]
    if finding.edit is not None and finding.fix:
        result["fixes"] = [_fix(file, finding, root)]
    return result


def _properties(spec: SpecReport | None, finding: Finding) -> dict[str, Any]:
    found = {
        "spec": None if spec is None else spec.name,
        "verdict": None if spec is None else spec.verdict,
        "weights": finding.weights,
        "axes": list(finding.axes),
        "class": finding.fault,
        "factor": finding.factor,
        "consequence": finding.consequence,
    }
    return {name: value for name, value in found.items() if value not in (None, [])}


def _fix(file: FileReport, finding: Finding, root: Root) -> dict[str, Any]:
    edit = finding.edit
    assert edit is not None
    replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
    change = {"artifactLocation": _location(edit.span.path or file.path, root), "replacements": [replacement]}
    return {"description": {"text": finding.fix}, "artifactChanges": [change]}


def _location(path: str, root: Root) -> dict[str, Any]:
    uri = root.uri(path)
    return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": _BASE}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": max(span.column, 1),
        "endLine": max(span.end_line, span.line),
        "endColumn": max(span.end_column, 1),
    }
