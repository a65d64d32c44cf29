"""What devices draw and count for themselves inside a layer, where a person says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placelogic.program.block import Block, Layers
from placelogic.run.grid import Grid
from placelogic.run.layers.lay import Lay


class Habits:
    """Random streams and positions of every device of a mesh."""

    def __init__(self, layers: Layers, grid: Grid, stages: str | None) -> None:
        """`stages`: the axis of those. Each draws for layers of its own, whatever its neighbour draws."""
        self._grid = grid
        self._apart = {
            (line.block, line.tensor, line.axis)
            for line in layers.drawn
            if line.kind == "different" and line.axis != stages
        }
        self._local = {(line.block, line.tensor, line.axis) for line in layers.counted if line.kind == "local"}

    def apart(self, block: Block, tensor: str, x: int, inputs: Sequence[Lay]) -> tuple[int, ...]:
        """What sets the stream of a device apart; empty where it is that of the operation. Who has other
        places than its neighbour draws other numbers in any case: those of its places."""
        found: list[int] = []
        for number, axis in enumerate(self._grid.axes):
            if (block.name, tensor, axis) not in self._apart:
                continue
            at = self._grid.coordinate[axis][x]
            first = x - at * self._grid.stride[axis]
            if at and inputs[first].labels == inputs[x].labels:
                found += [at, number]
        return tuple(found)

    def position(self, block: Block, tensor: str, x: int, made: Sequence[Lay], whole: int) -> Callable[[int], int]:
        """How a device counts the places of the sequence. `made`: what is counted, as it was made."""
        shift = 0
        for axis in self._grid.axes:
            if (block.name, tensor, axis) not in self._local:
                continue
            at = self._grid.coordinate[axis][x]
            first = made[x - at * self._grid.stride[axis]]
            if "sequence" in first.dims:  # the distance to the piece of the first device along the axis
                shift += made[x].along("sequence")[0] - first.along("sequence")[0]
        return lambda place: (place - shift) % whole
