"""The few elements a simulated weight group consists of, and who owns them.

Nine elements in three tensors. Each has an index in every dimension that the layouts of the
group cut; the indices are arranged so that different dimensions are independent: where two
states are cut by different rules, some element has different owners.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

from placelogic.program.catalog import WHOLE_TENSOR_DIMS
from placelogic.program.program import Axes, Layout, Weights

TENSORS = 3
PER_TENSOR = 3
COUNT = TENSORS * PER_TENSOR
BLOCK = 2
"""Block-quantised moments share a scale over this many consecutive elements of a tensor."""

Rules = tuple[Axes, ...]
"""The cuts of one dimension in one layout, outermost first."""
Sizes = tuple[tuple[str, int], ...]

_TENSOR_ORDERS = ((0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0), (1, 0, 2))
_MULTIPLIERS = (4, 5, 7, 8)
_LENGTHS = (9, 13, 10, 11, 17, 25, 14, 19, 29, 37, 41, 12, 15, 16)
_TENSOR_LENGTHS = (3, 5, 7, 9, 4, 6, 8, 10, 11, 13, 17)


def tensor(element: int) -> int:
    return element // PER_TENSOR


def block(element: int) -> tuple[int, int]:
    return tensor(element), element % PER_TENSOR // BLOCK


@lru_cache(maxsize=4096)
def owners(rules: Rules, sizes: Sizes, length: int, indices: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Per axis, the coordinate that holds each element: nested ceil-sized chunks of [0, length),
    a product axis by its row-major index."""
    size = dict(sizes)
    found: dict[str, list[int]] = {axis: [] for axes in rules for axis in axes}
    for index in indices:
        low, high = 0, length
        for axes in rules:
            parts = 1
            for axis in axes:
                parts *= size[axis]
            chunk = -(-(high - low) // parts)
            position = (index - low) // chunk
            low += position * chunk
            high = min(high, low + chunk)
            for axis in reversed(axes):
                position, coordinate = divmod(position, size[axis])
                found[axis].append(coordinate)
    return {axis: tuple(coordinates) for axis, coordinates in found.items()}


@lru_cache(maxsize=4096)
def arrangement(whole: bool, number: int, systems: tuple[Rules, ...], sizes: Sizes) -> tuple[int, tuple[int, ...]]:
    """Length of a dimension and the index of each element in it. `whole`: tensors are never cut.
    `number` tells dimensions of a group apart. `systems`: the ways it is cut; where there are
    several, the first arrangement that lets most of them disagree is taken, and that leaves no
    axis with everything on one device."""
    best: tuple[int, int, tuple[int, ...]] | None = None
    for length, indices in _candidates(whole, number):
        missed = 0
        for one, other in combinations(systems, 2):
            a, b = owners(one, sizes, length, indices), owners(other, sizes, length, indices)
            for axis in a.keys() & b.keys():
                missed += _stack(one, axis) != _stack(other, axis) and a[axis] == b[axis]
        for one in systems:
            spread = owners(one, sizes, length, indices)
            missed += sum(dict(sizes)[axis] > 1 and len(set(spread[axis])) == 1 for axis in spread)
        if best is None or missed < best[0]:
            best = missed, length, indices
        if missed == 0:
            break
    assert best is not None
    return best[1], best[2]


def _candidates(whole: bool, number: int):  # type: ignore[no-untyped-def]
    if whole:
        order = _TENSOR_ORDERS[number % len(_TENSOR_ORDERS)]
        for length in _TENSOR_LENGTHS:
            for spots in ((0, length // 2, length - 1), (0, length // 2 + 1, length - 1), (1, length // 2, length - 2)):
                if len(set(spots)) == TENSORS and max(spots) < length:
                    yield length, tuple(spots[order[tensor(j)]] for j in range(COUNT))
    else:
        factor = _MULTIPLIERS[number % len(_MULTIPLIERS)]
        shift = number // len(_MULTIPLIERS)
        for length in _LENGTHS:
            yield length, tuple((factor * j + shift) % COUNT * length // COUNT for j in range(COUNT))


def _stack(rules: Rules, axis: str) -> Rules:
    """The cuts that decide the coordinate along `axis`."""
    position = next(i for i, axes in enumerate(rules) if axis in axes)
    return rules[: position + 1]


def systems(layout: Layout) -> dict[str, Rules]:
    """Per dimension, its cuts, outermost first."""
    found: dict[str, Rules] = {}
    for cut in layout.cuts:
        found[cut.dimension] = (*found.get(cut.dimension, ()), cut.axes)
    return found


class Geometry:
    """Where the elements of one weight group lie under each of its layouts.

    `tables(layout)[axis]` is a tuple of one or two owner lists: the second holds on the last
    stage of tied weights, whose place in that stage's flat buffer is another one."""

    def __init__(self, weights: Weights, sizes: Sizes, shifted: bool) -> None:
        layouts = (weights.params, weights.optimizer_state, weights.gradients)
        cut = [systems(layout) for layout in layouts]
        self._sizes = sizes
        self._shifted = shifted
        self._spots: dict[str, tuple[int, tuple[int, ...]]] = {}
        numbers = {True: 0, False: 0}
        for dimension in dict.fromkeys(name for system in cut for name in system):
            ways = tuple(dict.fromkeys(system[dimension] for system in cut if dimension in system))
            whole = dimension in WHOLE_TENSOR_DIMS or (
                # Routing deals out whole experts, whatever the dimension is called.
                dimension != "flat"
                and all(axis in weights.routed for rules in ways for axes in rules for axis in axes)
            )
            self._spots[dimension] = arrangement(whole, numbers[whole], ways, sizes)
            numbers[whole] += 1

    def tables(self, layout: Layout) -> dict[str, tuple[tuple[int, ...], ...]]:
        found: dict[str, tuple[tuple[int, ...], ...]] = {}
        for dimension, rules in systems(layout).items():
            length, indices = self._spots[dimension]
            plain = owners(rules, self._sizes, length, indices)
            if dimension == "flat" and self._shifted:
                moved = tuple((index + length // 2) % length for index in indices)
                other = owners(rules, self._sizes, length, moved)
                found.update({axis: (plain[axis], other[axis]) for axis in plain})
            else:
                found.update({axis: (plain[axis],) for axis in plain})
        return found
