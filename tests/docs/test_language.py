"""Every `place` block of docs/language.md is a file that gets the verdict it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import placelogic
from placelogic.checking import check_file

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
BLOCK = re.compile(r"^```place\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\w+\.place)\n")
"""A block that is imported by another begins with its file name."""


def blocks() -> dict[str, str]:
    """File name -> text; a block without a name is called by its line on the page."""
    page = PAGE.read_text(encoding="utf-8")
    found = {}
    for match in BLOCK.finditer(page):
        name = NAMED.match(match[1])
        found[name[1] if name else f"line_{page.count(chr(10), 0, match.start()) + 2}.place"] = match[1]
    return found


BLOCKS = blocks()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("language")
    for name, text in BLOCKS.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


def test_nothing_else_is_shown_as_a_spec() -> None:
    fences = [line for line in PAGE.read_text(encoding="utf-8").split("\n") if line.startswith("```") and line != "```"]
    assert fences == ["```place"] * len(BLOCKS)


@pytest.mark.parametrize("name", BLOCKS)
def test_verdict(name: str, folder: Path) -> None:
    report = check_file(str(folder / name), library=True)
    for spec in report.specs:
        assert spec.expected or (spec.expected is None and spec.verdict == "proved"), f"{spec.name}: {spec.verdict}"
    assert report.exit_code == 0, str(placelogic.Report((report,)))
