"""What `explain` shows: codes and their pages as lines of a screen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from placelogic.explain.entries import FAMILIES, Entry, codes, entry
from placelogic.report.layout import Line, wrap

WIDTH = 100
"""Columns of a line of prose; fewer on a narrow terminal."""

_BLOCK = re.compile(r"^```.*?^```$|^\S.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


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
