"""JSON as configuration files have it: with comments and trailing commas, and with the place of every value.

DeepSpeed reads its file with hjson (deepspeed/runtime/config.py), and others accept comments as well."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field

from placelogic.frontends.values import MAX_DIGITS, Count, Value
from placelogic.problem import Problem, SpecError
from placelogic.source import Span

_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_DIGITS = re.compile(r"-?[\d.]+")
_WORD = re.compile(r"[A-Za-z_$][\w.$-]*")
_WORDS = {"true": True, "false": False, "null": None}


def read_json(text: str, path: str) -> Value:
    """The value of a JSON text. Raises SpecError: PL500 with the place of what is wrong, PL502 beyond the bounds."""
    return _Reader(text, path).file()


@dataclass(slots=True)
class _Reader:
    text: str
    path: str
    position: int = 0
    count: Count = field(init=False)
    starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.count = Count(self.path)
        self.starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def file(self) -> Value:
        value = self.value(0)
        self.skip()
        if self.position < len(self.text):
            raise self.wrong("nothing may follow the end of the value")
        return value

    def value(self, depth: int, key: Span | None = None) -> Value:
        self.skip()
        start = self.position
        self.count.one(self.span(start, start + 1), depth)
        sign = self.text[start : start + 1]
        if sign == "{":
            data = self.entries(depth)
        elif sign == "[":
            data = self.items(depth)
        else:
            data = self.scalar()
        return Value(data, self.span(start, self.position), key)

    def entries(self, depth: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        self.position += 1
        while not self.take("}"):
            start = self.position
            match = _STRING.match(self.text, start)
            if match is None:
                raise self.wrong("a name in double quotes, or `}`, is expected here")
            name = self.string(match)
            key = self.span(start, self.position)
            if name in found:
                raise SpecError(Problem("PL500", f"`{name}` is given twice, first in line {found[name].span.line}", key,
                                        "delete one of them"))  # fmt: skip
            if not self.take(":"):
                raise self.wrong("a colon is expected here")
            found[name] = self.value(depth + 1, key)
            if not self.take(",") and not self.at("}"):
                raise self.wrong("a comma or `}` is expected here")
        return found

    def items(self, depth: int) -> tuple[Value, ...]:
        found: list[Value] = []
        self.position += 1
        while not self.take("]"):
            found.append(self.value(depth + 1))
            if not self.take(",") and not self.at("]"):
                raise self.wrong("a comma or `]` is expected here")
        return tuple(found)

    def scalar(self) -> None | bool | int | float | str:
        if match := _STRING.match(self.text, self.position):
            return self.string(match)
        if (match := _DIGITS.match(self.text, self.position)) and len(match[0]) > MAX_DIGITS:
            raise SpecError(Problem("PL500", "this number is too long", self.span(match.start(), match.end())))
        if match := _NUMBER.match(self.text, self.position):
            self.position = match.end()
            digits = match[0]
            return int(digits) if re.fullmatch(r"-?\d+", digits) else float(digits)
        if match := _WORD.match(self.text, self.position):
            word = match[0]
            if word in _WORDS:
                self.position = match.end()
                return _WORDS[word]
            span = self.span(match.start(), match.end())
            hint = f'write "{word}" if it is text, or fill in the value of the template'
            raise SpecError(Problem("PL500", f"`{word}` is no value of JSON", span, hint))
        raise self.wrong("a value is expected here")

    def string(self, match: re.Match[str]) -> str:
        try:
            result = json.loads(match[0], strict=False)
        except ValueError:
            span = self.span(match.start(), match.end())
            raise SpecError(Problem("PL500", "this text has an escape that JSON does not know", span)) from None
        self.position = match.end()
        return str(result)

    def take(self, sign: str) -> bool:
        found = self.at(sign)
        self.position += found
        self.skip()
        return found

    def at(self, sign: str) -> bool:
        self.skip()
        return self.text.startswith(sign, self.position)

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def wrong(self, message: str) -> SpecError:
        return SpecError(Problem("PL500", message, self.span(self.position, self.position + 1)))

    def span(self, start: int, end: int) -> Span:
        line = bisect_right(self.starts, start)
        last = bisect_right(self.starts, max(start, end - 1))
        return Span(self.path, line, start - self.starts[line - 1] + 1, last, end - self.starts[last - 1] + 1)
