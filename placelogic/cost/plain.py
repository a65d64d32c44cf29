"""Formulas as expressions of the language, for the solver: maxima and cases are told apart first."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import sympy

from placelogic.program.expr import Binary, Compare, Expr, Name, Neg, Num, number

MAX_CASES = 256
_OPS = {sympy.Eq: "==", sympy.Ne: "!=", sympy.Lt: "<", sympy.Le: "<=", sympy.Gt: ">", sympy.Ge: ">="}


class NotArithmetic(ValueError):
    """The formula rounds, or falls into too many cases: no polynomials decide it."""


def cases(expr: sympy.Expr) -> Iterator[tuple[tuple[sympy.Basic, ...], sympy.Expr]]:
    """Conditions that together leave no size out, each with what the formula is there."""
    waiting: list[tuple[tuple[sympy.Basic, ...], sympy.Expr]] = [((), expr)]
    count = 0
    while waiting:
        conditions, here = waiting.pop()
        count += 1
        if count > MAX_CASES:
            raise NotArithmetic("it falls into too many cases")
        choices = here.atoms(sympy.Max, sympy.Min, sympy.Piecewise)
        inner = [
            one for one in choices if not any(part.has(sympy.Max, sympy.Min, sympy.Piecewise) for part in one.args)
        ]
        if not inner:
            yield conditions, here
            continue
        chosen = min(inner, key=str)
        for more, value in _choices(chosen):
            waiting.append(((*conditions, *more), here.xreplace({chosen: value})))


def _choices(one: sympy.Expr) -> Iterator[tuple[tuple[sympy.Basic, ...], sympy.Expr]]:
    if isinstance(one, sympy.Piecewise):
        before: list[sympy.Basic] = []
        for value, condition in one.args:
            now = () if condition is sympy.true else (condition,)
            yield (*before, *now), value
            before.append(sympy.Not(condition))
        return
    relation = sympy.Ge if isinstance(one, sympy.Max) else sympy.Le
    for value in one.args:
        yield tuple(relation(value, other, evaluate=False) for other in one.args if other != value), value


def condition(relation: sympy.Basic) -> Compare:
    """A comparison of sizes."""
    for kind, op in _OPS.items():
        if isinstance(relation, kind):
            return Compare(op, plain(relation.lhs), plain(relation.rhs))
    raise NotArithmetic(f"it depends on {relation}")


def plain(expr: sympy.Expr) -> Expr:
    """The same in the language. Raises NotArithmetic."""
    if expr.is_Rational:
        return Num(Fraction(int(expr.p), int(expr.q)))
    if expr.is_Symbol:
        return Name(expr.name)
    if expr.is_Add or expr.is_Mul:
        first, *rest = map(plain, expr.args)
        for part in rest:
            first = Binary("+" if expr.is_Add else "*", first, part)
        return first
    if expr.is_Pow and expr.exp.is_Integer:
        base, power = plain(expr.base), int(expr.exp)
        result: Expr = base
        for _ in range(abs(power) - 1):
            result = Binary("*", result, base)
        return result if power > 0 else Binary("/", number(1), result)
    if isinstance(expr, sympy.Mod):
        return Binary("%", plain(expr.args[0]), plain(expr.args[1]))
    if expr.could_extract_minus_sign():
        return Neg(plain(-expr))
    raise NotArithmetic(f"it rounds: {expr}")
