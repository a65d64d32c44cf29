"""The tensors of a weight group, and which coordinate of the mesh holds each of their elements.

A group is an array with one dimension for each dimension that its layouts cut or its `dims` declare.
Whole-tensor dimensions (`layer`, `param`, experts that are routed) number its tensors, the others are the
rows and columns of each tensor. So what cuts different dimensions is independent, as the language says.
"""

from __future__ import annotations

from itertools import combinations, product
from math import prod

import torch

from placelogic.program.catalog import WHOLE_TENSOR_DIMS
from placelogic.program.program import Axes, Layout, Weights
from placelogic.run.owners import Owners, Rules, Sizes, deciding, owners, systems

MOST_ELEMENTS = 200_000


class TooLarge(Exception):
    """More elements or devices than a replay on one machine can hold."""


class Shape:
    """`count` elements, numbered row-major over `dims`; `matrices[layer, tensor, row, column]` are the
    numbers of the elements of each tensor. `sizes`: of axes, as these weights are dealt out over them."""

    def __init__(self, weights: Weights, sizes: Sizes, shifted: bool) -> None:
        self._sizes = sizes
        self._shifted = shifted
        cut = [systems(layout) for layout in (weights.params, weights.optimizer_state, weights.gradients)]
        ways = {
            name: tuple(dict.fromkeys(one[name] for one in cut if name in one))
            for name in dict.fromkeys(name for one in cut for name in one)
        }

        def whole(name: str) -> bool:
            # Along the axes they are routed over, experts are dealt out whole, unless it is said by which dimension.
            axes = {axis for system in ways.get(name, ()) for part in system for axis in part}
            routed = name not in ("flat", *weights.dims) and bool(axes) and axes <= set(weights.routed)
            return name in WHOLE_TENSOR_DIMS or routed

        names = list(dict.fromkeys([*ways, *weights.dims]))
        tensors = ["layer", *(name for name in names if name != "layer" and whole(name))]
        inner = [name for name in names if name != "layer" and not whole(name)]
        fillers = ["#row"] if weights.kind == "vector" else ["#row", "#column"]
        inner += fillers[len(inner) :]
        self.dims = {
            name: _length(ways.get(name, ()), sizes, shifted and name == "flat", 3 if name == "#column" else 2)
            for name in (*tensors, *inner)
        }
        self.count = prod(self.dims.values())
        if self.count > MOST_ELEMENTS:
            raise TooLarge(f"`{weights.name}` would need {self.count} elements for every cut to be seen at this mesh")
        self._index = dict(zip(self.dims, zip(*product(*map(range, self.dims.values())))))
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

    def tables(self, layout: Layout) -> dict[str, tuple[Owners, ...]]:
        """Per axis that the layout cuts, the owner of every element; a second one where the last stage
        of tied weights has them elsewhere in its flat buffer."""
        found: dict[str, tuple[Owners, ...]] = {}
        for name, system in systems(layout).items():
            length, index = self.dims[name], self._index[name]
            plain = owners(system, self._sizes, length, index)
            if name == "flat" and self._shifted:
                other = owners(system, self._sizes, length, _shifted(index, length))
                found.update({axis: (plain[axis], other[axis]) for axis in plain})
            else:
                found.update({axis: (plain[axis],) for axis in plain})
        return found

    def dealt(self, axes: Axes) -> dict[str, Owners]:
        """Owners where nothing says them: the equal pieces of a buffer."""
        return owners((axes,), self._sizes, self.count, tuple(range(self.count)))


def _shifted(index: Owners, length: int) -> Owners:
    return tuple((i + length // 2) % length for i in index)


def _length(ways: tuple[Rules, ...], sizes: Sizes, shifted: bool, least: int) -> int:
    """The shortest dimension in which every cut gives everyone something, and different cuts differ."""
    size = dict(sizes)
    whole = prod(size[axis] for axis in {axis for system in ways for part in system for axis in part})
    best: tuple[int, int] | None = None
    for length in range(max(whole, least), 4 * whole + 8):
        missed = _missed(ways, sizes, shifted, length)
        if best is None or missed < best[0]:
            best = missed, length
        if missed == 0:
            break
    assert best is not None
    return best[1]


def _missed(ways: tuple[Rules, ...], sizes: Sizes, shifted: bool, length: int) -> int:
    size, index = dict(sizes), tuple(range(length))
    at = [owners(system, sizes, length, index) for system in ways]
    missed = 0
    for system, here in zip(ways, at):
        missed += sum(len(set(owner)) < size[axis] for axis, owner in here.items())
        if shifted:
            there = owners(system, sizes, length, _shifted(index, length))
            missed += sum(size[axis] > 1 and here[axis] == there[axis] for axis in here)
    for (one, a), (two, b) in combinations(zip(ways, at), 2):
        for axis in a.keys() & b.keys():
            if size[axis] > 1 and deciding(one, axis, size) != deciding(two, axis, size):
                missed += a[axis] == b[axis]
    return missed
