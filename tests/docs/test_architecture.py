"""docs/architecture.md: every folder is listed, and what it says of files and functions is so."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "placelogic"
"""As it lies in the checkout: an installed one has the grammar in it, too."""
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
RULES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("## Where a rule lives")[2].partition("\n## ")[0].splitlines()
    if line.startswith("|")
][2:]
"""The rows of the table: rule, prover, run, cost, derivation, docs."""

WANTED = (
    "reduction", "clip", "stale", "tied", "last stage", "micro-batch", "feed", "experts", "gather in the backward pass",
)  # fmt: skip
PLACE = re.compile(r"`([\w/]+\.py)` `([\w.]+)`")


def test_every_folder_is_listed() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    for folder in folders - {PACKAGE}:
        assert f"\n| `placelogic/{folder.relative_to(PACKAGE).as_posix()}` | " in PAGE


def test_named_files_exist() -> None:
    named = set(re.findall(r"`([\w.]+/[\w./]+\.\w+)`", PAGE))
    assert len(named) > 30
    assert not {name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()}


@pytest.mark.parametrize("row", RULES, ids=lambda row: row[0])
def test_rules_are_where_the_table_says(row: list[str]) -> None:
    """A reading that has no part in a rule says why; every other cell names functions that are there."""
    rule, prover, run, cost, derivation, docs = row
    assert rule and re.search(r"\]\(\w+\.md#[\w-]+\)", docs)
    for cell in (prover, run):
        assert PLACE.search(cell)
    for cell in (prover, run, cost, derivation):
        places = PLACE.findall(cell)
        assert places or cell.startswith("none: ")
        for file, function in places:
            assert function in _defined(PACKAGE / file), f"{file} has no {function}"


def test_no_rule_is_missing() -> None:
    rules = "\n".join(row[0] for row in RULES)
    assert not [word for word in WANTED if word not in rules]


def _defined(path: Path) -> set[str]:
    """Functions and classes, and `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return found
