"""Public reports of wrong training, restated as specs: verdict, code, weights and factor as catalogued."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent


def _table() -> ModuleType:
    """scripts/corpus_table.py, which is no part of a package."""
    path = HERE.parent.parent / "scripts" / "corpus_table.py"
    spec = importlib.util.spec_from_file_location("corpus_table", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLE = _table()
REPORTS: list[dict[str, Any]] = TABLE.catalogue()
STATED = [report for report in REPORTS if "specs" in report]
SPECS = [(report, spec) for report in STATED for spec in report["specs"]]
NAMED = re.compile(r"^spec (\w+) \{", re.MULTILINE)
ONE_FACTOR = re.compile(r"(\d+|\(\d+/\d+\)) g")


@cache
def found() -> dict[str, Any]:
    specs: dict[str, Any] = TABLE.check_all()
    return specs


@pytest.mark.parametrize(("report", "spec"), SPECS, ids=[spec["name"] for _, spec in SPECS])
def test_as_catalogued(report: dict[str, Any], spec: dict[str, Any]) -> None:
    difference = TABLE.difference(spec, found()[spec["name"]])
    if "disagrees" in report:
        return  # explained in the catalogue, and shown on the page
    assert difference is None, f"{spec['name']}: {difference}"
    assert found()[spec["name"]]["expected"] is True


@pytest.mark.parametrize(("report", "spec"), SPECS, ids=[spec["name"] for _, spec in SPECS])
def test_one_factor_is_scale_only(report: dict[str, Any], spec: dict[str, Any]) -> None:
    if ONE_FACTOR.fullmatch(spec.get("applies", "")):
        first = found()[spec["name"]]["findings"][0]
        assert first["class"] == "scale", first


@pytest.mark.parametrize(("report", "spec"), SPECS, ids=[spec["name"] for _, spec in SPECS])
def test_points_at_the_statement(report: dict[str, Any], spec: dict[str, Any]) -> None:
    """The first finding lies at the statement that a person would have to change, or to add something to."""
    if "at" in spec:
        span = found()[spec["name"]]["findings"][0]["span"]
        text = (HERE / report["file"]).read_text().splitlines()
        assert text[span["line"] - 1][span["column"] - 1 : span["end_column"] - 1] == spec["at"]
    else:
        assert spec["verdict"] == "proved"


def test_of_two_sums_the_second_is_pointed_at() -> None:
    first = found()["b25_sequence_parallel_on"]["findings"][0]
    text = (HERE / "summed_twice.place").read_text().splitlines()
    assert text[first["span"]["line"] - 2].strip() == "reduce over tp by sum"


@pytest.mark.parametrize("report", STATED, ids=[report["id"] for report in STATED])
def test_right_and_wrong_are_told_apart(report: dict[str, Any]) -> None:
    """What only rounds differently (`no`: outside of what is claimed) has nothing to refute."""
    verdicts = {spec["verdict"] for spec in report["specs"]}
    assert verdicts == ({"proved"} if report["expressible"] == "no" else {"proved", "refuted"})
    if report["kind"] == "false alarm":
        assert report["specs"][0]["verdict"] == "proved"


def test_the_catalogue_lists_every_spec_once() -> None:
    written = [(path.name, name) for path in sorted(HERE.glob("*.place")) for name in NAMED.findall(path.read_text())]
    listed = [(report["file"], spec["name"]) for report, spec in SPECS]
    assert sorted(written) == sorted(listed)
    assert len({report["id"] for report in REPORTS}) == len(REPORTS)


def test_what_is_not_stated_has_a_reason() -> None:
    for report in REPORTS:
        assert ("reason" in report) != ("specs" in report), report["id"]
        assert report.get("reason") in {None, *TABLE.REASONS}


def test_disagreements_are_real() -> None:
    for report in STATED:
        if "disagrees" in report:
            assert TABLE.outcome(report, found()).startswith("disagrees"), report["id"]


def test_page_is_up_to_date() -> None:
    assert TABLE.PAGE.read_text(encoding="utf-8") == TABLE.page(REPORTS, found()), "run scripts/corpus_table.py"


def test_a_difference_is_told() -> None:
    proved = {"verdict": "proved", "findings": []}
    refuted = {
        "verdict": "refuted",
        "findings": [
            {"severity": "note", "code": "NT01", "weights": None, "counterexample": None},
            {
                "severity": "error",
                "code": "GI03",
                "weights": "attn, norm",
                "counterexample": {"devices": [{"applies": "2 g"}]},
            },
        ],
    }
    want = {"name": "x", "verdict": "refuted", "findings": ["GI03 norm"], "applies": "2 g"}
    assert TABLE.difference(want, refuted) is None
    assert TABLE.difference({**want, "findings": ["GI03"]}, refuted) is None
    assert TABLE.difference(want, proved) == "proved, not refuted"
    assert TABLE.difference({**want, "findings": ["GI02 norm"]}, refuted) == "no GI02 norm, but GI03 attn, GI03 norm"
    assert TABLE.difference({**want, "applies": "4 g"}, refuted) == "no device applies 4 g, but 2 g"
