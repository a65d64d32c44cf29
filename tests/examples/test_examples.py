"""The examples: published runs are right at their own sizes and at every other; the wrong ones are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placelogic.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
RIGHT = sorted(path for path in EXAMPLES.glob("*.place") if not path.name.startswith("refuted_"))
WRONG = {
    "refuted_norm_not_synced": ("GI01", "qk_norm", {"tp": 2}),
    "refuted_expert_scale": ("GI03", "experts", {"ep": 2}),
    "refuted_mean_of_means": ("GI04", "model", None),
}


def specs(path: Path, code: int, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    got = main(["check", str(path), "--format", "json", *options])
    out, err = capsys.readouterr()
    assert got == code, out + err
    return json.loads(out)["files"][0]["specs"]


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_published_runs_are_right(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = specs(path, 0, capsys)
    assert {spec["verdict"] for spec in found} == {"proved"}
    names = {spec["name"].split("_")[0] for spec in found}
    assert names == {"published", "open"}
    for spec in found:
        if spec["name"].startswith("open"):
            assert len(spec["open_sizes"]) >= 2


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_each_names_its_source(path: Path) -> None:
    assert "# Source: " in path.read_text()


@pytest.mark.parametrize("stem", sorted(WRONG))
def test_wrong_ones_are_refuted(stem: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, weights, mesh = WRONG[stem]
    (spec,) = specs(EXAMPLES / f"{stem}.place", 1, capsys)
    first = next(finding for finding in spec["findings"] if finding["severity"] == "error")
    assert (first["code"], first["weights"]) == (code, weights)
    if mesh is not None:
        assert {axis: size for axis, size in first["counterexample"]["mesh"].items() if size != 1} == mesh


def test_every_wrong_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("refuted_*.place")} == set(WRONG)
