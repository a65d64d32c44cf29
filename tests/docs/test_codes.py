"""docs/codes.md lists every code that the program can print, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import placelogic

PAGE = Path(__file__).parents[2] / "docs" / "codes.md"
CODE = r"(?:GI|SC|FW|CC|CL|BU|EX|NT|UB|UN|VA)\d{2}|PL\d{3}"


def listed() -> list[str]:
    return re.findall(rf"^\| ({CODE}) \| \S.*\. \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def printed() -> set[str]:
    """Codes as whole string literals. A family prefix such as GI is completed elsewhere, by a whole code."""
    package = Path(placelogic.__file__).parent
    sources = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    return {code for source in sources for code in re.findall(rf'"({CODE})"', source)}


def test_every_code_is_explained_once() -> None:
    rows = listed()
    assert len(rows) == len(set(rows))
    assert rows == sorted(rows, key=lambda code: (order().index(code[:2]), code))
    assert not printed() - set(rows), "codes that the page does not explain"
    assert not set(rows) - printed(), "codes that nothing prints"


def order() -> list[str]:
    """The families, as the page has them."""
    return ["GI", "SC", "FW", "CC", "CL", "BU", "EX", "UN", "VA", "NT", "UB", "PL"]
