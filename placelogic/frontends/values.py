"""What a configuration file holds: plain values, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from placelogic.problem import Problem, SpecError
from placelogic.source import Span

Scalar: TypeAlias = "None | bool | int | float | str"

MAX_DEPTH = 60
MAX_VALUES = 10_000
MAX_DIGITS = 300
WHOLE_DIGITS = 18
"""Bounds on a configuration file: far above any real one, and low enough that a hostile one ends quickly. Whole numbers are
shorter, so that their products can be written in a spec."""


class Value(Struct, frozen=True, eq=False):
    """A value of a configuration. `data`: a scalar, a tuple of values, or a mapping of names to values.
    `key`: the place of the name it was given under, None for entries of lists and for the whole file. `over`: an
    earlier value of the same name that this one replaces; `unsure`: or perhaps not, in a script that branches."""

    data: Scalar | tuple[Value, ...] | Mapping[str, Value]
    span: Span
    key: Span | None = None
    over: Value | None = None
    unsure: bool = False

    def at(self, name: str) -> Value | None:
        """The entry of this name, None where there is none or this is no mapping."""
        return self.data.get(name) if isinstance(self.data, Mapping) else None

    def find(self, dotted: str) -> Value | None:
        """The value at a path such as `zero_optimization.stage`."""
        value: Value | None = self
        for name in dotted.split("."):
            if value is None:
                return None
            value = value.at(name)
        return value

    def leaves(self, prefix: str = "") -> Iterator[tuple[str, Value]]:
        """Every scalar and list below, with its path. An empty mapping counts as a leaf."""
        if isinstance(self.data, Mapping) and (self.data or not prefix):
            for name, value in self.data.items():
                yield from value.leaves(f"{prefix}.{name}" if prefix else name)
        else:
            yield prefix, self


def plain(value: Value) -> object:
    """The value without its places."""
    if isinstance(value.data, Mapping):
        return {name: plain(one) for name, one in value.data.items()}
    if isinstance(value.data, tuple):
        return [plain(one) for one in value.data]
    return value.data


def told(value: Value) -> str:
    """A value in a sentence: short, on one line."""
    import json

    text = json.dumps(plain(value), ensure_ascii=False, default=str)
    text = text[1:-1] if text.startswith('"') else text
    return text if len(text) <= 60 else text[:57] + "..."


class Count(Struct):
    """Guards a reader against files that are made to exhaust it: anchors that multiply, endless nesting."""

    path: str
    values: int = 0
    depth: int = field(default=0)

    def one(self, span: Span, depth: int) -> None:
        self.values += 1
        if depth > MAX_DEPTH:
            raise SpecError(Problem("PL502", f"this is nested more than {MAX_DEPTH} deep", span, "flatten it"))
        if self.values > MAX_VALUES:
            message = f"this file holds more than {MAX_VALUES} values, aliases written out"
            raise SpecError(Problem("PL502", message, span, "is this a configuration?"))
