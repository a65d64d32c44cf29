"""The matrices and vectors of a script: what they are called, and which pieces of them each device holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program.program import Program, Weights
from placelogic.replay.script.lines import NotShown
from placelogic.run.grid import Grid
from placelogic.run.layers.lay import Labels, Lay
from placelogic.run.layers.setting import Setting
from placelogic.run.layers.uses import Key, cut_of, key_of, matrices, start, weights_dims

SMALLER = 0.6
"""Than in replay: products of what a layer reads with itself stay near one as well."""


class Matrix(Struct, frozen=True):
    """`name` and `number` are its key in the script, the number where a layer is repeated. `places`: per device
    and dimension. `middle`, `width`: of the numbers that it starts from."""

    group: str
    name: str
    number: int | None
    dims: tuple[str, ...]
    places: tuple[tuple[Labels, ...], ...]
    middle: float
    width: float

    @property
    def key(self) -> str:
        return f'"{self.name}"' if self.number is None else f'("{self.name}", {self.number})'

    @property
    def held(self) -> str:
        """In the function of a layer."""
        return f'held["{self.name}"]' if self.number is None else f'held["{self.name}", number]'


class Matrices:
    """`every`: those that were met so far."""

    def __init__(self, program: Program, setting: Setting) -> None:
        self.program = program
        self.setting = setting
        self.every: dict[tuple[str, Key], Matrix] = {}
        self._names = self._named()

    def _named(self) -> dict[tuple[str, Key], tuple[str, int | None]]:
        found: dict[tuple[str, Key], tuple[str, int | None]] = {}
        blocks = [block.name for block in self.setting.blocks]
        for weights in self.program.weights:
            every = {key: uses[0] for key, uses in matrices(self.setting, weights).items()}
            places = {(blocks[layer], index) for layer, index, _ in every.values()}
            outputs = [self.setting.blocks[blocks.index(at)].operations[i].output for at, i in places]
            for key, (layer, index, op) in every.items():
                name = weights.name if len(places) == 1 else f"{weights.name} {op.output}"
                if len(places) > 1 and outputs.count(op.output) > 1:
                    name = f"{weights.name} {blocks[layer]}.{op.output}"
                repeated = key == (layer, index) and blocks.count(blocks[layer]) > 1
                found[weights.name, key] = name, layer if repeated else None
        return found

    def used(
        self, grid: Grid, layer: int, index: int, op: bl.Operation, mine: Sequence[Mapping[str, Labels]]
    ) -> tuple[str, tuple[Lay, ...]]:
        """Of an operation: its matrix in the script, and what each device has of that."""
        group = op.weights  # type: ignore[union-attr]
        weights = self.program.group(group)
        key = key_of(self.setting, weights, layer, index, op)
        found = self.every.get((group, key))
        if found is None:
            dims = weights_dims(self.setting.blocks[layer], op)
            _check(weights, grid, cut_of(self.setting, layer, index))
            sizes = self.setting.dims
            places = tuple(tuple(at.get(dim) or tuple(range(sizes[dim])) for dim in dims) for at in mine)
            name, number = self._names[group, key]
            middle, width = start(op, sizes)
            width *= SMALLER if middle == 0 else 1
            found = self.every[group, key] = Matrix(group, name, number, dims, places, middle, width)
        return found.held, tuple(Lay(found.dims, places) for places in found.places)


def _check(weights: Weights, grid: Grid, cut: Mapping[str, str]) -> None:
    """Whether each device holds what it computes with, for good. Raises NotShown."""
    if weights.uses is not None and grid.size[weights.uses.axis] > 1:
        raise NotShown(f"`{weights.name}` is on some stages only")
    layouts = (weights.params, weights.optimizer_state, weights.gradients)
    if any(layout.host is not None or layout.materialized is not None for layout in layouts) or weights.master:
        raise NotShown(f"`{weights.name}` has copies elsewhere")
    if any(grid.size[axis] > 1 for op in weights.init for axis in op.axes):
        raise NotShown(f"`{weights.name}` does not start alike everywhere")
    if any(grid.size[stream.axis] > 1 for stream in weights.random):
        raise NotShown(f"what is said of the random numbers of `{weights.name}` is not said of an operation")
    used = {axis for axis in cut if grid.size[axis] > 1}
    lie = [
        [
            (one.dim, one.letter, axes)
            for one in layout.cuts
            if (axes := tuple(axis for axis in one.axes if grid.size[axis] > 1))
        ]
        for layout in (layouts if not weights.frozen else layouts[:1])
    ]
    own = {
        axis for dim, letter, axes in lie[0] for axis in axes if letter == "S" and dim not in ("layer", "param", "flat")
    }
    every = {axis for one in lie for _, _, axes in one for axis in axes}
    if own != used or every != used or any(one != lie[0] for one in lie):
        raise NotShown(f"`{weights.name}` lies in shards between steps that are not what is computed with")
