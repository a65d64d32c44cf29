"""The few elements a simulated weight group consists of, and who owns them under each layout."""

from __future__ import annotations

from placelogic.program.program import Axes, Weights
from placelogic.program.weights import is_flat
from placelogic.run.owners import Owners, Sizes, Spots, keeps_tensors, owners, ways
from placelogic.simulate.arrange import COUNT, PER_TENSOR, Dimension, arranged

BLOCK = 2
"""Block-quantised moments share a scale over this many consecutive elements of a tensor."""


class Elements(Spots):
    """Where the elements of one weight group lie under each of its layouts (see run/group.py)."""

    count = COUNT
    tensor = tuple(e // PER_TENSOR for e in range(COUNT))
    block = tuple(e // PER_TENSOR * PER_TENSOR + e % PER_TENSOR // BLOCK for e in range(COUNT))

    def __init__(self, weights: Weights, sizes: Sizes, shifted: bool) -> None:
        dimensions: dict[str, Dimension] = {
            name: (keeps_tensors(weights, name, cuts), cuts, shifted and is_flat(name))
            for name, cuts in ways(weights).items()
        }
        spots = dict(zip(dimensions, arranged(tuple(dimensions.values()), sizes)))
        super().__init__(sizes, shifted, spots, weights.dims)

    def dealt(self, axes: Axes) -> dict[str, Owners]:
        """Owners where nothing says them: a buffer's equal pieces, by the row-major index over `axes`."""
        ((length, indices),) = arranged(((False, ((axes,),), False),), self._sizes)
        return owners((axes,), self._sizes, length, indices)
