"""TOML with the place of every value: tables, dotted names, strings, numbers, booleans, lists and inline tables.
Dates and lists of tables are refused; the configurations read here have none."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from typing import Any

from msgspec import Struct, field

from placelogic.frontends.values import MAX_DIGITS, Count, Value
from placelogic.problem import Problem, SpecError
from placelogic.source import Span

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAME = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_TEXT = re.compile(r"\"\"\"(.*?)\"\"\"|'''(.*?)'''|\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'", re.DOTALL)
_NUMBER = re.compile(
    r"[+-]?(?:inf|nan|0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)(?![\w.:-])"
)
_WORD = re.compile(r"(true|false)\b")
_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_INLINE = re.compile(r"[ \t]*(?:#[^\n]*)?")


def read_toml(text: str, path: str) -> Value:
    """The value of a TOML text. Raises SpecError: PL500 with the place of what is wrong, PL502 beyond the bounds."""
    return _Reader(text, path, Count(path)).file()


class _Reader(Struct):
    text: str
    path: str
    count: Count
    position: int = 0
    root: dict[str, Any] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def file(self) -> Value:
        table = self.root
        self.skip(_BLANK)
        while self.position < len(self.text):
            if self.text.startswith("[[", self.position):
                raise self.wrong("a list of tables is not read here")
            if self.take("["):
                names = self.names()
                if not self.take("]"):
                    raise self.wrong("`]` is expected here")
                table = self.table(names)
            else:
                self.entry(table)
            self.skip(_INLINE)
            if self.position < len(self.text) and self.text[self.position] != "\n":
                raise self.wrong("the end of the line is expected here")
            self.skip(_BLANK)
        return _finished(self.root, self.span(0, 1), None)

    def table(self, names: list[tuple[str, Span]]) -> dict[str, Any]:
        table = self.root
        for name, span in names:
            self.count.one(span, len(names))
            inner = table.setdefault(name, {"": span})
            if not isinstance(inner, dict):
                raise SpecError(Problem("PL500", f"`{name}` is a value already, and no table", span))
            table = inner
        return table

    def entry(self, table: dict[str, Any], depth: int = 0) -> None:
        *heads, (name, span) = self.names()
        for head, place in heads:
            inner = table.setdefault(head, {"": place})
            if not isinstance(inner, dict):
                raise SpecError(Problem("PL500", f"`{head}` is a value already, and no table", place))
            table = inner
        if not self.take("="):
            raise self.wrong("`=` is expected here")
        if name in table:
            raise SpecError(Problem("PL500", f"`{name}` is given twice", span, "delete one of them"))
        table[name] = self.value(depth + len(heads) + 1, span)

    def names(self) -> list[tuple[str, Span]]:
        found: list[tuple[str, Span]] = []
        while True:
            self.skip(_INLINE)
            match = _NAME.match(self.text, self.position)
            if match is None:
                raise self.wrong("a name is expected here")
            self.position = match.end()
            (name,) = self.read(f"{match[0]} = 0", match.start())
            if not name:  # tables keep their own place there
                raise self.wrong("an empty name is not read here")
            found.append((name, self.span(match.start(), match.end())))
            if not self.take("."):
                return found

    def value(self, depth: int, key: Span | None) -> Value:
        self.skip(_INLINE)
        start = self.position
        self.count.one(self.span(start, start + 1), depth)
        if self.take("["):
            items = []
            self.skip(_BLANK)
            while not self.take("]"):
                items.append(self.value(depth + 1, None))
                self.skip(_BLANK)
                if not self.take(",") and not self.text.startswith("]", self.position):
                    raise self.wrong("a comma or `]` is expected here")
                self.skip(_BLANK)
            return Value(tuple(items), self.span(start, self.position), key)
        if self.take("{"):
            table: dict[str, Any] = {}
            while not self.take("}"):
                self.entry(table, depth)
                if not self.take(",") and not self.text.startswith("}", self.position):
                    raise self.wrong("a comma or `}` is expected here")
            return _finished(table, self.span(start, self.position), key)
        return Value(self.scalar(), self.span(start, self.position), key)

    def scalar(self) -> bool | int | float | str:
        for pattern in (_TEXT, _WORD, _NUMBER):
            match = pattern.match(self.text, self.position)
            if match is None:
                continue
            self.position = match.end()
            if pattern is _NUMBER and len(match[0]) > MAX_DIGITS:
                raise self.wrong("this number is too long")
            return self.read(f"value = {match[0]}", match.start())["value"]
        raise self.wrong("a value is expected here")

    def read(self, line: str, start: int) -> dict[str, Any]:
        """What a line of one name or one value says. The library gives no places, so it is asked one by one."""
        try:
            return tomllib.loads(line)
        except ValueError:  # also for a number that is too long
            self.position = start
            if "\\" in line:
                raise self.wrong("this text is no text of TOML: is a backslash meant to stand alone?") from None
            raise self.wrong("this is neither a number nor a text as TOML writes them") from None

    def take(self, sign: str) -> bool:
        self.skip(_INLINE)
        found = self.text.startswith(sign, self.position)
        self.position += len(sign) * found
        return found

    def skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def wrong(self, message: str) -> SpecError:
        return SpecError(Problem("PL500", message, self.span(self.position, self.position + 1)))

    def span(self, start: int, end: int) -> Span:
        line = bisect_right(self.starts, start)
        column = start - self.starts[line - 1] + 1
        return Span(self.path, line, column, line, column + max(end - start, 1))


def _finished(table: dict[str, Any], span: Span, key: Span | None) -> Value:
    own = table.pop("", None)
    entries = {name: _finished(one, span, None) if isinstance(one, dict) else one for name, one in table.items()}
    return Value(entries, own or span, key or own)
