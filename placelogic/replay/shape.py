"""The tensors of a weight group, and which coordinate of the mesh holds each of their elements.

A group is an array with one dimension for each dimension that its layouts cut or its `dims` declare.
Whole-tensor dimensions (`layer`, `param`, experts that are routed) number its tensors, the others are the
rows and columns of each tensor. So what cuts different dimensions is independent, as the language says.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

import torch

from placelogic.program.catalog import WHOLE_TENSOR_DIMS
from placelogic.program.program import Axes, Layout, Weights

System = tuple[Axes, ...]
"""The cuts of one dimension in one layout, outermost first."""
Sizes = dict[str, int]

MOST_ELEMENTS = 200_000


class TooLarge(Exception):
    """More elements or devices than a replay on one machine can hold."""


def owners(system: System, size: Sizes, length: int, index: torch.Tensor) -> dict[str, torch.Tensor]:
    """Per axis, the coordinate that holds each index: nested ceil-sized chunks, products row-major."""
    found: dict[str, torch.Tensor] = {}
    low, high = torch.zeros_like(index), torch.full_like(index, length)
    for axes in system:
        parts = prod(size[axis] for axis in axes)
        chunk = torch.clamp((high - low + parts - 1) // parts, min=1)
        position = (index - low) // chunk
        low = low + position * chunk
        high = torch.minimum(high, low + chunk)
        for axis in reversed(axes):
            found[axis] = position % size[axis]
            position = position // size[axis]
    return found


def systems(layout: Layout) -> dict[str, System]:
    """Per dimension, its cuts, outermost first."""
    found: dict[str, System] = {}
    for cut in layout.cuts:
        found[cut.dimension] = (*found.get(cut.dimension, ()), cut.axes)
    return found


class Shape:
    """`count` elements, numbered row-major over `dims`; `matrices[layer, tensor, row, column]` are the
    numbers of the elements of each tensor. `size`: axis sizes, as these weights are dealt out over them."""

    def __init__(self, weights: Weights, size: Sizes, shifted: bool) -> None:
        self._size = size
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
            name: _length(ways.get(name, ()), size, shifted and name == "flat", 3 if name == "#column" else 2)
            for name in (*tensors, *inner)
        }
        self.count = prod(self.dims.values())
        if self.count > MOST_ELEMENTS:
            raise TooLarge(f"`{weights.name}` would need {self.count} elements for every cut to be seen at this mesh")
        self._index = dict(zip(self.dims, torch.unravel_index(torch.arange(self.count), tuple(self.dims.values()))))
        self.matrices = self._matrices(tensors, inner, weights.kind == "vector")
        flat = self.matrices.reshape(-1, self.matrices.shape[2] * self.matrices.shape[3])
        self.tensor = torch.empty(self.count, dtype=torch.long)
        self.tensor[flat.reshape(-1)] = torch.arange(flat.shape[0]).repeat_interleave(flat.shape[1])
        self.block = torch.empty(self.count, dtype=torch.long)
        # Blocks of quantised moments: a row and one element more, so that no cut keeps all of them whole.
        per_tensor = torch.arange(flat.shape[1]) // (self.matrices.shape[3] + 1)
        self.block[flat.reshape(-1)] = (torch.arange(flat.shape[0])[:, None] * flat.shape[1] + per_tensor).reshape(-1)

    def _matrices(self, tensors: list[str], inner: list[str], vector: bool) -> torch.Tensor:
        numbers = torch.arange(self.count).reshape(tuple(self.dims.values()))
        rows, columns = ([], inner) if vector else (inner[0::2], inner[1::2])
        order = [*tensors, *rows, *columns]
        numbers = numbers.permute([list(self.dims).index(name) for name in order])
        of = self.dims
        return numbers.reshape(
            of["layer"], prod(of[n] for n in tensors[1:]), prod(of[n] for n in rows), prod(of[n] for n in columns)
        )

    def tables(self, layout: Layout) -> dict[str, tuple[torch.Tensor, ...]]:
        """Per axis that the layout cuts, the owner of every element; a second one where the last stage
        of tied weights has them elsewhere in its flat buffer."""
        found: dict[str, tuple[torch.Tensor, ...]] = {}
        for name, system in systems(layout).items():
            length, index = self.dims[name], self._index[name]
            plain = owners(system, self._size, length, index)
            if name == "flat" and self._shifted:
                other = owners(system, self._size, length, (index + length // 2) % length)
                found.update({axis: (plain[axis], other[axis]) for axis in plain})
            else:
                found.update({axis: (plain[axis],) for axis in plain})
        return found

    def dealt(self, axes: Axes) -> dict[str, torch.Tensor]:
        """Owners where nothing says them: the equal pieces of a buffer."""
        return owners((axes,), self._size, self.count, torch.arange(self.count))


def _length(ways: tuple[System, ...], size: Sizes, shifted: bool, least: int) -> int:
    """The shortest dimension in which every cut gives everyone something, and different cuts differ."""
    axes = {axis for system in ways for part in system for axis in part}
    whole = prod(size[axis] for axis in axes)
    start = max(whole, least)
    if whole > least:
        start = whole
    best: tuple[int, int] | None = None
    for length in range(start, 4 * whole + 8):
        missed = _missed(ways, size, shifted, length)
        if best is None or missed < best[0]:
            best = missed, length
        if missed == 0:
            break
    assert best is not None
    return best[1]


def _missed(ways: tuple[System, ...], size: Sizes, shifted: bool, length: int) -> int:
    index = torch.arange(length)
    at = [owners(system, size, length, index) for system in ways]
    missed = 0
    for system, here in zip(ways, at):
        missed += sum(len(owner.unique()) < size[axis] for axis, owner in here.items())
        if shifted:
            there = owners(system, size, length, (index + length // 2) % length)
            missed += sum(size[axis] > 1 and bool((here[axis] == there[axis]).all()) for axis in here)
    for (one, a), (two, b) in combinations(zip(ways, at), 2):
        for axis in a.keys() & b.keys():
            if size[axis] > 1 and _stack(one, axis, size) != _stack(two, axis, size):
                missed += bool((a[axis] == b[axis]).all())
    return missed


def _stack(system: System, axis: str, size: Sizes) -> System:
    """The cuts that decide the coordinate along `axis`, axes of size 1 left out."""
    last = next(i for i, axes in enumerate(system) if axis in axes)
    large = (tuple(a for a in axes if size[a] > 1) for axes in system[: last + 1])
    return tuple(axes for axes in large if axes)
