"""Edits of the text of a spec: replace a stretch, or put a line beside a statement."""

from __future__ import annotations

from msgspec import Struct

from placelogic.source import Span


class Edit(Struct, frozen=True):
    """Replace the text of `span` by `text`; `says` tells a person what to do, in one phrase."""

    span: Span
    text: str
    says: str


def apply(source: str, edit: Edit) -> str:
    """The source after the edit."""
    start, end = offset(source, edit.span.line, edit.span.column), offset(source, edit.span.end_line, edit.span.end_column)
    return source[:start] + edit.text + source[end:]


def offset(source: str, line: int, column: int) -> int:
    """The index of a place (from 1) in the text; lines end as `str.splitlines` sees them not: at \\n only."""
    start = 0
    for _ in range(line - 1):
        start = source.index("\n", start) + 1
    return start + column - 1


def replace(span: Span, text: str) -> Edit:
    """Several lines are told as they are to be written, from the column where they begin; one line in place."""
    if "\n" in text:
        told = text.replace("\n" + " " * (span.column - 1), "\n")
        return Edit(span, text, f"from line {span.line} on write\n{told}")
    return Edit(span, text, f"write `{text}` in line {span.line}")


def delete(source: str, span: Span) -> Edit:
    """Delete a statement, with its line where nothing else stands on it."""
    start, end = offset(source, span.line, span.column), offset(source, span.end_line, span.end_column)
    before = source.rfind("\n", 0, start) + 1
    after = source.find("\n", end)
    after = len(source) if after < 0 else after + 1
    rest = source[end:after].strip()
    alone = not source[before:start].strip() and (not rest or rest.startswith("#"))
    gone = source[start:end]
    if not alone:
        return Edit(span, "", f"delete `{_short(gone)}` in line {span.line}")
    end_line = span.end_line + (1 if after <= len(source) and source[after - 1 : after] == "\n" else 0)
    end_column = 1 if end_line > span.end_line else after - (source.rfind("\n", 0, end) + 1) + 1
    whole = Span(span.path, span.line, 1, end_line, end_column)
    return Edit(whole, "", f"delete `{_short(gone)}` in line {span.line}")


def before(source: str, span: Span, text: str) -> Edit:
    """A line of its own before the statement."""
    place = Span(span.path, span.line, span.column, span.line, span.column)
    return Edit(place, f"{text}\n{_indent(source, span)}", f"write `{text}` before line {span.line}")


def after(source: str, span: Span, text: str) -> Edit:
    """A line of its own after the statement."""
    place = Span(span.path, span.end_line, span.end_column, span.end_line, span.end_column)
    return Edit(place, f"\n{_indent(source, span)}{text}", f"write `{text}` after line {span.end_line}")


def _indent(source: str, span: Span) -> str:
    start = offset(source, span.line, 1)
    line = source[start : start + span.column - 1]
    return line[: len(line) - len(line.lstrip())] if line.strip() else line


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."
