"""Which coordinate of a mesh holds which index of a dimension that is cut."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from placelogic.program.program import Axes, Layout

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
