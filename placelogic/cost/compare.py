"""Two costs side by side, and their ratios. Sizes of one name are one size."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import sympy
from msgspec import Struct

from placelogic.cost.json import parseable
from placelogic.cost.symbols import at
from placelogic.cost.text import formula, human
from placelogic.cost.totals import Cost


class Side(Struct, frozen=True):
    """One quantity of both specs. `ratio` is first over second; None where the second is zero."""

    quantity: str
    first: sympy.Expr
    second: sympy.Expr
    ratio: sympy.Expr | None

    @property
    def inverse(self) -> sympy.Expr | None:
        """Second over first."""
        return None if self.ratio is None or self.ratio == 0 else tidy(1 / self.ratio)


class Comparison(Struct, frozen=True):
    """`differing`: sizes of one name that both specs fix, differently: no formula relates them."""

    first: Cost
    second: Cost
    sides: tuple[Side, ...]
    differing: tuple[str, ...]

    def numbers(self, side: Side) -> tuple[Fraction | None, Fraction | None]:
        return self.first.known(side.first), self.second.known(side.second)


def compare(first: Cost, second: Cost) -> Comparison:
    """The totals of two specs against each other."""
    pairs = (
        ("held", first.memory.held, second.memory.held),
        ("held and gathered unit", first.memory.with_unit, second.memory.with_unit),
        ("peak", first.memory.peak, second.memory.peak),
        ("host memory", first.memory.host, second.memory.host),
        ("sent", first.traffic.sent, second.traffic.sent),
        ("sent, limit for many devices", first.traffic.limit, second.traffic.limit),
        ("to and from the host", first.traffic.host, second.traffic.host),
    )
    common = sorted(set(first.values) & set(second.values))
    differing = tuple(name for name in common if first.values[name] != second.values[name])
    sides = []
    for quantity, a, b in pairs:
        if a == 0 and b == 0:
            continue
        # Where one name has two values, each formula is taken at its own.
        left, right = (
            at(expr, {name: cost.values[name] for name in differing}) for expr, cost in ((a, first), (b, second))
        )
        sides.append(Side(quantity, left, right, None if right == 0 else ratio(left, right)))
    return Comparison(first, second, tuple(sides), differing)


def ratio(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    """a/b, cancelled where both are plain fractions of sizes."""
    return tidy(a / b) if not (a / b).has(sympy.Piecewise, sympy.Max, sympy.Min, sympy.ceiling) else a / b


def tidy(expr: sympy.Expr) -> sympy.Expr:
    if expr.has(sympy.Piecewise, sympy.Max, sympy.Min, sympy.ceiling):
        return expr
    return sympy.factor(sympy.cancel(expr))


def lines(found: Comparison) -> Iterator[str]:
    """As text: a paragraph for each quantity."""
    first, second = found.first.name, found.second.name
    if first == second:
        first, second = f"{first} (first)", f"{second} (second)"
    if found.differing:
        yield f"note: filled in, as the two specs fix it differently: {', '.join(found.differing)}"
    width = max(len(first), len(second)) + 3 + min(len(first), len(second))
    for side in found.sides:
        yield ""
        yield side.quantity
        numbers = found.numbers(side)
        for name, expr, value in ((first, side.first, numbers[0]), (second, side.second, numbers[1])):
            shown = "" if value is None else human(value, "bytes")
            yield f"  {name.ljust(width)}  {_both(shown, expr)}"
        value = _over(*numbers)
        for name, expr, number in (
            (f"{first} / {second}", side.ratio, value),
            (f"{second} / {first}", side.inverse, None if not value else 1 / value),
        ):
            if expr is not None:
                yield f"  {name.ljust(width)}  {_both('' if number is None else _plain(number), expr)}"


def as_data(found: Comparison) -> dict[str, Any]:
    """For JSON."""
    return {
        "schema": "placelogic/compare/1",
        "first": found.first.name,
        "second": found.second.name,
        "differing": list(found.differing),
        "quantities": [
            {
                "quantity": side.quantity,
                "first": {"formula": parseable(side.first), "value": _float(found.numbers(side)[0])},
                "second": {"formula": parseable(side.second), "value": _float(found.numbers(side)[1])},
                "ratio": None if side.ratio is None else parseable(side.ratio),
                "ratio_value": _float(_over(*found.numbers(side))),
            }
            for side in found.sides
        ],
    }


def _over(a: Fraction | None, b: Fraction | None) -> Fraction | None:
    return None if a is None or b is None or b == 0 else a / b


def _both(number: str, expr: sympy.Expr) -> str:
    if number and expr.is_number:
        return number
    return f"{number}  {formula(expr)}" if number else formula(expr)


def _plain(value: Fraction) -> str:
    return str(value) if value.denominator < 1000 else f"{float(value):.6g}"


def _float(value: Fraction | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)
