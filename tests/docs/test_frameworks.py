"""docs/frameworks.md: its tables are those of the data, and its spec is what the importer prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from frameworks_tables import PAGE, current

from placelogic.cli import main

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "examples" / "configs").iterdir())


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python scripts/frameworks_tables.py` writes it."""
    monkeypatch.chdir(ROOT)
    page = PAGE.read_text(encoding="utf-8")
    assert current(page) == page


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_the_example_configurations_are_proved(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--from", path.name.split("_")[0], str(path)]) == 0
    out = capsys.readouterr().out
    assert "(spec): proved" in out and "warning" not in out
