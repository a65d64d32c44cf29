"""Formulas as expressions of the language, for the solver: maxima and cases are told apart first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import sympy

from placelogic.program.expr import Binary, Compare, Expr, Name, Neg, Num, number

MAX_CASES = 256
_OPS = {sympy.Eq: "==", sympy.Ne: "!=", sympy.Lt: "<", sympy.Le: "<=", sympy.Gt: ">", sympy.Ge: ">="}


class NotArithmetic(ValueError):
    """The formula rounds, or falls into too many cases: no polynomials decide it."""


def too_many(*exprs: sympy.Expr) -> NotArithmetic:
    """What to say: the sizes that the choices are about."""
    inner = (one for expr in exprs for one in expr.atoms(*_KINDS) if not any(part.has(*_KINDS) for part in one.args))
    names = sorted({symbol.name for one in inner for symbol in one.free_symbols})
    return NotArithmetic(f"it falls into more than {MAX_CASES} cases of {', '.join(names)}")


_LARGEST, _LEAST = sympy.Function("largest"), sympy.Function("least")
"""Maxima and minima of what still has choices in it: sympy compares what it is given, each time it is put together."""

_KINDS = (sympy.Max, sympy.Min, sympy.Piecewise, _LARGEST, _LEAST)


def cases(expr: sympy.Expr) -> Iterator[tuple[tuple[sympy.Basic, ...], sympy.Expr]]:
    """Conditions that together leave no size out, each with what the formula is there."""
    waiting: list[tuple[tuple[sympy.Basic, ...], sympy.Expr]] = [((), _waiting(expr))]
    count = 0
    while waiting:
        conditions, here = waiting.pop()
        count += 1
        if count > MAX_CASES:
            raise too_many(expr)
        while (chosen := _innermost(here)) is not None and not isinstance(chosen, _KINDS[:3]):
            compared = (sympy.Max if isinstance(chosen, _LARGEST) else sympy.Min)(*chosen.args)
            here = here.xreplace({chosen: compared})
        if chosen is None:
            yield conditions, here
            continue
        for more, value in _choices(chosen):
            waiting.append(((*conditions, *more), here.xreplace({chosen: value})))


def _waiting(expr: sympy.Expr) -> sympy.Expr:
    """Maxima and minima with choices inside, as functions that nothing compares."""
    if not expr.args or not expr.has(*_KINDS):
        return expr
    args = [_waiting(one) for one in expr.args]
    if isinstance(expr, (sympy.Max, sympy.Min)) and any(one.has(*_KINDS) for one in args):
        return (_LARGEST if isinstance(expr, sympy.Max) else _LEAST)(*args)
    return expr.func(*args)


def _innermost(expr: sympy.Expr) -> sympy.Expr | None:
    """The first choice without another one inside."""
    inner = [one for one in expr.atoms(*_KINDS) if not any(part.has(*_KINDS) for part in one.args)]
    return min(inner, key=str) if inner else None


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


def differences(small: sympy.Expr, big: sympy.Expr) -> Iterator[tuple[tuple[sympy.Basic, ...], sympy.Expr]]:
    """What has to be at most zero for a stronger claim than `small <= big`: of maxima every part of the one against
    the part of the other that is most like it, in which much may cancel. Conditions and values, as `cases`."""
    for (here, low), (there, high) in product(_branches(small), _branches(big)):
        if any(sympy.Not(one) in there for one in here):
            continue
        for part in _parts(low):
            left = [_cancelled(part - other) for other in _parts(high)]
            for more, value in cases(min(left, key=lambda one: (len(one.atoms(*_KINDS)), one.count_ops()))):
                yield (*here, *there, *more), value


def _branches(expr: sympy.Expr) -> list[tuple[tuple[sympy.Basic, ...], sympy.Expr]]:
    one, around = _outer(expr, sympy.Piecewise)
    return [((), expr)] if one is None else [(conditions, around(value)) for conditions, value in _choices(one)]


def _parts(expr: sympy.Expr) -> tuple[sympy.Expr, ...]:
    one, around = _outer(expr, sympy.Max)
    return (expr,) if one is None else tuple(map(around, one.args))


def _outer(expr: sympy.Expr, kind: type[sympy.Expr]) -> tuple[sympy.Expr | None, Callable[[sympy.Expr], sympy.Expr]]:
    """The choice that an expression is: it alone, or times a positive number, or with something added."""
    if isinstance(expr, kind):
        return expr, lambda value: value
    if expr.is_Add or expr.is_Mul:
        found = [arg for arg in expr.args if arg.has(kind)]
        rest = expr.func(*(arg for arg in expr.args if arg not in found))
        if len(found) == 1 and (expr.is_Add or rest.is_positive):
            one, around = _outer(found[0], kind)
            return one, lambda value: expr.func(rest, around(value))
    return None, lambda value: value


def _cancelled(expr: sympy.Expr) -> sympy.Expr:
    """Multiplied out, choices as they are."""
    names: dict[sympy.Expr, sympy.Dummy] = {}

    def named(one: sympy.Expr) -> sympy.Expr:
        if isinstance(one, _KINDS):
            return names.setdefault(one, sympy.Dummy())
        return one.func(*map(named, one.args)) if one.args else one

    plainly = sympy.expand(named(expr))
    return plainly.xreplace({dummy: one for one, dummy in names.items()})


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
