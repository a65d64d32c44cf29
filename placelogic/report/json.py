"""The report for programs: the form `placelogic/check/1`, described by `check-1.schema.json` beside this file.

Keys are never taken away or given another meaning within one form; new ones may be added.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import asdict

from placelogic import __version__
from placelogic.report.diagnostic import OUTSIDE_THE_CLAIM, Counterexample, FileReport, Finding, Report, SpecReport
from placelogic.source import Span

SCHEMA = "placelogic/check/1"


def render(report: Report) -> str:
    """The report as JSON text, in ASCII, so that any stream can carry it."""
    return json.dumps(as_dict(report), indent=2)


def as_dict(report: Report) -> dict[str, Any]:
    """The report as plain dictionaries and lists."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": report.exit_code,
        "files": [_file(file) for file in report.files if file.findings or not file.library],
        "libraries": [file.path for file in report.files if file.library],
        "outside_the_claim": list(OUTSIDE_THE_CLAIM),
    }


def _file(file: FileReport) -> dict[str, Any]:
    return {
        "path": file.path,
        "specs": [_spec(file, spec) for spec in file.specs],
        "findings": [_finding(file, finding) for finding in file.findings],
    }


def _spec(file: FileReport, spec: SpecReport) -> dict[str, Any]:
    counts = spec.obligations
    return {
        "name": spec.name,
        "verdict": spec.verdict,
        "accepted": spec.accepted,
        "expected": spec.expected,
        "open_sizes": list(spec.open_sizes),
        "assumptions": list(spec.assumptions),
        "assumptions_used": list(spec.assumptions_used),
        "obligations": {
            "proved": counts.proved,
            "refuted": counts.refuted,
            "undecided": counts.undecided,
            "stated": counts.stated,
        },
        "settled": [asdict(one) | {"confirmed_by": list(one.confirmed_by)} for one in spec.settled],
        "recheck": None if spec.recheck is None else asdict(spec.recheck),
        "findings": [_finding(file, finding) for finding in spec.findings],
    }


def _finding(file: FileReport, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "weights": finding.weights,
        "axes": list(finding.axes),
        "span": _span(file, finding.span),
        "label": finding.label,
        "class": finding.fault,
        "factor": finding.factor,
        "counterexample": _counterexample(finding.counterexample),
        "fix": finding.fix,
        "edit": None if finding.edit is None else {"span": _span(file, finding.edit.span), "text": finding.edit.text},
        "help": finding.help,
        "consequence": finding.consequence,
        "accepted": None if finding.accepted is None else asdict(finding.accepted),
        "denied": finding.denied,
    }


def _span(file: FileReport, span: Span) -> dict[str, Any] | None:
    """None for what nobody wrote; `path` only where it is another file than the one checked."""
    if span.line < 1:
        return None
    place: dict[str, Any] = {
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
    if span.path not in ("", file.path):
        place["path"] = span.path
    return place


def _counterexample(example: Counterexample | None) -> dict[str, Any] | None:
    if example is None:
        return None
    return {
        "mesh": dict(example.mesh),
        "quantities": dict(example.quantities),
        "simulated": None if example.simulated is None else dict(example.simulated),
        "devices": [
            {"device": dict(row.device), "applies": row.applies, "single": row.single} for row in example.devices
        ],
    }
