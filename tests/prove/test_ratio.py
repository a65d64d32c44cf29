"""Ratios against exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placelogic.prove.ratio import ONE, ZERO, Ratio, const, product, var

few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = ("a", "b", "c")
SIZES = st.fixed_dictionaries({name: st.integers(1, 5) for name in NAMES})

Value = Callable[[dict[str, int]], Fraction]
Pair = tuple[Ratio, Value]
"""A ratio, and what it must be worth at given sizes."""


def _leaf() -> st.SearchStrategy[Pair]:
    numbers = st.fractions(-3, 3, max_denominator=4).map(lambda f: (const(f), lambda env: f))
    names = st.sampled_from(NAMES).map(lambda n: (var(n), lambda env: Fraction(env[n])))
    return numbers | names


def _combined(parts: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def make(op: str, a: Pair, b: Pair) -> Pair:
        (x, f), (y, g) = a, b
        match op:
            case "+":
                return x + y, lambda env: f(env) + g(env)
            case "-":
                return x - y, lambda env: f(env) - g(env)
            case "*":
                return x * y, lambda env: f(env) * g(env)
            case _:
                return (x, f) if not y.num else (x / y, lambda env: f(env) / g(env))

    return st.builds(make, st.sampled_from("+-*/"), parts, parts)


PAIRS = st.recursive(_leaf(), _combined, max_leaves=6)


@few
@given(PAIRS, SIZES)
def test_worth(pair: Pair, env: dict[str, int]) -> None:
    ratio, value = pair
    try:
        expected = value(env)
    except ZeroDivisionError:
        return
    assert ratio.at(env) == expected


@few
@given(PAIRS, PAIRS, PAIRS)
def test_ring_laws(first: Pair, second: Pair, third: Pair) -> None:
    a, b, c = first[0], second[0], third[0]
    same(a + b, b + a)
    same(a * b, b * a)
    same((a + b) + c, a + (b + c))
    same((a * b) * c, a * (b * c))
    same(a * (b + c), a * b + a * c)
    assert a + ZERO == a
    assert a * ONE == a
    assert a * ZERO == ZERO
    assert (a - a).constant == 0
    if b.num:
        same(a / b * b, a)


def same(a: Ratio, b: Ratio) -> None:
    """Equal as quotients of polynomials, though common factors of several terms are not cancelled."""
    assert not (a - b).num


@few
@given(PAIRS)
def test_normal_form(pair: Pair) -> None:
    ratio = pair[0]
    assert ratio.den and ratio.den[-1][1] > 0
    assert all(coefficient for poly in (ratio.num, ratio.den) for _, coefficient in poly)
    assert ratio * ONE == ratio
    opposite = -ratio
    assert -opposite == ratio


@few
@given(st.fractions(-9, 9))
def test_constants(value: Fraction) -> None:
    assert const(value).constant == value
    assert (const(value) * var("a")).constant == (0 if value == 0 else None)


@few
@given(st.lists(st.sampled_from(NAMES), max_size=5), st.lists(st.sampled_from(NAMES), max_size=5))
def test_products_of_sizes_cancel(above: list[str], below: list[str]) -> None:
    ratio = product([var(name) for name in above]) / product([var(name) for name in below])
    assert ratio.monomial
    if sorted(above) == sorted(below):
        assert ratio == ONE
    else:
        assert ratio != ONE


def test_nothing_is_divided_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        ONE / ZERO
    with pytest.raises(ZeroDivisionError):
        var("a") / (var("b") - var("b"))
