"""Every `place` block of the documentation is a file that gets the verdict it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import placelogic
from placelogic.session.check import check_file

ROOT = Path(__file__).parents[2]
PAGES = tuple(ROOT / page for page in ("docs/language.md", "docs/layers.md", "docs/live.md", "README.md"))
BLOCK = re.compile(r"^```place\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\w+\.place)\n")
"""A block that is imported by another begins with its file name."""


def blocks() -> dict[str, str]:
    """File name -> text; a block without a name is called by its page and line."""
    found = {}
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(page):
            line = page.count("\n", 0, match.start()) + 2
            name = NAMED.match(match[1])
            found[name[1] if name else f"{path.stem}_{line}.place"] = match[1]
    return found


BLOCKS = blocks()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("language")
    for name, text in BLOCKS.items():
        (path / name).write_text(text, encoding="utf-8")
    return path


def test_no_spec_is_shown_without_being_checked() -> None:
    for path in PAGES:
        fences = re.findall(r"^```(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences) <= {"place", "console", "sh", "py"}, path


@pytest.mark.parametrize("name", BLOCKS)
def test_verdict(name: str, folder: Path) -> None:
    report = check_file(str(folder / name), library=True)
    for spec in report.specs:
        assert spec.expected or (spec.expected is None and spec.verdict == "proved"), f"{spec.name}: {spec.verdict}"
    assert report.exit_code == 0, str(placelogic.Report((report,)))
