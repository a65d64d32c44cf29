"""When two ways of cutting one state's dimension put an element on different coordinates of an axis.

Shards are ceil-sized. Cuts of different dimensions never line up; cuts of one dimension line up
when, axes of size 1 left out, they are the same sequence of (products of) axes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product as every

from placelogic.prove.formula import FALSE, Formula, at_least, both, either, negate
from placelogic.prove.kinds import Stack
from placelogic.prove.ratio import Ratio


def apart(a: Stack, b: Stack, axis: str, size: Callable[[str], Ratio]) -> Formula:
    """The sizes at which some element has different owners along `axis`. `size`: how many devices
    along an axis hold the weights."""
    if a == b:
        return FALSE
    others = sorted({atom for stack in (a, b) for _, axes in stack for atom in axes if atom != axis})
    wrong = []
    for present in every((True, False), repeat=len(others)):
        large = {axis} | {atom for atom, here in zip(others, present) if here}
        if _without_small(a, large) != _without_small(b, large):
            wrong.append(both(*(_large(atom, here, size) for atom, here in zip(others, present))))
    return both(at_least(size(axis), 2), either(*wrong))


def same_dimension(a: Stack, b: Stack) -> bool:
    """Both cut one dimension: then it is the nesting order that differs (CC02)."""
    return a[-1][0] == b[-1][0]


def _large(atom: str, here: bool, size: Callable[[str], Ratio]) -> Formula:
    two = at_least(size(atom), 2)
    return two if here else negate(two)


def _without_small(stack: Stack, large: set[str]) -> Stack:
    kept = ((dimension, tuple(axis for axis in axes if axis in large)) for dimension, axes in stack)
    return tuple((dimension, axes) for dimension, axes in kept if axes)
