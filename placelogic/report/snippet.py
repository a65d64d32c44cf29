"""The source excerpt of a finding: gutter, line, carets, label."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.io.quoting import visible
from placelogic.report.layout import Line, Style, cells, window, wrap
from placelogic.source import Span, lines_of

_LINES_SHOWN = 6
"""A longer stretch shows its first lines and its last."""
_AROUND = 500
"""Characters of a line that are looked at before and behind a place; more than screens are wide."""


def snippet(text: str, span: Span, label: str | None, width: int, style: Style = "mark") -> list[Line]:
    """The lines of `text` that `span` covers, marked. Empty when the text has no such line."""
    lines = lines_of(text)
    if not 1 <= span.line <= len(lines):
        return []
    last = min(max(span.end_line, span.line), len(lines))
    if last > span.line and span.end_line == last and span.end_column <= 1:
        last -= 1  # the stretch ends before the first character of its last line
    gutter = len(str(last))
    body = _one(lines, span, last, label, width, gutter, style)
    return [_bar(gutter), *body, _bar(gutter)]


def _bar(gutter: int) -> Line:
    return ((" " * gutter + " |", "gutter"),)


def _one(
    lines: Sequence[str], span: Span, last: int, label: str | None, width: int, gutter: int, style: Style
) -> list[Line]:
    if last > span.line:
        return _many(lines, span.line, last, label, width, gutter, style)
    line = lines[span.line - 1]
    first = max(0, span.column - 1 - _AROUND)
    raw = line[first : span.column - 1 + _AROUND].rstrip("\r")  # not all of a line that many findings may share
    column = span.column - 1 - first
    start = cells(visible(raw[:column]))
    # A stretch over several lines whose last is empty marks the rest of its first line.
    stop = len(raw) if span.end_line > span.line else span.end_column - 1 - first
    end = max(cells(visible(raw[:stop])), start + 1)
    shown, start, end = window(visible(raw).rstrip(), start, end, width - gutter - 3)
    marks = "^" * max(end - start, 1)
    source: Line = ((f"{span.line:>{gutter}} | ", "gutter"), (shown, ""))
    margin: Line = ((" " * gutter + " | ", "gutter"),)
    if label is None:
        return [source, (*margin, (" " * start + marks, style))]
    room = width - gutter - 3 - start - len(marks) - 1
    if cells(label) <= room:
        return [source, (*margin, (" " * start + marks, style), (" " + visible(label), style))]
    # The label does not fit beside the carets: below them, at the margin.
    below = [(*margin, (part, style)) for part in wrap(visible(label), max(width - gutter - 3, 20))]
    return [source, (*margin, (" " * start + marks, style)), *below]


def _many(
    lines: Sequence[str], first: int, last: int, label: str | None, width: int, gutter: int, style: Style
) -> list[Line]:
    numbers: list[int | None] = list(range(first, last + 1))
    if len(numbers) > _LINES_SHOWN:
        numbers = [*numbers[: _LINES_SHOWN - 2], None, last]
    out: list[Line] = []
    for number in numbers:
        if number is None:
            out.append(((" " * gutter + " | ", "gutter"), ("| ...", style)))
            continue
        bar = "/ " if number == first else "| "
        shown, _, _ = window(visible(lines[number - 1][:_AROUND].rstrip("\r")).rstrip(), 0, 1, width - gutter - 5)
        out.append(((f"{number:>{gutter}} | ", "gutter"), (bar, style), (shown, "")))
    margin: Line = ((" " * gutter + " | ", "gutter"),)
    for i, part in enumerate(wrap(visible(label or ""), max(width - gutter - 6, 20))):
        out.append((*margin, ("|_^ " + part if i == 0 else "    " + part, style)))
    return out
