"""Expanded statements, and the list of problems that every pass of the elaborator adds to."""

from __future__ import annotations

import os

from msgspec import Struct, field

from placelogic.problem import Problem
from placelogic.program.program import Origin, Unheeded
from placelogic.source import Span
from placelogic.syntax import ast


class Item(Struct, frozen=True):
    """A statement after expansion. `use`: the line of the checked file that brought it in (a `use`,
    `model` or `import`), None when it stands in the checked file itself. `standard`: it comes from
    the standard library, whose targets are kinds even where weights bear the same name."""

    statement: ast.Statement
    use: Span | None = None
    standard: bool = False

    def at(self, span: Span) -> Span:
        """The place in the checked file to point at for a piece of this statement."""
        return span if self.use is None else self.use

    def origin(self, span: Span) -> Origin:
        return Origin(self.at(span), True, None if self.use is None else span)


class Log(Struct):
    """Collects problems, so that one run tells all of them. Of those that say the same of one place, the first
    is kept: two lines of a library may come upon one.

    `doubts` are problems that another one may explain: told only where there is no other. `unheeded`: what is said
    without effect, which is no problem."""

    problems: list[Problem] = field(default_factory=list)
    doubts: list[Problem] = field(default_factory=list)
    unheeded: list[Unheeded] = field(default_factory=list)
    _seen: set[Problem] = field(default_factory=set)
    _places: set[tuple[str, Span]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._seen.update(Problem(one.code, one.message, one.span) for one in self.problems)
        self._places.update((one.code, one.span) for one in self.problems)

    def add(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        if (said := Problem(code, message, span)) not in self._seen:
            self._seen.add(said)
            self._places.add((code, span))
            self.problems.append(Problem(code, message, span, hint))

    def at(self, item: Item, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Like `add`, for a piece of an expanded statement: names the library line it came through."""
        if item.use is not None:
            place = f"in {os.path.basename(span.path)}:{span.line}"
            hint = f"{hint} ({place})" if hint else place
        self.add(code, message, item.at(span), hint)

    def doubt(self, item: Item, code: str, message: str, span: Span, hint: str) -> None:
        aside = Log()
        aside.at(item, code, message, span, hint)
        self.doubts += [problem for problem in aside.problems if problem not in self.doubts]

    def once(self, item: Item, code: str, message: str, span: Span, hint: str) -> None:
        """Like `at`, for what one statement does to many weights alike: the first is told."""
        if (code, item.at(span)) not in self._places:
            self.at(item, code, message, span, hint)
