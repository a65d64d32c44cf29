"""When two ways of cutting put an element on different devices, against cutting real ranges."""

from __future__ import annotations

from itertools import product as every

import pytest

from placelogic.prove.alignment import apart, same_dimension
from placelogic.prove.formula import FALSE, holds
from placelogic.prove.kinds import Stack
from placelogic.prove.ratio import const, var

LENGTHS = range(1, 28)
"""Lengths of the dimension that is cut: long enough to tell apart all cuts by up to 3 * 3 * 3 devices."""


def owner(stack: Stack, axis: str, mesh: dict[str, int], element: int, length: int) -> int:
    """The coordinate along `axis` that holds an element: each cut deals out ceil-sized pieces of what
    the cut before it left; a product is cut by its row-major index."""
    coordinates: dict[str, int] = {}
    for _, axes in stack:
        count = 1
        for name in axes:
            count *= mesh[name]
        piece = -(-length // count)
        index = element // piece
        element, length = element % piece, min(piece, length - index * piece)
        for name in reversed(axes):
            index, coordinates[name] = divmod(index, mesh[name])
    return coordinates[axis]


def differ(a: Stack, b: Stack, axis: str, mesh: dict[str, int]) -> bool:
    """Whether some element of some length lies on other coordinates along the axis."""
    return any(
        owner(a, axis, mesh, element, length) != owner(b, axis, mesh, element, length)
        for length in LENGTHS
        for element in range(length)
    )


def held(stack: Stack, axis: str) -> bool:
    return any(axis in axes for _, axes in stack)


ONE_DIMENSION: list[tuple[str, Stack, Stack]] = [
    ("a", (("out", ("a",)),), (("out", ("a",)),)),
    ("b", (("out", ("a",)), ("out", ("b",))), (("out", ("a",)), ("out", ("b",)))),
    ("b", (("out", ("a",)), ("out", ("b",))), (("out", ("b",)),)),
    ("a", (("out", ("b",)), ("out", ("a",))), (("out", ("a",)),)),
    ("a", (("out", ("a", "b")),), (("out", ("b", "a")),)),
    ("b", (("out", ("a", "b")),), (("out", ("b", "a")),)),
    ("b", (("out", ("a", "b")),), (("out", ("a",)), ("out", ("b",)))),
    ("a", (("out", ("a", "b")),), (("out", ("a",)),)),
    ("b", (("out", ("a", "b")),), (("out", ("b",)),)),
    ("c", (("out", ("a",)), ("out", ("b",)), ("out", ("c",))), (("out", ("b",)), ("out", ("c",)))),
    ("c", (("out", ("a", "b")), ("out", ("c",))), (("out", ("b", "a")), ("out", ("c",)))),
]


@pytest.mark.parametrize(("axis", "a", "b"), ONE_DIMENSION)
def test_cuts_of_one_dimension(axis: str, a: Stack, b: Stack) -> None:
    formula = apart(a, b, axis, var)
    assert same_dimension(a, b)
    for shape in every((1, 2, 3), repeat=3):
        mesh = dict(zip("abc", shape))
        outer = {name for stack in (a, b) for _, axes in stack for name in axes} - {axis}
        if differ(a, b, axis, mesh):
            assert holds(formula, mesh), mesh
        elif holds(formula, mesh):  # then their outer cuts are apart, which is as wrong
            assert any(differ(a, b, name, mesh) for name in outer if held(a, name) and held(b, name)), mesh


def test_equal_cuts_are_never_apart() -> None:
    stack = (("out", ("a",)), ("out", ("b",)))
    assert apart(stack, stack, "b", var) == FALSE


def test_cuts_of_different_dimensions_are_apart_from_two_devices_on() -> None:
    rows, columns = (("in", ("a",)),), (("out", ("a",)),)
    formula = apart(rows, columns, "a", var)
    assert [holds(formula, {"a": n}) for n in (1, 2, 3)] == [False, True, True]
    assert not same_dimension(rows, columns)


def test_the_dimension_of_a_stack_is_that_of_its_own_cut() -> None:
    """Only the last cut is of the axis itself; all of one stack cut one dimension."""
    inner, outer = (("out", ("a",)), ("out", ("b",))), (("out", ("b",)),)
    assert same_dimension(inner, outer)
    assert not same_dimension(inner, (("in", ("b",)),))


def test_symmetry() -> None:
    for axis, a, b in ONE_DIMENSION:
        there, back = apart(a, b, axis, var), apart(b, a, axis, var)
        for shape in every((1, 2), repeat=3):
            mesh = dict(zip("abc", shape))
            assert holds(there, mesh) == holds(back, mesh)


def test_fixed_sizes_of_one_are_left_out() -> None:
    nested, plain = (("out", ("a",)), ("out", ("b",))), (("out", ("b",)),)
    assert apart(nested, plain, "b", lambda axis: const(1) if axis == "a" else var(axis)) == FALSE
    assert apart(nested, plain, "b", var) != FALSE
