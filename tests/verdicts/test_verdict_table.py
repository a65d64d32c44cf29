"""Every verdict that the language promises, and every snippet of it inside a complete spec.

The specs carry their verdict and code in `expect` lines; what else must be said is in `wanted.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import reports
from wanted import WANTED

import placelogic
from placelogic.cli import main

CASES = reports.every_spec("cases")


@pytest.mark.parametrize(("stem", "name"), CASES)
def test_verdict(stem: str, name: str) -> None:
    spec = reports.spec_report("cases", stem, name)
    assert spec["expected"] is True, reports.said([spec])


@pytest.mark.parametrize(("stem", "name"), sorted(WANTED))
def test_what_is_said(stem: str, name: str) -> None:
    spec = reports.spec_report("cases", stem, name)
    want = WANTED[stem, name]
    codes = {finding["code"] for finding in spec["findings"]}
    assert not codes & set(want.absent), reports.said([spec])
    if want.says is not None:
        assert any(want.says in finding["message"] for finding in spec["findings"]), reports.said([spec])
    if want.mesh is None and want.applies is None and want.fault is None:
        return
    first = reports.errors(spec)[0]
    if want.codes:
        assert first["code"] in want.codes
    if want.fault is not None:
        assert first["class"] == want.fault, reports.said([spec])
    example = first["counterexample"]
    assert example is not None, reports.said([spec])
    if want.mesh is not None:
        assert {axis: size for axis, size in example["mesh"].items() if size != 1} == dict(want.mesh)
    if want.microbatches is not None:
        assert example["quantities"].get("M") == want.microbatches, example
    if want.applies is not None:
        rows = [row for row in example["devices"] if row["applies"] == want.applies and row["single"] == want.single]
        assert rows, example["devices"]
    for count in want.counts:
        assert any(count in row["applies"] for row in example["devices"]), example["devices"]


def test_every_case_that_wants_more_exists() -> None:
    assert set(WANTED) <= set(CASES)


def test_every_refutation_has_a_counterexample_or_a_conflict() -> None:
    for stem, name in CASES:
        spec = reports.spec_report("cases", stem, name)
        if spec["verdict"] == "refuted":
            first = reports.errors(spec)[0]
            assert first["counterexample"] is not None or first["code"].startswith("CC"), reports.said([spec])
            assert first["span"] is not None, reports.said([spec])


def _exit_code(specs: list[dict[str, Any]]) -> int:
    verdicts = {spec["verdict"] for spec in specs}
    if "refuted" in verdicts:
        return 1
    if "error" in verdicts:
        return 2
    return 3 if verdicts & {"undecided", "vacuous"} else 0


@pytest.mark.parametrize("path", reports.files("cases"), ids=lambda path: path.stem)
def test_meeting_expectations_is_success(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(path)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "stem", ["strategies", "tensor_axis", "language_sync", "sizes", "denominators", "language_sizes"]
)
def test_exit_code_without_expectations(stem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = reports.HERE / "cases" / f"{stem}.place"
    copy = tmp_path / source.name
    copy.write_text(reports.without_expectations(source.read_text()))
    shutil.copytree(source.parent / "imports", tmp_path / "imports")
    assert main(["check", str(copy)]) == _exit_code(reports.report("cases", stem)["files"][0]["specs"])
    capsys.readouterr()


@pytest.mark.parametrize(
    ("at", "verdict"),
    [("tp=1", "proved"), ("tp=2", "refuted"), ("tp=7", "refuted")],
)
def test_fixed_sizes(at: str, verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = "mesh tp\nlet h\nweights norm { size h, kind vector }\nuse tensor_parallel(tp)\nsync norm over tp by sum\n"
    path = tmp_path / "norm.place"
    path.write_text(spec)
    assert main(["check", str(path), "--at", at, "--format", "json"]) == {"proved": 0, "refuted": 1}[verdict]
    found = json.loads(capsys.readouterr().out)["files"][0]["specs"][0]
    assert found["verdict"] == verdict
    if verdict == "refuted":
        example = found["findings"][0]["counterexample"]
        assert example["mesh"] == {"tp": int(at.removeprefix("tp="))}
        assert example["devices"][0]["applies"] == f"{example['mesh']['tp']} g"


FIXED = [(stem, name) for stem, name in CASES if stem != "language_sizes"]


@pytest.mark.parametrize(("stem", "name"), FIXED)
def test_the_same_at_fixed_sizes(stem: str, name: str) -> None:
    """What is proved for all sizes holds at one; what is refuted is refuted at its own counterexample."""
    found = reports.spec_report("cases", stem, name)
    text = reports.alone("cases", stem, name)
    if found["verdict"] == "proved":
        open_sizes = found["open_sizes"]
        for size in (1, 2, 5):
            (spec,) = placelogic.check(text, at=dict.fromkeys(open_sizes, size)).specs
            # a size that the spec excludes is said to be so, and nothing else; FW07: it is assumed to divide
            excluded = {f.code for f in spec.findings if f.severity == "error"} & {"PL405", "FW07"}
            assert spec.verdict == "proved" or excluded or spec.verdict == "vacuous"
    elif found["verdict"] == "refuted":
        first = reports.errors(found)[0]
        if first["counterexample"] is None:
            return
        sizes = {**first["counterexample"]["mesh"], **first["counterexample"]["quantities"]}
        at = {axis: size for axis, size in sizes.items() if axis in found["open_sizes"]}
        (spec,) = placelogic.check(text, at=at).specs
        assert (spec.verdict, spec.findings[0].code) == ("refuted", first["code"])


def test_the_whole_mesh_at_once_and_at_real_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(reports.HERE / "cases" / "everything_at_once.place")
    assert main(["check", path]) == 0
    assert main(["check", path, "--at", "dp=64,tp=8,pp=16,cp=2,M=32"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("stem", ["smallest", "tensor_axis", "language_expect"])
def test_in_a_process_of_its_own(stem: str) -> None:
    path = reports.HERE / "cases" / f"{stem}.place"
    done = subprocess.run(
        [sys.executable, "-m", "placelogic", "check", str(path), "--format", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"][0]["specs"] == reports.report("cases", stem)["files"][0]["specs"]


def test_text_names_code_place_and_factor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = (reports.HERE / "cases" / "tensor_axis.place").read_text()
    path = tmp_path / "norm.place"
    path.write_text(reports.without_expectations(source))
    assert main(["check", str(path)]) == 1
    text = capsys.readouterr().out
    for words in ("GI01", "GI02", "GI06", "norm.place:", "sync norm over tp by sum", "2 g", "tp = 2"):
        assert words in text
