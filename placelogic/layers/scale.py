"""Exact factors as products of sizes: compared and multiplied without a solver."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from placelogic.program.expr import Binary, Expr, Name, Neg, Num, number, show


class Scale(Struct, frozen=True):
    """`number` times powers of expressions that are no products themselves, in the order of their text."""

    number: Fraction = Fraction(1)
    powers: tuple[tuple[str, Expr, int], ...] = ()

    def __mul__(self, other: Scale) -> Scale:
        return _product([self, other])

    def inverse(self) -> Scale:
        """Raises ZeroDivisionError for zero."""
        return Scale(1 / self.number, tuple((text, expr, -power) for text, expr, power in self.powers))

    @property
    def is_one(self) -> bool:
        return self.number == 1 and not self.powers

    def expr(self) -> Expr:
        """The factor as an expression over sizes."""
        out: Expr = number(self.number)
        for _, expr, power in self.powers:
            for _ in range(abs(power)):
                out = Binary("*" if power > 0 else "/", out, expr)
        return out


ONE = Scale()


def of_axis(axis: str) -> Scale:
    return Scale(Fraction(1), ((axis, Name(axis), 1),))


def scale_of(expr: Expr | None) -> Scale:
    """The factor that an expression stands for; None is 1."""
    match expr:
        case None:
            return ONE
        case Num(value):
            return Scale(value)
        case Neg(operand):
            return Scale(Fraction(-1)) * scale_of(operand)
        case Binary("*", left, right):
            return scale_of(left) * scale_of(right)
        case Binary("/", left, right):
            below = scale_of(right)
            if below.number != 0:
                return scale_of(left) * below.inverse()
    return Scale(Fraction(1), ((show(expr), expr, 1),))  # type: ignore[arg-type]


def _product(parts: list[Scale]) -> Scale:
    total = Fraction(1)
    powers: dict[str, tuple[Expr, int]] = {}
    for part in parts:
        total *= part.number
        for text, expr, power in part.powers:
            powers[text] = (expr, powers.get(text, (expr, 0))[1] + power)
    if total == 0:
        return Scale(Fraction(0))
    return Scale(total, tuple((text, expr, power) for text, (expr, power) in sorted(powers.items()) if power))
