"""Sums of values: what is alike is one, and what is not never cancels."""

from __future__ import annotations

from fractions import Fraction

from placelogic.layers.scale import Scale
from placelogic.layers.values import Part, Term, Value, added, fresh, share, signature


def of(*terms: Term, times: int = 1) -> Value:
    return added([Value({}, {frozenset([(0,)]): Part(times, terms)})])


def scaled(number: Fraction | int, **kinds: frozenset[str]) -> Term:
    return Term(Scale(Fraction(number)), **kinds)  # type: ignore[arg-type]


def the(value: Value) -> Part:
    (part,) = value.parts.values()
    return part


def test_added_to_itself_it_stays_one_term() -> None:
    value = share(fresh({}, (0,)), "tp", {})
    for _ in range(60):
        value = added([value, value])
    assert len(the(value).terms) == 1
    assert signature(value) == signature(share(fresh({}, (0,)), "tp", {}))


def test_two_halves_of_one_part_are_it() -> None:
    assert the(of(scaled(Fraction(3, 2)), scaled(Fraction(1, 2)), times=2)).right
    assert not the(of(scaled(Fraction(3, 2)), scaled(1), times=2)).right


def test_other_kinds_stay_apart() -> None:
    tp = frozenset(["tp"])
    mixed = the(of(scaled(1), scaled(1, partial=tp), scaled(1, partial=tp), times=3))
    assert sorted(term.scale.number for term in mixed.terms) == [1, 2]
    assert not mixed.right


def test_nothing_is_cancelled_that_is_not_whole() -> None:
    for kind in ("partial", "tied", "lost"):
        part = the(of(scaled(2, **{kind: frozenset(["tp"])}), scaled(-2, **{kind: frozenset(["tp"])}), scaled(1)))
        assert len(part.terms) == 3 and not part.right


def test_what_is_there_as_often_as_on_one_device_is_worth_the_same() -> None:
    assert signature(of(scaled(3), times=3)) == signature(of(scaled(1)))
    assert signature(of(scaled(3), times=2)) != signature(of(scaled(1)))
    assert signature(of(scaled(3), times=2)) == signature(of(scaled(Fraction(3, 2))))
