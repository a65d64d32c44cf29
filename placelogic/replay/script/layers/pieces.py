"""What a device has of a tensor, in words of a script: along each dimension the axes that cut it, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from placelogic.replay.script.lines import by_device
from placelogic.run.grid import Grid
from placelogic.run.layers.lay import Labels, Lay


class Pieces:
    """`axes`: those of several devices that the script speaks of; `helpers`: its functions that it calls."""

    def __init__(self, grid: Grid, sizes: Mapping[str, int]) -> None:
        self.grid = grid
        self.sizes = sizes
        self.axes: set[str] = set()
        self.helpers: set[str] = set()

    def cut(self, dims: Sequence[str], places: Sequence[Sequence[Labels]]) -> str:
        """`places`: per device and dimension. A dictionary without the dimensions that everyone has whole."""
        found = []
        for number, dim in enumerate(dims):
            along = self._along([mine[number] for mine in places], self.sizes[dim])
            if along is not None:
                found.append(f"{number}: {along}")
        return "{" + ", ".join(found) + "}"

    def _along(self, labels: list[Labels], size: int) -> str | None:
        if all(mine == tuple(range(size)) for mine in labels):
            return None
        several = [axis for axis in self.grid.axes if self.grid.size[axis] > 1]
        for count in range(1, min(3, len(several)) + 1):
            for axes in permutations(several, count):
                if all(self._nested(axes, size, x) == mine for x, mine in enumerate(labels)):
                    self.axes |= set(axes)
                    return f'"{" ".join(axes)}"'
        return str([list(mine) for mine in labels])

    def _nested(self, axes: Sequence[str], size: int, x: int) -> Labels | None:
        first = 0
        for axis in axes:
            if size % self.grid.size[axis]:
                return None
            size //= self.grid.size[axis]
            first += size * self.grid.coordinate[axis][x]
        return tuple(range(first, first + size))

    def share(self, whole: str, dims: Sequence[str], places: Sequence[Sequence[Labels]]) -> str:
        cut = self.cut(dims, places)
        if cut == "{}":
            return whole
        self.helpers.add("share")
        return f"share({whole}, rank, {cut})"

    def shares(self, whole: str, lays: Sequence[Lay]) -> str:
        return self.share(whole, lays[0].dims, [lay.labels for lay in lays])

    def whole(self, dims: Sequence[str]) -> str:
        """The sizes of dimensions, as a tuple."""
        return f"({', '.join(str(self.sizes[dim]) for dim in dims)}{',' if len(dims) == 1 else ''})"

    @staticmethod
    def here(whole: object, rows: Sequence[object]) -> str | None:
        """One value per device, and that of the single device; None where they are all the same."""
        if all(row == whole for row in rows):
            return None
        told = by_device(rows)
        return f"{whole} if rank is None else {told}"


def drawn(seed: str, sizes: str) -> str:
    return f"drawn({seed}, {sizes})"
