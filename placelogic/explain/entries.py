"""What a code means, from the pages in this folder, one per code.

A page is Markdown of a simple kind: a title `# CODE: one line`, sections, paragraphs, lists, and blocks of specs."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from placelogic.problem import closest

FOLDER = Path(__file__).parent

FAMILIES = {
    "GI": "Gradient integrity",
    "SC": "State consistency",
    "FW": "Computation",
    "CC": "Composition",
    "CL": "Claims and budgets",
    "BU": "Claims and budgets",
    "EX": "Expectations",
    "VA": "Verdicts that decide nothing",
    "UN": "Verdicts that decide nothing",
    "NT": "Notes",
    "UB": "Beside a framework",
    "PL": "Errors in the input",
}
"""The first two letters of a code, in the order of the list; neighbours with one title share it."""

_INPUT_ERROR = re.compile(r"PL[0-59]\d\d")
_ABOUT = """\
# Codes explained

What each code of a report means, how it comes about, a spec that shows it, and the same spec mended. `placelogic explain
CODE` prints one entry; `placelogic explain --all` prints this page. Every spec on it is run by the tests.
"""


class UnknownCode(LookupError):
    """There is no such code; the message says which are near."""


class Entry(Struct, frozen=True):
    """`title`: one line. `body`: the Markdown after the title."""

    code: str
    title: str
    body: str


def codes() -> list[str]:
    """Every code with an entry, in order. `PL` stands for all errors in the input."""
    order = list(FAMILIES)
    names = [path.stem for path in FOLDER.glob("*.md")]
    return sorted(names, key=lambda code: (order.index(code[:2]), code))


def entry(code: str) -> Entry:
    """The entry of a code, in capitals or not; errors in the input share one. Raises UnknownCode."""
    wanted = code.strip().upper()
    name = "PL" if _INPUT_ERROR.fullmatch(wanted) else wanted
    known = codes()
    if name not in known:
        raise UnknownCode(f"there is no code `{code}`; {_near(wanted, known)}")
    head, body = (FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n", 1)
    return Entry(name, head.removeprefix(f"# {name}: "), body.strip("\n"))


def _near(wanted: str, known: list[str]) -> str:
    family = [name for name in known if name.startswith(wanted[:2])] if len(wanted) > 1 else []
    if family == ["PL"]:
        return "errors in the input are PL0nn to PL5nn and PL9nn"
    if family:
        return closest(wanted, family) or f"there are {', '.join(family)}"
    return closest(wanted, known) or "`placelogic explain` lists them all"


def page() -> str:
    """All entries as one Markdown page."""
    parts = [_ABOUT]
    title = ""
    for code in codes():
        if FAMILIES[code[:2]] != title:
            title = FAMILIES[code[:2]]
            parts.append(f"## {title}\n")
        one = entry(code)
        body = re.sub(r"^##(?= )", "####", one.body, flags=re.MULTILINE)
        parts.append(f"### {one.code}: {one.title}\n\n{body}\n")
    return "\n".join(parts)
