"""Places in files. Every statement, finding and error carries one."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct


class Span(Struct, frozen=True):
    """A stretch of text: lines and columns count from 1, the end column is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The stretch from the start of this span to the end of the other."""
        return Span(self.path, self.line, self.column, other.end_line, other.end_column)


@lru_cache(maxsize=32)
def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text, kept: many findings lie in one."""
    return tuple(text.split("\n"))


NOWHERE = Span("", 0, 0, 0, 0)
"""The place of things nobody wrote: what is derived from the whole spec."""
