"""`explain`: what a code means, from the pages in `explain/`, one per code.

A page is Markdown of a simple kind: a title `# CODE: one line`, sections, paragraphs, lists, and
blocks of specs. On the screen it is plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from placelogic.problem import closest
from placelogic.report.layout import Line, wrap

FOLDER = Path(__file__).parent / "explain"
WIDTH = 100
"""Columns of a line of prose; fewer on a narrow terminal."""

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

_BLOCK = re.compile(r"^```.*?^```$|^\S.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_INPUT_ERROR = re.compile(r"PL[0-59]\d\d")
_ABOUT = """\
# Codes explained

What each code of a report means, how it comes about, a spec that shows it, and the same spec mended. `placelogic explain
CODE` prints one entry; `placelogic explain --all` prints this page. Every spec on it is run by the tests.
"""


class UnknownCode(LookupError):
    """There is no such code; the message says which are near."""


@dataclass(frozen=True, slots=True)
class Entry:
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


# --- on the screen --------------------------------------------------------------------------


def overview_lines(width: int | None) -> list[Line]:
    """Every code with its one line."""
    lines: list[Line] = []
    title = ""
    for code in codes():
        if FAMILIES[code[:2]] != title:
            title = FAMILIES[code[:2]]
            lines += [(), ((title, "strong"),)]
        first, *rest = wrap(entry(code).title, _room(width, 8))
        lines.append(((f"  {code:<6}", "note"), (first, "")))
        lines += [((f"        {part}", ""),) for part in rest]
    return [*lines, (), (("placelogic explain CODE tells more about one", ""),)]


def entry_lines(one: Entry, width: int | None) -> list[Line]:
    """One entry in full."""
    first, *rest = wrap(f"{one.code}: {one.title}", _room(width, 0))
    head: list[Line] = [((one.code, "error"), (first[len(one.code) :], "strong"))]
    head += [((part, "strong"),) for part in rest]
    return [*head, (), *_text(one.body, width)]


def _text(body: str, width: int | None) -> Iterator[Line]:
    """Paragraphs wrapped, sections as headings, specs indented."""
    for block in _BLOCK.findall(body):
        if block.startswith("```"):
            for line in block.split("\n")[1:-1]:
                yield ((f"    {line}", ""),)
        elif block.startswith("## "):
            yield ((block[3:], "strong"),)
        elif block.startswith("- "):
            for item in re.split(r"\n?^- ", block, flags=re.MULTILINE)[1:]:
                first, *rest = wrap(" ".join(item.split()), _room(width, 4))
                yield ((f"  - {first}", ""),)
                yield from (((f"    {part}", ""),) for part in rest)
        else:
            yield from (((part, ""),) for part in wrap(" ".join(block.split()), _room(width, 0)))
        yield ()


def _room(width: int | None, margin: int) -> int:
    return max(min(width or WIDTH, WIDTH) - margin, 20)
