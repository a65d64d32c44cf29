"""Lines of styled text, and how wide they are on a screen. Styles are names; only terminal.py gives them colours."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Literal

from placelogic.io.quoting import visible

Style = Literal["", "error", "warning", "note", "good", "bad", "doubt", "strong", "gutter", "mark"]
Line = tuple[tuple[str, Style], ...]


def plain(line: Line) -> str:
    """The line without its styles and without trailing blanks."""
    return "".join(text for text, _ in line).rstrip()


def cells(text: str) -> int:
    """Columns the text takes on a screen: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(_cell, text))


def _cell(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def window(text: str, start: int, end: int, width: int) -> tuple[str, int, int]:
    """The part of a long line around the screen columns `start` to `end`, at most `width` wide,
    and where those columns now lie. Cut ends show as `...`."""
    if cells(text) <= width:
        return text, start, end
    width = max(width, 12)
    room = width - 6
    # Keep what is marked in sight: its beginning matters most.
    first = 0 if end <= width - 3 else max(0, start - max(0, room - (end - start)) // 2)
    limit = first + (width - 3 if first == 0 else room)
    begin, shown, at = _between(text, first, limit)
    lead = "..." if begin else ""
    tail = "..." if begin + cells(shown) < at else ""
    shift = len(lead) - begin
    shown_end = len(lead) + cells(shown)
    return lead + shown + tail, max(0, start + shift), min(end + shift, shown_end)


def _between(text: str, first: int, limit: int) -> tuple[int, str, int]:
    """What lies between two screen columns, where it begins, and how wide the whole text is."""
    if text.isascii():
        return min(first, len(text)), text[first:limit], len(text)
    kept, at, begin = [], 0, None
    for character in text:
        size = _cell(character)
        if at >= first and at + size <= limit:
            begin = at if begin is None else begin
            kept.append(character)
        at += size
    return begin or 0, "".join(kept), at


def wrap(text: str, width: int | None) -> list[str]:
    """Break at blanks into lines of at most `width` columns; a longer word stays whole. None: never."""
    if width is None or cells(text) <= width:
        return [text]
    lines: list[str] = []
    current = ""
    for word in text.split(" "):
        if current and cells(current) + 1 + cells(word) > width:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return [*lines, current]


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], width: int | None) -> list[str]:
    """Aligned columns; one line per cell where the columns do not fit in `width`."""
    rows = [tuple(visible(cell) for cell in row) for row in rows]
    sizes = [max(cells(row[i]) for row in [head, *rows]) for i in range(len(head))]
    if width is None or sum(sizes) + 3 * (len(head) - 1) <= width:
        return ["   ".join(pad(cell, size) for cell, size in zip(row, sizes)).rstrip() for row in [head, *rows]]
    lines: list[str] = []
    for row in rows:
        lines.append(row[0])
        lines += [f"  {name}: {cell}" for name, cell in zip(head[1:], row[1:])]
    return lines
