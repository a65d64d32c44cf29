"""Every pair of standard strategies, on axes of their own or on one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from placelogic.combine.answer import Combination, Question, answer
from placelogic.combine.strategies import standard_strategies


def names_of_pairs() -> tuple[tuple[str, str], ...]:
    """In the order of the names, each pair once."""
    return tuple(combinations(standard_strategies(), 2))


def pairs(same_axis: bool) -> Iterator[Combination]:
    """The answers, in the same order, as they are found."""
    for names in names_of_pairs():
        yield answer(Question(names, same_axis), full=False)


def page() -> str:
    """The page docs/combine.md."""
    from placelogic.report.matrix import page_text

    return page_text(
        answer(Question(("zero2", "pipeline"))), tuple(pairs(same_axis=False)), tuple(pairs(same_axis=True))
    )
