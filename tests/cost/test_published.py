"""What papers and tools have published, derived from specs (scripts/published_costs.py, published.json)."""

from __future__ import annotations

import json
from pathlib import Path

import published_costs
import pytest

ROWS = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
NOT_DERIVED = {"fsdp-xhost-hybrid-paper", "optstate-adafactor"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_published_figure(row: dict) -> None:
    found = published_costs.derive(row)
    if row["id"] in NOT_DERIVED:
        assert found.matched is None and found.reason
    else:
        assert found.matched, (found.derived, found.difference, found.reason)


@pytest.mark.parametrize(
    ("id", "change"),
    [
        ("zero-t1-7.5B-Pos-N16", 36.0),
        ("zero-comm-osgp", "2*Psi"),
        ("mg-bubble", "(p-1)/(m+p-1)"),
        ("ds-z3-gpu-none", 6.2),
    ],
)
def test_a_wrong_figure_differs(id: str, change: object) -> None:
    (row,) = [row for row in ROWS if row["id"] == id]
    assert published_costs.derive({**row, "expected": change}).matched is False


def test_the_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([*ROWS[:2], {**ROWS[0], "expected": 1}, {**ROWS[0], "id": "unheard-of"}]))
    monkeypatch.setattr("sys.argv", ["published_costs.py", "--cases", str(path)])
    assert published_costs.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["zero-t1-7.5B-Pos-N1", "120", "120", "0", "matched"]
    assert lines[2].endswith("DIFFERS")
    assert lines[3].endswith("not derived: no rule for it")
    assert lines[-1] == "2 of 4 rows matched, 1 differ, 1 not derived"
