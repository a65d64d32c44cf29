"""Quotients of polynomials in sizes, in a normal form: the scales of the value calculus.

Bringing scales to normal form here keeps the solver's work small: what is right by
construction becomes the constant 1 and needs no query. Every variable is a positive integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from math import gcd

from msgspec import Struct

from placelogic.prove.written import Written

Monomial = tuple[tuple[str, int], ...]  # sorted (name, exponent >= 1)
Poly = tuple[tuple[Monomial, int], ...]  # sorted, coefficients nonzero


MAX_PAIRS = 20_000
MAX_POWER = 100
MAX_COEFFICIENT = 1 << 10_000
"""Beyond what sizes of real models need, and still quick to handle. What grows by itself, such as a
chain of definitions that each square the one before, is stopped here."""


class TooLarge(ArithmeticError):
    """An expression multiplies out to more than can be handled."""


ZERO_POLY: Poly = ()
ONE_POLY: Poly = (((), 1),)


def _poly(terms: Mapping[Monomial, int]) -> Poly:
    return tuple(sorted((m, c) for m, c in terms.items() if c))


def _mul_monomial(a: Monomial, b: Monomial) -> Monomial:
    if not a:
        return b
    if not b:
        return a
    powers = dict(a)
    for name, power in b:
        powers[name] = powers.get(name, 0) + power
        if powers[name] > MAX_POWER:
            raise TooLarge
    return tuple(sorted(powers.items()))


def poly_add(a: Poly, b: Poly) -> Poly:
    terms = dict(a)
    for m, c in b:
        terms[m] = terms.get(m, 0) + c
    return _poly(terms)


def poly_mul(a: Poly, b: Poly) -> Poly:
    """Raises TooLarge."""
    if a == ONE_POLY:
        return b
    if b == ONE_POLY:
        return a
    if len(a) * len(b) > MAX_PAIRS:
        raise TooLarge
    terms: dict[Monomial, int] = {}
    for m, c in a:
        for n, d in b:
            key = _mul_monomial(m, n)
            coefficient = terms.get(key, 0) + c * d
            if not -MAX_COEFFICIENT < coefficient < MAX_COEFFICIENT:
                raise TooLarge
            terms[key] = coefficient
    return _poly(terms)


def _common(a: Poly, b: Poly) -> tuple[Monomial, int]:
    """The largest monomial and integer dividing every term of both."""
    terms = [*a, *b]
    content = 0
    for _, c in terms:
        content = gcd(content, c)
    powers = dict(terms[0][0])
    for m, _ in terms[1:]:
        present = dict(m)
        powers = {name: min(power, present[name]) for name, power in powers.items() if name in present}
    return tuple(sorted(powers.items())), content


def _divide(poly: Poly, monomial: Monomial, content: int) -> Poly:
    out = {}
    for m, c in poly:
        powers = dict(m)
        for name, power in monomial:
            powers[name] -= power
        out[tuple(sorted((n, p) for n, p in powers.items() if p))] = c // content
    return _poly(out)


class Ratio(Struct, frozen=True):
    """`num / den`, common monomials and integers cancelled, the leading term of `den` positive. `raw`: what it was
    made of; None where it is a name or a number."""

    num: Poly
    den: Poly = ONE_POLY
    raw: Written | None = None

    def __mul__(self, other: Ratio) -> Ratio:
        return _made("*", self, other, ratio(poly_mul(self.num, other.num), poly_mul(self.den, other.den)))

    def __truediv__(self, other: Ratio) -> Ratio:
        """Raises ZeroDivisionError when `other` is identically zero."""
        if not other.num:
            raise ZeroDivisionError
        return _made("/", self, other, ratio(poly_mul(self.num, other.den), poly_mul(self.den, other.num)))

    def __add__(self, other: Ratio) -> Ratio:
        return _made("+", self, other, self._plus(other))

    def __neg__(self) -> Ratio:
        return _made("-", ZERO, self, self._negative())

    def __sub__(self, other: Ratio) -> Ratio:
        return _made("-", self, other, self._plus(other._negative()) if other.num else self)

    def _plus(self, other: Ratio) -> Ratio:
        if self.den == other.den:
            return ratio(poly_add(self.num, other.num), self.den)
        num = poly_add(poly_mul(self.num, other.den), poly_mul(other.num, self.den))
        return ratio(num, poly_mul(self.den, other.den))

    def _negative(self) -> Ratio:
        return Ratio(tuple((m, -c) for m, c in self.num), self.den)

    @property
    def constant(self) -> Fraction | None:
        """The value when no size occurs in it."""
        if not self.num:
            return Fraction(0)
        if len(self.num) == len(self.den) == 1 and not self.num[0][0] and not self.den[0][0]:
            return Fraction(self.num[0][1], self.den[0][1])
        return None

    @property
    def variables(self) -> Iterator[str]:
        """Every variable that occurs, with repeats."""
        return (name for poly in (self.num, self.den) for monomial, _ in poly for name, _ in monomial)

    @property
    def monomial(self) -> bool:
        """A single nonzero term over a single term: never zero where all its variables are positive."""
        return len(self.num) == 1 and len(self.den) == 1

    def at(self, env: Mapping[str, int]) -> Fraction:
        """The value at concrete sizes. Raises KeyError and ZeroDivisionError."""
        return _at(self.num, env) / _at(self.den, env)


def _made(op: str, left: Ratio, right: Ratio, value: Ratio) -> Ratio:
    return Ratio(value.num, value.den, Written(op, (left, right)))


def _at(poly: Poly, env: Mapping[str, int]) -> Fraction:
    total = Fraction(0)
    for m, c in poly:
        value = Fraction(c)
        for name, power in m:
            value *= Fraction(env[name]) ** power
        total += value
    return total


def ratio(num: Poly, den: Poly) -> Ratio:
    if not num:
        return ZERO
    if num == den:
        return ONE
    if den == ONE_POLY:
        return Ratio(num)
    monomial, content = _common(num, den)
    if den[-1][1] < 0:
        content = -content
    if monomial or content != 1:
        num, den = _divide(num, monomial, content), _divide(den, monomial, content)
    return Ratio(num, den)


@lru_cache(256)
def const(value: int | Fraction) -> Ratio:
    value = Fraction(value)
    return ratio(((((), value.numerator)),) if value else (), (((), value.denominator),))


def var(name: str) -> Ratio:
    return Ratio(((((name, 1),), 1),))


ZERO = Ratio(ZERO_POLY)
ONE = Ratio(ONE_POLY)


def product(factors: list[Ratio]) -> Ratio:
    out = ONE
    for factor in factors:
        out = out * factor
    return out
