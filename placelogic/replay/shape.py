"""The tensors of a weight group, and which coordinate of the mesh holds each of their elements.

A group is an array with one dimension for each dimension that its layouts cut or its `dims` declare.
Whole-tensor dimensions (`layer`, `param`, experts that are routed) number its tensors, the others are the
rows and columns of each tensor. So what cuts different dimensions is independent, as the language says.
"""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import torch

from placelogic.program.program import Axes, Weights
from placelogic.program.weights import is_flat
from placelogic.run.owners import Owners, Rules, Sizes, Spots, deciding, keeps_tensors, moved, owners, ways

MOST_ELEMENTS = 200_000


class TooLarge(Exception):
    """More elements or devices than a replay on one machine can hold."""


class Shape(Spots):
    """`count` elements, numbered row-major over `dims`; `matrices[layer, tensor, row, column]` are the
    numbers of the elements of each tensor. `sizes`: of axes, as these weights are dealt out over them."""

    def __init__(self, weights: Weights, sizes: Sizes, shifted: bool) -> None:
        cuts = ways(weights)
        names = list(dict.fromkeys([*cuts, *weights.dims]))
        tensors = ["layer", *(name for name in names if name != "layer" and keeps_tensors(weights, name, cuts.get(name, ())))]
        inner = [name for name in names if name not in tensors]
        fillers = ["#row"] if weights.kind == "vector" else ["#row", "#column"]
        inner += fillers[len(inner) :]
        self.dims = {
            name: _length(cuts.get(name, ()), sizes, shifted and is_flat(name), 3 if name == "#column" else 2)
            for name in (*tensors, *inner)
        }
        self.count = prod(self.dims.values())
        if self.count > MOST_ELEMENTS:
            raise TooLarge(f"`{weights.name}` would need {self.count} elements for every cut to be seen at this mesh")
        indices = zip(*product(*map(range, self.dims.values())))
        super().__init__(sizes, shifted, dict(zip(self.dims, zip(self.dims.values(), indices))), weights.dims)
        self.matrices = self._matrices(tensors, inner, weights.kind == "vector")
        flat = self.matrices.reshape(-1, self.matrices.shape[2] * self.matrices.shape[3])
        # Blocks of quantised moments: a row and one element more, so that no cut keeps all of them whole.
        tensor, block = [0] * self.count, [0] * self.count
        for number, elements in enumerate(flat.tolist()):
            for place, element in enumerate(elements):
                tensor[element] = number
                block[element] = number * flat.shape[1] + place // (self.matrices.shape[3] + 1)
        self.tensor, self.block = tuple(tensor), tuple(block)

    def _matrices(self, tensors: list[str], inner: list[str], vector: bool) -> torch.Tensor:
        numbers = torch.arange(self.count).reshape(tuple(self.dims.values()))
        rows, columns = ([], inner) if vector else (inner[0::2], inner[1::2])
        order = [*tensors, *rows, *columns]
        numbers = numbers.permute([list(self.dims).index(name) for name in order])
        of = self.dims
        return numbers.reshape(
            of["layer"], prod(of[n] for n in tensors[1:]), prod(of[n] for n in rows), prod(of[n] for n in columns)
        )

    def dealt(self, axes: Axes) -> dict[str, Owners]:
        """Owners where nothing says them: the equal pieces of a buffer."""
        return owners((axes,), self._sizes, self.count, tuple(range(self.count)))


def _length(cuts: tuple[Rules, ...], sizes: Sizes, shifted: bool, least: int) -> int:
    """The shortest dimension in which every cut gives everyone something, and different cuts differ."""
    size = dict(sizes)
    whole = prod(size[axis] for axis in {axis for system in cuts for part in system for axis in part})
    best: tuple[int, int] | None = None
    for length in range(max(whole, least), 4 * whole + 8):
        missed = _missed(cuts, sizes, shifted, length)
        if best is None or missed < best[0]:
            best = missed, length
        if missed == 0:
            break
    assert best is not None
    return best[1]


def _missed(cuts: tuple[Rules, ...], sizes: Sizes, shifted: bool, length: int) -> int:
    size, index = dict(sizes), tuple(range(length))
    at = [owners(system, sizes, length, index) for system in cuts]
    missed = 0
    for system, here in zip(cuts, at):
        missed += sum(len(set(owner)) < size[axis] for axis, owner in here.items())
        if shifted:
            there = owners(system, sizes, length, moved(index, length))
            missed += sum(size[axis] > 1 and here[axis] == there[axis] for axis in here)
    for (one, a), (two, b) in combinations(zip(cuts, at), 2):
        for axis in a.keys() & b.keys():
            if size[axis] > 1 and deciding(one, axis, size) != deciding(two, axis, size):
                missed += a[axis] == b[axis]
    return missed
