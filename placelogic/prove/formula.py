"""Conditions on sizes and coordinates, as data: written out as SMT-LIB, or evaluated exactly.

Variables are integers. A name is a size (`dp`), or internal with a dot (`x.dp`, `w.dp`, `m.`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from placelogic.compat import assert_never
from placelogic.prove.ratio import ONE_POLY, ZERO, Poly, Ratio, const, poly_mul, var
from placelogic.prove.written import Written

Op = Literal["=", "distinct", "<", "<=", ">", ">="]


class _Node(Struct, frozen=True, kw_only=True):
    """`raw`: what it was made of, where that is not what it is made of now."""

    raw: Written | None = None


class Test(_Node, frozen=True):
    """`ratio op 0`. The denominator is nonzero by an obligation of its own."""

    op: Op
    ratio: Ratio


class And(_Node, frozen=True):
    parts: tuple[Formula, ...]


class Or(_Node, frozen=True):
    parts: tuple[Formula, ...]


class Not(_Node, frozen=True):
    part: Formula


class SumDiffers(_Node, frozen=True):
    """The sum of the ratios whose condition holds is not `target`."""

    cases: tuple[tuple[Formula, Ratio], ...]
    target: Ratio


class Remainder(_Node, frozen=True):
    """`name = num mod den` for integer polynomials; `name` stands for the remainder elsewhere."""

    name: str
    num: Poly
    den: Poly


Formula = Test | And | Or | Not | SumDiffers | Remainder

TRUE = And(())
FALSE = Or(())


def made(formula: Formula, op: str, *parts: object) -> Formula:
    """The formula, and what it was made of."""
    return replace(formula, raw=Written(op, parts))


def alike(one: object, other: object) -> Formula:
    """Whether two of finitely many things are one and the same: decided at once."""
    return made(TRUE if one == other else FALSE, "same", str(one), str(other))


def test(op: Op, left: Ratio, right: Ratio = ZERO) -> Formula:
    """`left op right`, decided at once where both are constants."""
    difference = left - right
    value = difference.constant
    if value is not None:
        return made(TRUE if _compare(op, value) else FALSE, op, left, right)
    return Test(op, difference, raw=Written(op, (left, right)))


def at_least(name: Ratio, bound: int) -> Formula:
    return test(">=", name, const(bound))


def not_zero(ratio: Ratio) -> Formula:
    """Decided at once where the numerator is a number: 1/M is 0 nowhere."""
    if len(ratio.num) == 1 and not ratio.num[0][0]:
        return made(TRUE, "distinct", ratio, ZERO)
    return test("distinct", ratio)


def both(*parts: Formula) -> Formula:
    return parts[0] if len(parts) == 1 else made(_both(parts), "and", *parts)


def _both(parts: tuple[Formula, ...]) -> Formula:
    flat: list[Formula] = []
    for part in parts:
        if part == FALSE:
            return FALSE
        flat.extend(part.parts if isinstance(part, And) else (part,))
    unique = tuple(dict.fromkeys(flat))
    return unique[0] if len(unique) == 1 else And(unique)


def either(*parts: Formula) -> Formula:
    return parts[0] if len(parts) == 1 else made(_either(parts), "or", *parts)


def _either(parts: tuple[Formula, ...]) -> Formula:
    flat: list[Formula] = []
    for part in parts:
        if part == TRUE:
            return TRUE
        flat.extend(part.parts if isinstance(part, Or) else (part,))
    unique = tuple(dict.fromkeys(flat))
    return unique[0] if len(unique) == 1 else Or(unique)


def negate(part: Formula) -> Formula:
    match part:
        case And(()):
            return made(FALSE, "not", part)
        case Or(()):
            return made(TRUE, "not", part)
        case Not(inner):
            return made(inner, "not", part)
        case _:
            return Not(part)


def differs(cases: tuple[tuple[Formula, Ratio], ...], target: Ratio) -> Formula:
    """`SumDiffers`, decided at once where every condition is true."""
    live = tuple((condition, ratio) for condition, ratio in cases if condition != FALSE)
    if all(condition == TRUE for condition, _ in live):
        total = ZERO
        for _, ratio in live:
            total = total + ratio
        return test("distinct", total, target)
    return SumDiffers(live, target)


# --- evaluation -----------------------------------------------------------------------------


def _compare(op: Op, value: Fraction) -> bool:
    match op:
        case "=":
            return value == 0
        case "distinct":
            return value != 0
        case "<":
            return value < 0
        case "<=":
            return value <= 0
        case ">":
            return value > 0
        case ">=":
            return value >= 0
        case _:
            assert_never(op)


def holds(formula: Formula, env: Mapping[str, int]) -> bool:
    """Whether it is true when every variable has a value. Raises KeyError for one that has none."""
    match formula:
        case Test(op, ratio):
            return _compare(op, ratio.at(env))
        case And(parts):
            return all(holds(part, env) for part in parts)
        case Or(parts):
            return any(holds(part, env) for part in parts)
        case Not(part):
            return not holds(part, env)
        case SumDiffers(cases, target):
            total = sum((ratio.at(env) for condition, ratio in cases if holds(condition, env)), Fraction(0))
            return total != target.at(env)
        case Remainder(name, num, den):
            return env[name] == Ratio(num).at(env) % Ratio(den).at(env)
        case _:
            assert_never(formula)


def variables(formula: Formula) -> Iterator[str]:
    """Every variable, with repeats."""
    match formula:
        case Test(_, ratio):
            yield from _ratio_variables(ratio)
        case And(parts) | Or(parts):
            for part in parts:
                yield from variables(part)
        case Not(part):
            yield from variables(part)
        case SumDiffers(cases, target):
            yield from _ratio_variables(target)
            for condition, ratio in cases:
                yield from variables(condition)
                yield from _ratio_variables(ratio)
        case Remainder(name, num, den):
            yield name
            yield from _ratio_variables(Ratio(num, den))
        case _:
            assert_never(formula)


def _ratio_variables(ratio: Ratio) -> Iterator[str]:
    for poly in (ratio.num, ratio.den):
        for monomial, _ in poly:
            for name, _ in monomial:
                yield name


# --- SMT-LIB --------------------------------------------------------------------------------

_SIZE = "size."


def symbol(name: str) -> str:
    """The variable in SMT-LIB. Sizes get a prefix: a person may call one `and` or `mod`, and quoting
    alone does not tell it from the operator."""
    return f"|{name}|" if "." in name else f"|{_SIZE}{name}|"


def unquoted(symbol_name: str) -> str:
    """The variable that a declared symbol (without its bars) stands for."""
    return symbol_name.removeprefix(_SIZE)


def _int(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _poly(poly: Poly) -> str:
    terms = []
    for monomial, coefficient in poly:
        factors = [symbol(name) for name, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, _int(coefficient))
        terms.append(factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})")
    if not terms:
        return "0"
    return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def _positive(poly: Poly) -> bool:
    return all(coefficient > 0 for _, coefficient in poly)


def smt(formula: Formula) -> str:
    """The SMT-LIB 2 term, in integers: fractions are cross-multiplied, never divided."""
    match formula:
        case Test(op, ratio):
            left = ratio.num
            if op not in ("=", "distinct") and not _positive(ratio.den):
                left = poly_mul(ratio.num, ratio.den)  # the sign of num/den is that of num*den
            return f"({op} {_poly(left)} 0)"
        case And(parts):
            return f"(and {' '.join(map(smt, parts))})" if parts else "true"
        case Or(parts):
            return f"(or {' '.join(map(smt, parts))})" if parts else "false"
        case Not(part):
            return f"(not {smt(part)})"
        case SumDiffers(cases, target):
            ratios = [ratio for _, ratio in cases] + [target]
            dens = list(dict.fromkeys(ratio.den for ratio in ratios))
            *scaled, goal = [_over_common(ratio, dens) for ratio in ratios]
            terms = [f"(ite {smt(condition)} {_poly(num)} 0)" for (condition, _), num in zip(cases, scaled)]
            total = "0" if not terms else terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"
            return f"(distinct {total} {_poly(goal)})"
        case Remainder(name, num, den):
            rest, by = f"(mod {_poly(num)} {_poly(den)})", _poly(den)
            if not _positive(den):  # SMT-LIB's remainder is never negative; ours has the divisor's sign
                rest = f"(ite (and (< {by} 0) (distinct {rest} 0)) (+ {rest} {by}) {rest})"
            return f"(= {symbol(name)} {rest})"
        case _:
            assert_never(formula)


def _over_common(ratio: Ratio, dens: list[Poly]) -> Poly:
    num = ratio.num
    for den in dens:
        if den != ratio.den and den != ONE_POLY:
            num = poly_mul(num, den)
    return num


def equal(name: str, value: int) -> Formula:
    return Test("=", var(name) - const(value))
