"""Where in each dimension the few simulated elements lie, so that whatever differs, shows.

They form a star: a base at index 0 of every dimension, and around it elements that differ from
it in one dimension only, at the indices where owners change. So along every axis some process
group holds two elements that differ along this axis alone, however large the other axes are,
and where two states cut one dimension by different rules, some element has different owners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations

from placelogic.run.owners import Owners, Rules, Sizes, deciding, extent, moved, owners

TENSORS = 4
PER_TENSOR = 3
COUNT = TENSORS * PER_TENSOR

Dimension = tuple[bool, tuple[Rules, ...], bool]
"""Whether it keeps tensors whole; the ways it is cut; whether the last stage lays it out shifted."""
Spots = tuple[int, tuple[int, ...]]
"""The length of a dimension, and the index of every element in it."""

_SCAN = 64
"""Dimensions up to this long are searched index by index."""


@lru_cache(maxsize=4096)
def arranged(dimensions: tuple[Dimension, ...], sizes: Sizes) -> tuple[Spots, ...]:
    """The spots of the elements in each dimension of one weight group."""
    points = [_points(systems, shifted, sizes) for _, systems, shifted in dimensions]
    spots = [[0] * COUNT for _ in dimensions]
    whole = [d for d, (keeps, _, _) in enumerate(dimensions) if keeps]
    cut = [d for d, (keeps, _, _) in enumerate(dimensions) if not keeps]
    rows = [tuple(range(t * PER_TENSOR, (t + 1) * PER_TENSOR)) for t in range(1, TENSORS)]
    _spread(points, spots, whole, rows)
    # The second element of every tensor first: blocks of two then lie across the shards.
    single = [(t * PER_TENSOR + j,) for j in range(1, PER_TENSOR) for t in range(TENSORS)]
    _spread(points, spots, cut, single)
    return tuple((length, tuple(row)) for (length, _), row in zip(points, spots))


def _spread(
    points: list[tuple[int, list[int]]], spots: list[list[int]], some: list[int], places: list[tuple[int, ...]]
) -> None:
    """One point of one dimension per place; what is left over lies anywhere, evenly."""
    queue = [(d, index) for d in some for index in points[d][1]]
    for number, (d, index) in enumerate(queue):
        for element in places[number % len(places)]:
            spots[d][element] = index
    for number in range(len(queue), len(places)):
        for d in some:
            length = points[d][0]
            for element in places[number]:
                spots[d][element] = (number + 1) * (d + 1) % (len(places) + 1) * length // (len(places) + 1)


def _points(systems: tuple[Rules, ...], shifted: bool, sizes: Sizes) -> tuple[int, list[int]]:
    """A length, and few indices beside 0 where every wish that can be met is met."""
    size = dict(sizes)
    axes = tuple(dict.fromkeys(axis for rules in systems for part in rules for axis in part))
    whole = extent(size, axes)
    best: tuple[int, int, int, list[int]] | None = None
    for times, rest in ((1, 0), (2, 1), (3, 1), (3, 2), (1, 1), (5, 2), (4, 3), (7, 4)):
        length = whole * times + rest
        met, missed = _covered(systems, shifted, sizes, size, length)
        if best is None or (missed, len(met)) < best[:2]:
            best = missed, len(met), length, met
        if missed == 0 and len(met) <= len(axes):
            break
    assert best is not None
    return best[2], best[3]


def _covered(
    systems: tuple[Rules, ...], shifted: bool, sizes: Sizes, size: Mapping[str, int], length: int
) -> tuple[list[int], int]:
    """Indices that meet the wishes, the most useful first, and how many wishes none meets."""
    indices = tuple(sorted(_candidates(systems, size, length)))
    at = {rules: owners(rules, sizes, length, indices) for rules in systems}
    there = moved(indices, length)
    other = {rules: owners(rules, sizes, length, there) for rules in systems} if shifted else {}
    wishes = [frozenset(filter(wish, range(len(indices)))) for wish in _wishes(systems, at, other, size)]
    open_wishes = [met for met in wishes if met and 0 not in met]  # index 0 is there anyway
    missed = sum(not met for met in wishes)
    chosen: list[int] = []
    while open_wishes:
        most = max(range(len(indices)), key=lambda i: sum(i in met for met in open_wishes))
        chosen.append(indices[most])
        open_wishes = [met for met in open_wishes if most not in met]
    return chosen, missed


At = Mapping[str, Owners]


def _wishes(
    systems: tuple[Rules, ...], at: Mapping[Rules, At], other: Mapping[Rules, At], size: Mapping[str, int]
) -> Iterator[Callable[[int], bool]]:
    """What some element should show, as a test of its index (of its place among the candidates)."""
    for rules in systems:
        here = at[rules]
        for axis in here:
            if size[axis] == 1:
                continue

            def beside(i: int, axis: str = axis, here: At = here) -> bool:
                return here[axis][i] == 1 and not any(row[i] for name, row in here.items() if name != axis)

            yield beside
            if rules in other:
                there = other[rules]
                yield lambda i, axis=axis, here=here, there=there: here[axis][i] != there[axis][i]  # type: ignore[misc]
    for one, two in combinations(systems, 2):
        a, b = at[one], at[two]
        for axis in a:
            if axis in b and size[axis] > 1 and deciding(one, axis, size) != deciding(two, axis, size):
                yield lambda i, axis=axis, a=a, b=b: a[axis][i] != b[axis][i]  # type: ignore[misc]


def _candidates(systems: tuple[Rules, ...], size: Mapping[str, int], length: int) -> set[int]:
    if length <= _SCAN:
        return set(range(length))
    found = {0, length - 1, length // 2, length // 3}
    for rules in systems:
        for axis in (axis for axes in rules for axis in axes):
            for coordinate in {min(1, size[axis] - 1), size[axis] - 1}:
                start = _start(rules, size, length, {axis: coordinate})
                found |= {start - 1, start, start + 1}
    return {index for index in found if 0 <= index < length}


def _start(rules: Rules, size: Mapping[str, int], length: int, coordinates: Mapping[str, int]) -> int:
    """Where the shard with these coordinates, and 0 along all other axes, begins."""
    low, high = 0, length
    for axes in rules:
        chunk = max(1, -(-(high - low) // extent(size, axes)))
        position = 0
        for axis in axes:
            position = position * size[axis] + coordinates.get(axis, 0)
        low += position * chunk
        high = min(high, low + chunk)
    return low
