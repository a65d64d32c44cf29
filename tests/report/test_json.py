"""The report for programs holds to its schema, and keeps its keys."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from placelogic import __version__
from placelogic.report.diagnostic import (
    Acceptance,
    Counterexample,
    DeviceRow,
    FileReport,
    Finding,
    Obligations,
    Recheck,
    Report,
    Settled,
    SpecReport,
    TextEdit,
)
from placelogic.report.json import as_dict, render
from placelogic.source import NOWHERE, Span

SCHEMA = json.loads(files("placelogic.report").joinpath("check-1.schema.json").read_text(encoding="utf-8"))

FINDING = Finding(
    "GI02", "error", "counted tp times", Span("a.place", 1, 2, 3, 4), "norm", ("tp",), "here", "scale",
    Counterexample({"tp": 2}, {"M": 1}, (DeviceRow({"tp": 0}, "2 g", "g"),)), None, "delete this line",
    TextEdit(Span("a.place", 1, 2, 3, 4), ""),
)  # fmt: skip
BARE = Finding("PL900", "warning", "ü", NOWHERE)
IMPORTED = Finding(
    "SC01",
    "note",
    "m",
    Span("lib.place", 1, 1, 1, 2),
    consequence=True,
    help="h",
    accepted=Acceptance("comment", "why"),
)
REPORT = Report(
    (
        FileReport(
            "a.place",
            (
                SpecReport(
                    "a",
                    "refuted",
                    ("tokens even",),
                    (),
                    Obligations(2, 1, 0, 1),
                    (FINDING, BARE, IMPORTED),
                    False,
                    ("dp",),
                    Recheck(14, 14, 13),
                    settled=(Settled("gradient of attn at the update", "normal form", ("z3", "cvc5")),),
                ),
                SpecReport("b", "proved"),
            ),
        ),
        FileReport("lib.place", (), library=True),
    )
)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("report", [REPORT, Report(())])
def test_reports_hold_to_the_schema(report: Report) -> None:
    jsonschema.validate(json.loads(render(report)), SCHEMA, jsonschema.Draft202012Validator)


def test_the_schema_names_every_key() -> None:
    """A key that is added to the report is added to the schema."""

    def keys(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(keys, value)) if value else set()
        if not isinstance(value, dict):
            return set()
        inner = {k: v for k, v in value.items() if k not in ("mesh", "quantities", "device")}
        return set(value) | set().union(*map(keys, inner.values()))

    def described(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(described, value)) if value else set()
        if not isinstance(value, dict):
            return set()
        return set(value.get("properties", ())) | set().union(*map(described, value.values()), set())

    assert keys(as_dict(REPORT)) == described(SCHEMA)


def test_the_form() -> None:
    report = as_dict(REPORT)
    assert report["schema"] == "placelogic/check/1"
    assert report["version"] == __version__
    assert [file["path"] for file in report["files"]] == ["a.place"]
    spec = report["files"][0]["specs"][0]
    assert spec["verdict"] == "refuted"
    assert spec["obligations"] == {"proved": 2, "refuted": 1, "undecided": 0, "stated": 1}
    assert spec["recheck"] == {"questions": 14, "z3": 14, "cvc5": 13}
    assert spec["settled"] == [
        {"obligation": "gradient of attn at the update", "by": "normal form", "confirmed_by": ["z3", "cvc5"]}
    ]
    assert report["files"][0]["specs"][1]["recheck"] is None
    assert spec["findings"][0] == {
        "code": "GI02",
        "severity": "error",
        "message": "counted tp times",
        "weights": "norm",
        "axes": ["tp"],
        "span": {"line": 1, "column": 2, "end_line": 3, "end_column": 4},
        "label": "here",
        "class": "scale",
        "factor": None,
        "counterexample": {
            "mesh": {"tp": 2},
            "quantities": {"M": 1},
            "simulated": None,
            "devices": [{"device": {"tp": 0}, "applies": "2 g", "single": "g"}],
        },
        "fix": "delete this line",
        "edit": {"span": {"line": 1, "column": 2, "end_line": 3, "end_column": 4}, "text": ""},
        "help": None,
        "consequence": False,
        "accepted": None,
        "denied": False,
    }
    bare, imported = spec["findings"][1:]
    assert bare["class"] is None and bare["counterexample"] is None and bare["span"] is None
    assert imported["span"]["path"] == "lib.place"


def test_it_is_ascii() -> None:
    assert render(REPORT).isascii()


@pytest.mark.parametrize("key", ["schema", "files"])
def test_the_schema_can_refuse(key: str) -> None:
    report = as_dict(REPORT)
    del report[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, SCHEMA)
