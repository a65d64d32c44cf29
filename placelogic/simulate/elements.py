"""The few elements a simulated weight group consists of, and who owns them under each layout."""

from __future__ import annotations

from placelogic.program.catalog import WHOLE_TENSOR_DIMS
from placelogic.program.program import Axes, Layout, Weights
from placelogic.run.owners import Owners, Sizes, owners, systems
from placelogic.simulate.arrange import COUNT, PER_TENSOR, Dimension, arranged

BLOCK = 2
"""Block-quantised moments share a scale over this many consecutive elements of a tensor."""


class Elements:
    """Where the elements of one weight group lie under each of its layouts (see run/group.py)."""

    count = COUNT
    tensor = tuple(e // PER_TENSOR for e in range(COUNT))
    block = tuple(e // PER_TENSOR * PER_TENSOR + e % PER_TENSOR // BLOCK for e in range(COUNT))

    def __init__(self, weights: Weights, sizes: Sizes, shifted: bool) -> None:
        layouts = (weights.params, weights.optimizer_state, weights.gradients)
        cut = [systems(layout) for layout in layouts]
        self._sizes = sizes
        self._shifted = shifted
        dimensions: dict[str, Dimension] = {}
        for name in dict.fromkeys(name for system in cut for name in system):
            ways = tuple(dict.fromkeys(system[name] for system in cut if name in system))
            whole = name in WHOLE_TENSOR_DIMS or (
                # Along the axes they are routed over, experts are dealt out whole, unless it is said by which dimension.
                name not in ("flat", *weights.dims) and all(axis in weights.routed for rules in ways for axes in rules for axis in axes)
            )
            dimensions[name] = whole, ways, shifted and name == "flat"
        self._spots = dict(zip(dimensions, arranged(tuple(dimensions.values()), sizes)))

    def tables(self, layout: Layout) -> dict[str, tuple[Owners, ...]]:
        found: dict[str, tuple[Owners, ...]] = {}
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

    def dealt(self, axes: Axes) -> dict[str, Owners]:
        """Owners where nothing says them: a buffer's equal pieces, by the row-major index over `axes`."""
        ((length, indices),) = arranged(((False, ((axes,),), False),), self._sizes)
        return owners((axes,), self._sizes, length, indices)
