"""The weights of a group, matrix by matrix: the elements that each operation multiplies by, and who holds them.

A group of weights that operations use is one row of elements: all its matrices and vectors, one after the other.
Every operation has one of its own, except that a table is shared by all that look it up or turn it round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import torch
from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program.catalog import Needs
from placelogic.program.operations import sides
from placelogic.program.program import Axes, Cut, Layout, Optimizer, Weights
from placelogic.program.weights import is_flat
from placelogic.replay.shape import MOST_ELEMENTS, TooLarge
from placelogic.run.group import Group
from placelogic.run.layers.setting import Setting
from placelogic.run.layers.uses import Key, cut_of, matrices, weights_dims
from placelogic.run.owners import Owners, Sizes, numbered, owners


class Matrix(Struct, frozen=True):
    """`dims`: its dimensions, in the order of its elements; `sides`: what it makes, and what it contracts.
    `cut`: axis -> the dimension that it is cut on while it is used. `layer`: its layer among those of the group."""

    start: int
    dims: tuple[str, ...]
    lengths: tuple[int, ...]
    sides: tuple[tuple[str, ...], tuple[str, ...]]
    cut: Mapping[str, str]
    layer: int

    @property
    def count(self) -> int:
        return prod(self.lengths)


class Matrices:
    """Has what `Shape` has: `count` elements, which tensor and block each is of, and who holds it."""

    group: Group

    def __init__(self, setting: Setting, weights: Weights, sizes: Sizes, shifted: bool) -> None:
        self._weights = weights
        self._sizes = sizes
        self._shifted = shifted
        self._setting = setting
        self.matrices: dict[Key, Matrix] = {}
        self.uses: dict[tuple[int, int], Key] = {}
        self._read()
        self.count = sum(matrix.count for matrix in self.matrices.values())
        if self.count > MOST_ELEMENTS:
            raise TooLarge(f"`{weights.name}` would need {self.count} elements at this mesh")
        every = list(self.matrices.values())
        self.tensor = tuple(number for number, matrix in enumerate(every) for _ in range(matrix.count))
        # Blocks of quantised moments: a row and one element more, so that no cut keeps all of them whole.
        block: list[int] = []
        for matrix in every:
            done = block[-1] + 1 if block else 0
            block += [done + place // (matrix.lengths[-1] + 1) for place in range(matrix.count)]
        self.block = tuple(block)

    def _read(self) -> None:
        found = matrices(self._setting, self._weights)
        layers = sorted({uses[0][0] for uses in found.values()})
        start = 0
        for key, uses in found.items():
            self.uses |= {(layer, index): key for layer, index, _ in uses}
            layer, index, op = uses[0]
            block = self._setting.blocks[layer]
            dims = weights_dims(block, op)
            lengths = tuple(self._setting.dims[dim] for dim in dims)
            matrix = Matrix(
                start, dims, lengths, _sides(dims, op), cut_of(self._setting, layer, index), layers.index(layer)
            )
            self.matrices[key] = matrix
            start += matrix.count

    # --- for operations -----------------------------------------------------------------------

    def elements(self, layer: int, index: int, dims: Sequence[str]) -> torch.Tensor:
        """The numbers of the elements, with the dimensions in the order of the operation."""
        matrix = self.matrices[self.uses[layer, index]]
        numbers = torch.arange(matrix.start, matrix.start + matrix.count).reshape(matrix.lengths)
        if matrix.dims == tuple(dims):  # from a dimension to itself, too
            return numbers
        return numbers.permute([matrix.dims.index(dim) for dim in dims])

    def owners(self, layer: int, index: int) -> list[tuple[str, int]]:
        """Axes along which one device alone computes the operation, and its coordinate."""
        group, found = self.group, []
        if group.uses_axis is not None and group.weights.uses is not None:
            both = len(group.members) == 2
            use = (0 if self._setting.begins(layer) else 1) if both else next(iter(group.members))
            found.append((group.uses_axis, group.members[use]))
        matrix = self.matrices[self.uses[layer, index]]
        for axis, rule in group.own_room.items():
            if axis not in matrix.cut and group.grid.size[axis] > 1:
                found.append((axis, rule.table[0][matrix.start]))
        return found

    def units(self, optimizer: Optimizer) -> Sequence[int] | None:
        """As `Shape.units`."""
        if optimizer.needs is not Needs.ROW:
            return {Needs.ELEMENT: None, Needs.BLOCK: self.block}.get(optimizer.needs, self.tensor)
        keys: list[tuple[int, ...]] = []
        for number, matrix in enumerate(self.matrices.values()):
            along = {self._own(name, matrix) for name in optimizer.along}
            for at in product(*map(range, matrix.lengths)):
                keys.append((number, *(0 if dim in along else place for dim, place in zip(matrix.dims, at))))
        return numbered(keys)

    # --- who holds what -----------------------------------------------------------------------

    def tables(self, layout: Layout) -> dict[str, tuple[Owners, ...]]:
        """As `Shape.tables`."""
        plain = self._owners(layout, 0)
        if self._shifted and any(cut.dim == "flat" for cut in layout.cuts):
            other = self._owners(layout, self.count // 2)
            flat = {axis for cut in layout.cuts if cut.dim == "flat" for axis in cut.axes}
            return {axis: (table, other[axis]) if axis in flat else (table,) for axis, table in plain.items()}
        return {axis: (table,) for axis, table in plain.items()}

    def _owners(self, layout: Layout, shift: int) -> dict[str, Owners]:
        parts: dict[str, list[int]] = {}
        every = list(self.matrices.values())
        layers = 1 + max(matrix.layer for matrix in every)
        for number, matrix in enumerate(every):
            ways: dict[str, tuple[Axes, ...]] = {}
            dims = {cut: self._dimension(cut, matrix) for cut in layout.cuts}
            # Cuts of a dimension of their own lie inside of all others.
            for cut in sorted(layout.cuts, key=lambda cut: dims[cut] is None):
                dim = dims[cut] or self._free(matrix)
                ways[dim] = (*ways.get(dim, ()), cut.axes)
            at = dict(zip(matrix.dims, zip(*product(*map(range, matrix.lengths)))))
            for dim, system in ways.items():
                if dim == LAYER:
                    length, index = layers, (matrix.layer,) * matrix.count
                elif dim == PARAM:
                    length, index = len(every), (number,) * matrix.count
                elif dim == FLAT or is_flat(dim):
                    length, begin = self._buffer(next(cut for cut in layout.cuts if dims[cut] == dim))
                    at_all = ((place + matrix.start + shift) % self.count for place in range(matrix.count))
                    index = tuple(begin + place for place in at_all)
                else:
                    length, index = self._setting.dims[dim], at[dim]
                for axis, table in owners(system, self._sizes, length, index).items():
                    parts.setdefault(axis, []).extend(table)
        return {axis: tuple(table) for axis, table in parts.items()}

    def _dimension(self, cut: Cut, matrix: Matrix) -> str | None:
        """Which dimension of a matrix a cut is of; None: one of its own."""
        whole = {"layer": LAYER, "param": PARAM, "flat": FLAT}
        if len(cut.members) > 1:
            return cut.dimension
        if cut.dim in whole:
            return whole[cut.dim]
        used = self._weights.params.cut(cut.axes[0])
        if cut.axes[0] in matrix.cut and used is not None and used.dim == cut.dim:
            return matrix.cut[cut.axes[0]]
        return self._own(cut.dim, matrix)

    def _buffer(self, cut: Cut) -> tuple[int, int]:
        """The length of a flat buffer, and where these weights begin in it, all its members being as large as they."""
        members = cut.members or (self._weights.name,)
        return len(members) * self.count, members.index(self._weights.name) * self.count

    @staticmethod
    def _own(dim: str | None, matrix: Matrix) -> str | None:
        made, contracted = matrix.sides
        if dim == "out":
            return (*made, *contracted)[0]
        if dim == "in":
            return (*contracted, *made)[0]
        return dim if dim in matrix.dims else None

    @staticmethod
    def _free(matrix: Matrix) -> str:
        return next((dim for dim in matrix.dims if dim not in matrix.cut.values()), matrix.dims[0])

    def dealt(self, axes: Axes) -> dict[str, Owners]:
        """As `Shape.dealt`."""
        return owners((axes,), self._sizes, self.count, tuple(range(self.count)))


LAYER, PARAM, FLAT = "#layer", "#param", "#flat"


def _sides(dims: tuple[str, ...], op: bl.Operation) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Experts, the first of the dimensions of some matrices, are with what it makes."""
    produced, contracted = sides(op)
    return (*produced, *dims[: len(dims) - len(contracted) - len(produced)]), contracted
