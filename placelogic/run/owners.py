"""Which coordinate of a mesh holds which index of a dimension that is cut."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache

from placelogic.program.catalog import WHOLE_TENSOR_DIMS, Needs
from placelogic.program.program import Axes, Layout, Optimizer, Weights
from placelogic.program.weights import is_flat

Rules = tuple[Axes, ...]
"""The cuts of one dimension in one layout, outermost first."""
Sizes = tuple[tuple[str, int], ...]
"""Axis and size."""
Owners = tuple[int, ...]
"""Per element, the coordinate that holds it."""


@lru_cache(maxsize=4096)
def owners(rules: Rules, sizes: Sizes, length: int, indices: Sequence[int]) -> dict[str, Owners]:
    """Per axis, the coordinate that holds each index: nested ceil-sized chunks of [0, length),
    a product axis by its row-major index."""
    size = dict(sizes)
    found: dict[str, list[int]] = {axis: [] for axes in rules for axis in axes}
    for index in indices:
        low, high = 0, length
        for axes in rules:
            parts = extent(size, axes)
            chunk = max(1, -(-(high - low) // parts))
            position = (index - low) // chunk
            low += position * chunk
            high = min(high, low + chunk)
            for axis in reversed(axes):
                position, coordinate = divmod(position, size[axis])
                found[axis].append(coordinate)
    return {axis: tuple(coordinates) for axis, coordinates in found.items()}


def systems(layout: Layout) -> dict[str, Rules]:
    """Per dimension, its cuts, outermost first."""
    found: dict[str, Rules] = {}
    for cut in layout.cuts:
        found[cut.dimension] = (*found.get(cut.dimension, ()), cut.axes)
    return found


def ways(weights: Weights) -> dict[str, tuple[Rules, ...]]:
    """Per dimension that is cut, the ways in which the layouts of parameters, optimizer state and gradients cut it."""
    cut = [systems(layout) for layout in (weights.params, weights.optimizer_state, weights.gradients)]
    return {
        name: tuple(dict.fromkeys(one[name] for one in cut if name in one))
        for name in dict.fromkeys(name for one in cut for name in one)
    }


def keeps_tensors(weights: Weights, name: str, cuts: tuple[Rules, ...]) -> bool:
    """Whether a dimension deals out tensors whole. Along the axes they are routed over experts are, unless it is said
    by which dimension."""
    axes = {axis for rules in cuts for part in rules for axis in part}
    routed = not is_flat(name) and name not in weights.dims and bool(axes) and axes <= set(weights.routed)
    return name in WHOLE_TENSOR_DIMS or routed


def numbered(keys: Iterable[Hashable]) -> tuple[int, ...]:
    """A number for each, the same for those that are equal."""
    known: dict[Hashable, int] = {}
    return tuple(known.setdefault(key, len(known)) for key in keys)


class Spots:
    """Where elements lie: `spots[dimension]`, its length, and the index of every element in it. `shifted`: the last
    stage of tied weights has them elsewhere in its flat buffer. `names`: the dimensions that weights
    declare."""

    tensor: Sequence[int]
    block: Sequence[int]

    def __init__(self, sizes: Sizes, shifted: bool, spots: Mapping[str, tuple[int, Owners]], names: Sequence[str]) -> None:
        self._sizes = sizes
        self._shifted = shifted
        self._spots = spots
        self._names = names

    def units(self, optimizer: Optimizer) -> Sequence[int] | None:
        """As `run/group.py` has it. A row is what differs in none of the dimensions across it."""
        if optimizer.needs is not Needs.ROW:
            return {Needs.ELEMENT: None, Needs.BLOCK: self.block}.get(optimizer.needs, self.tensor)
        across = [self._spots[name][1] for name in self._names if name in self._spots and name not in optimizer.along]
        return numbered(zip(self.tensor, *across))

    def tables(self, layout: Layout) -> dict[str, tuple[Owners, ...]]:
        """Per axis that the layout cuts, the owner of every element, and where they are shifted the one on the last
        stage."""
        found: dict[str, tuple[Owners, ...]] = {}
        for dimension, rules in systems(layout).items():
            length, indices = self._spots[dimension]
            rows = [owners(rules, self._sizes, length, indices)]
            if is_flat(dimension) and self._shifted:
                rows.append(owners(rules, self._sizes, length, moved(indices, length)))
            found.update({axis: tuple(row[axis] for row in rows) for axis in rows[0]})
        return found


def moved(indices: Sequence[int], length: int) -> Owners:
    """Of a flat buffer, where the last stage of tied weights has its elements."""
    return tuple((index + length // 2) % length for index in indices)


def deciding(rules: Rules, axis: str, size: dict[str, int]) -> Rules:
    """The cuts that decide the coordinate along `axis`, axes of size 1 left out."""
    last = next(i for i, axes in enumerate(rules) if axis in axes)
    large = (tuple(a for a in axes if size[a] > 1) for axes in rules[: last + 1])
    return tuple(axes for axes in large if axes)


def extent(size: dict[str, int], axes: Axes) -> int:
    out = 1
    for axis in axes:
        out *= size[axis]
    return out
