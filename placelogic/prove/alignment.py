"""When two ways of cutting one state's dimension put an element on different coordinates of an axis.

Shards are ceil-sized. Cuts of different dimensions never line up; cuts of one dimension line up
when, axes of size 1 left out, they are the same sequence of (products of) axes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from placelogic.prove.formula import FALSE, Formula, at_least, both, either
from placelogic.prove.kinds import Stack
from placelogic.prove.ratio import Ratio


def apart(a: Stack, b: Stack, axis: str, size: Callable[[str], Ratio]) -> Formula:
    """The sizes at which some element has different owners along `axis`. `size`: how many devices
    along an axis hold the weights."""
    if a == b:
        return FALSE
    several = {atom: at_least(size(atom), 2) for stack in (a, b) for _, axes in stack for atom in axes}
    if not same_dimension(a, b):
        return several[axis]
    one, other = _places(a), _places(b)
    wrong = [several[atom] for atom in sorted(one.keys() ^ other.keys())]
    # Sequences of products are equal where any two axes come in one order, and are in one product, in both.
    for first, second in combinations(sorted(one.keys() & other.keys()), 2):
        if _order(one, first, second) != _order(other, first, second):
            wrong.append(both(several[first], several[second]))
    return both(several[axis], either(*wrong))


def same_dimension(a: Stack, b: Stack) -> bool:
    """Both cut one dimension: then it is the nesting order that differs (CC02)."""
    return a[-1][0] == b[-1][0]


def _places(stack: Stack) -> dict[str, tuple[int, int]]:
    """atom -> which cut it takes part in, and which place it has in its product."""
    return {atom: (cut, place) for cut, (_, axes) in enumerate(stack) for place, atom in enumerate(axes)}


def _order(places: dict[str, tuple[int, int]], first: str, second: str) -> tuple[bool, bool]:
    """Whether one axis comes before the other, and whether both are in one product."""
    return places[first] < places[second], places[first][0] == places[second][0]
