"""Arithmetic over sizes: what a person may write wherever a number is expected.

One expression type serves the syntax tree and the step program. Values are exact rationals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from operator import add, mod, mul, sub, truediv
from typing import Any, TypeVar

from msgspec import Struct

from placelogic.compat import assert_never
from placelogic.source import NOWHERE, Span

T = TypeVar("T")


class Placed(Struct, frozen=True, eq=False):
    """Two of these are equal where they say the same, wherever they stand: the last field, the place, counts for
    nothing."""

    def _said(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__struct_fields__[:-1]])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._said() == other._said()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._said())

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._said()}"


class Num(Placed, frozen=True):
    value: Fraction
    span: Span = NOWHERE


class Name(Placed, frozen=True):
    name: str
    span: Span = NOWHERE


class Neg(Placed, frozen=True):
    operand: Expr
    span: Span = NOWHERE


class Binary(Placed, frozen=True):
    """`op` is one of + - * / %. Division is exact; % is the integer remainder, with the divisor's sign."""

    op: str
    left: Expr
    right: Expr
    span: Span = NOWHERE


class Call(Placed, frozen=True):
    """`memory(zero3)`: only in claims."""

    function: str
    argument: str
    span: Span = NOWHERE


Expr = Num | Name | Neg | Binary | Call


class Compare(Placed, frozen=True):
    """`op` is one of == != < <= > >=."""

    op: str
    left: Expr
    right: Expr
    span: Span = NOWHERE


TOKENS = "tokens"
"""The reserved name for all loss tokens of the step (T in the semantics)."""


def tokens_of(loss: str) -> str:
    """The name for those of one loss, where there are several."""
    return f"{TOKENS} of {loss}"


def number(value: int | Fraction) -> Num:
    return Num(Fraction(value))


def parts(expr: Expr | Compare) -> Iterator[Expr | Compare]:
    """All that it is made of, left to right, inner parts before what they are parts of; itself last."""
    match expr:
        case Neg(operand):
            yield from parts(operand)
        case Binary(_, left, right) | Compare(_, left, right):
            yield from parts(left)
            yield from parts(right)
    yield expr


def names(expr: Expr | Compare) -> Iterator[Name]:
    """Every name used, left to right, with repeats."""
    return (part for part in parts(expr) if isinstance(part, Name))


def divisors(expr: Expr | Compare) -> Iterator[Expr]:
    """Every right-hand side of / and %, inner ones first: each must differ from zero."""
    return (part.right for part in parts(expr) if isinstance(part, Binary) and part.op in "/%")


def changed(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """With every part changed, inner ones first; what they change to is not looked into. What does not change stays
    the same object."""
    match expr:
        case Neg(operand):
            new = changed(operand, change)
            expr = expr if new is operand else Neg(new, expr.span)
        case Binary(op, left, right):
            a, b = changed(left, change), changed(right, change)
            expr = expr if a is left and b is right else Binary(op, a, b, expr.span)
    return change(expr)


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace names by expressions, once."""
    return changed(expr, lambda part: values.get(part.name, part) if isinstance(part, Name) else part)


def operate(whole: Binary, left: Any, right: Any) -> Any:
    """The operation of an expression on numbers of any kind."""
    return _OPERATORS[whole.op](left, right)


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "/": truediv, "%": mod}


def compute(
    expr: Expr, value: Callable[[Num | Name | Call], T], combine: Callable[[Binary, T, T], T] = operate
) -> T:
    """What it comes to, in numbers of any kind: `value` of what is no operation, `combine` of two operands."""
    match expr:
        case Neg(operand):
            return -compute(operand, value, combine)  # type: ignore[operator]
        case Binary(_, left, right):
            return combine(expr, compute(left, value, combine), compute(right, value, combine))
        case _:
            return value(expr)


def evaluate(expr: Expr, env: Mapping[str, Fraction | int]) -> Fraction:
    """The exact value. Raises KeyError for an unknown name, ZeroDivisionError, and ValueError for a cost."""

    def value(part: Num | Name | Call) -> Fraction:
        match part:
            case Num(exact):
                return exact
            case Name(name):
                return Fraction(env[name])
            case _:
                raise ValueError("claims are not evaluated")

    return compute(expr, value)


def holds(condition: Compare, env: Mapping[str, Fraction | int]) -> bool:
    """Whether the condition is true. Raises like `evaluate`."""
    a, b = evaluate(condition.left, env), evaluate(condition.right, env)
    match condition.op:
        case "==":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case _:
            raise ValueError(f"unknown comparison {condition.op!r}")


_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def show(expr: Expr | Compare) -> str:
    """As a person writes it; parses back to an equal expression."""
    match expr:
        case Compare(op, left, right):
            return f"{show(left)} {op} {show(right)}"
        case Num(value):
            return str(value) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
        case Name(name):
            return name
        case Call(function, argument):
            return f"{function}({argument})"
        case Neg(operand):
            return f"-{_operand(operand, 3)}"
        case Binary(op, left, right):
            level = _PRECEDENCE[op]
            space = " " if op in "+-%" else ""
            return f"{_operand(left, level)}{space}{op}{space}{_operand(right, level + 1)}"
        case _:
            assert_never(expr)


def _operand(expr: Expr, level: int) -> str:
    match expr:
        case Binary(op, _, _) if _PRECEDENCE[op] < level:
            return f"({show(expr)})"
        case Num(value) if value.denominator != 1 and level > 2:
            return f"({show(expr)})"
        case Neg() if level > 1:
            return f"({show(expr)})"
        case _:
            return show(expr)
