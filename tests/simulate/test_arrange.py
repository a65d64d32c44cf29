"""The simulated elements lie so that every axis, and every difference between two cuts, shows."""

from __future__ import annotations

from itertools import product

import pytest

from placelogic.simulate.arrange import COUNT, Dimension, arranged, owners

SIZES = [
    (("a", 2), ("b", 2), ("c", 2)),
    (("a", 3), ("b", 2), ("c", 3)),
    (("a", 1), ("b", 3), ("c", 2)),
    (("a", 64), ("b", 8), ("c", 16)),
]
NESTED = (("a",), ("b",))
OTHER = (("b",), ("a",))
TOGETHER = (("a", "b"),)
ALONE = (("c",),)


def coordinates(dimensions: tuple[Dimension, ...], sizes: tuple[tuple[str, int], ...]) -> list[dict[str, int]]:
    """Per element, its owner along each axis, each dimension being cut the first way."""
    found: list[dict[str, int]] = [{} for _ in range(COUNT)]
    for (_, systems, _), (length, indices) in zip(dimensions, arranged(dimensions, sizes)):
        for axis, row in owners(systems[0], sizes, length, indices).items():
            for element, coordinate in zip(found, row):
                element[axis] = coordinate
    return found


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("first", [NESTED, OTHER, TOGETHER])
@pytest.mark.parametrize("whole", list(product((True, False), repeat=2)))
def test_along_every_axis_two_elements_meet(
    sizes: tuple[tuple[str, int], ...], first: tuple[tuple[str, ...], ...], whole: tuple[bool, bool]
) -> None:
    found = coordinates(((whole[0], (first,), False), (whole[1], (ALONE,), False)), sizes)
    for axis, size in sizes:
        if size > 1:
            moved = [{**element, axis: 1} for element in found if element[axis] == 0]
            assert any(element in found for element in moved), (axis, found)


@pytest.mark.parametrize("sizes", SIZES[:2])
@pytest.mark.parametrize("ways", [(NESTED, OTHER), (NESTED, TOGETHER), (TOGETHER, OTHER)])
@pytest.mark.parametrize("whole", [True, False])
def test_different_cuts_of_one_dimension_disagree(
    sizes: tuple[tuple[str, int], ...], ways: tuple[tuple[tuple[str, ...], ...], ...], whole: bool
) -> None:
    ((length, indices),) = arranged(((whole, ways, False),), sizes)
    one, two = (owners(rules, sizes, length, indices) for rules in ways)
    assert one["a"] != two["a"] or one["b"] != two["b"]


def test_a_shifted_flat_buffer_has_other_owners() -> None:
    ((length, indices),) = arranged(((False, (ALONE,), True),), SIZES[0])
    moved = tuple((index + length // 2) % length for index in indices)
    assert owners(ALONE, SIZES[0], length, indices) != owners(ALONE, SIZES[0], length, moved)
