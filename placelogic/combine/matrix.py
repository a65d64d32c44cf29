"""Every pair of standard strategies, on axes of their own or on one."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.combine.answer import Combination, Question, answer
from placelogic.combine.strategies import standard_strategies


def pairs(same_axis: bool) -> Iterator[Combination]:
    """In the order of the names, each pair once."""
    names = standard_strategies()
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            yield answer(Question((first, second), same_axis), full=False)


def page() -> str:
    """The page docs/combine.md."""
    from placelogic.report.matrix import page_text

    return page_text(
        answer(Question(("zero2", "pipeline"))), tuple(pairs(same_axis=False)), tuple(pairs(same_axis=True))
    )
