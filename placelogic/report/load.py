"""The JSON form of one file's report, read back: the other direction of json.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placelogic.report.diagnostic import (
    Acceptance,
    Counterexample,
    DeviceRow,
    FileReport,
    Finding,
    Obligations,
    Recheck,
    SpecReport,
    TextEdit,
)
from placelogic.source import NOWHERE, Span


def file_report(form: Mapping[str, Any], text: str, sources: Mapping[str, str], library: bool) -> FileReport:
    """The report whose JSON form this is; `text`, `sources` and `library` are not part of that form.

    Raises KeyError, TypeError or ValueError for what json.py never writes."""
    path = form["path"]
    specs = tuple(_spec(path, spec) for spec in form["specs"])
    findings = tuple(_finding(path, finding) for finding in form["findings"])
    return FileReport(path, specs, text, dict(sources), library, findings)


def _spec(path: str, form: Mapping[str, Any]) -> SpecReport:
    return SpecReport(
        form["name"],
        form["verdict"],
        tuple(form["assumptions"]),
        tuple(form["assumptions_used"]),
        Obligations(**form["obligations"]),
        tuple(_finding(path, finding) for finding in form["findings"]),
        form["expected"],
        tuple(form["open_sizes"]),
        None if form["recheck"] is None else Recheck(**form["recheck"]),
        form["accepted"],
    )


def _finding(path: str, form: Mapping[str, Any]) -> Finding:
    edit, accepted = form["edit"], form["accepted"]
    return Finding(
        code=form["code"],
        severity=form["severity"],
        message=form["message"],
        span=_span(path, form["span"]),
        weights=form["weights"],
        axes=tuple(form["axes"]),
        label=form["label"],
        fault=form["class"],
        counterexample=_counterexample(form["counterexample"]),
        help=form["help"],
        fix=form["fix"],
        edit=None if edit is None else TextEdit(_span(path, edit["span"]), edit["text"]),
        consequence=form["consequence"],
        accepted=None if accepted is None else Acceptance(accepted["kind"], accepted["reason"]),
        denied=form["denied"],
    )


def _span(path: str, form: Mapping[str, Any] | None) -> Span:
    if form is None:
        return NOWHERE
    return Span(form.get("path", path), form["line"], form["column"], form["end_line"], form["end_column"])


def _counterexample(form: Mapping[str, Any] | None) -> Counterexample | None:
    if form is None:
        return None
    rows = tuple(DeviceRow(row["device"], row["applies"], row["single"]) for row in form["devices"])
    return Counterexample(form["mesh"], form["quantities"], rows, form["simulated"])
