"""A concrete mesh: devices are numbered row-major over the atoms, first atom slowest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placelogic.program.program import Axes


class Grid:
    """Devices 0 .. count-1 and their coordinates."""

    def __init__(self, axes: Axes, sizes: Mapping[str, int]) -> None:
        self.axes = axes
        self.size = {axis: sizes[axis] for axis in axes}
        self.stride: dict[str, int] = {}
        count = 1
        for axis in reversed(axes):
            self.stride[axis] = count
            count *= self.size[axis]
        self.count = count
        self.coordinate = {
            axis: [x // self.stride[axis] % self.size[axis] for x in range(count)] for axis in axes
        }
        self._groups: dict[Axes, list[list[int]]] = {}

    def device(self, x: int) -> tuple[int, ...]:
        return tuple(self.coordinate[axis][x] for axis in self.axes)

    def name(self, x: int) -> str:
        return ", ".join(f"{axis}={self.coordinate[axis][x]}" for axis in self.axes) or "the device"

    def extent(self, axes: Sequence[str]) -> int:
        extent = 1
        for axis in axes:
            extent *= self.size[axis]
        return extent

    def index(self, x: int, axes: Sequence[str]) -> int:
        """Row-major index of x along a product of axes, first factor slowest."""
        index = 0
        for axis in axes:
            index = index * self.size[axis] + self.coordinate[axis][x]
        return index

    def coordinates(self, index: int, axes: Sequence[str]) -> dict[str, int]:
        """The inverse of `index`."""
        found = {}
        for axis in reversed(axes):
            index, found[axis] = divmod(index, self.size[axis])
        return found

    def groups(self, axes: Axes) -> list[list[int]]:
        """The devices in process groups along `axes`, each in the row-major order of `axes`."""
        known = self._groups.get(axes)
        if known is None:
            unique = tuple(dict.fromkeys(axes))
            found: dict[int, list[int]] = {}
            offsets = [0] * self.count
            for axis in unique:
                stride = self.stride[axis]
                offsets = [o + c * stride for o, c in zip(offsets, self.coordinate[axis])]
            for x in range(self.count):
                found.setdefault(x - offsets[x], []).append(x)
            known = list(found.values())
            if list(unique) != sorted(unique, key=self.axes.index):
                for group in known:
                    group.sort(key=lambda x: self.index(x, unique))
            self._groups[axes] = known
        return known
