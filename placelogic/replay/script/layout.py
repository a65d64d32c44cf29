"""The few elements of a script: of those that all layouts treat alike one is enough."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.program.catalog import Needs
from placelogic.program.program import Axes, Layout, Op, Optimizer, Program, Reduce, Weights, flat
from placelogic.run.arriving import kept_along, lines_of
from placelogic.run.grid import Grid
from placelogic.run.group import Geometry, Group
from placelogic.run.owners import Owners, numbered
from placelogic.simulate.elements import Elements

LEAST = 2
"""Elements of a group, so that a person sees an array."""


class Few:
    """Some elements of another geometry, numbered anew."""

    def __init__(self, whole: Geometry, chosen: Sequence[int]) -> None:
        self._whole = whole
        self._chosen = chosen
        self.count = len(chosen)

    def units(self, optimizer: Optimizer) -> Sequence[int] | None:
        units = self._whole.units(optimizer)
        return None if units is None else numbered(self._some(units))

    def _some(self, values: Sequence[int]) -> Owners:
        return tuple(values[element] for element in self._chosen)

    def tables(self, layout: Layout) -> dict[str, tuple[Owners, ...]]:
        return {axis: tuple(map(self._some, rows)) for axis, rows in self._whole.tables(layout).items()}

    def dealt(self, axes: Axes) -> dict[str, Owners]:
        return {axis: self._some(row) for axis, row in self._whole.dealt(axes).items()}


def group_of(program: Program, number: int, weights: Weights, grid: Grid, ops: tuple[Op, ...]) -> Group:
    """The group as the simulator has it, with as few elements as will do."""
    kept, split = kept_along(lines_of(program, weights.name)), program.work.split_axes
    whole = Group(number, weights, grid, split, Elements, kept)
    chosen = _chosen(whole, tuple(flat(ops)))
    return Group(number, weights, grid, split, lambda *_: Few(whole.geometry, chosen), kept)


def _chosen(group: Group, ops: tuple[Op, ...]) -> list[int]:
    if group.weights.optimizer.needs is not Needs.ELEMENT:
        return list(range(group.count))
    rules = [*group.params_rule.values(), *group.optimizer_rule.values(), *group.gradients_rule.values()]
    for op in ops:
        if isinstance(op, Reduce) and op.scattered:
            bare = tuple(axis for axis in op.axes if axis not in group.gradients_rule)
            rules += group.scattered(bare) if bare else []
    kept: dict[tuple[int, ...], int] = {}
    for element in range(group.count):
        kept.setdefault(tuple(row[element] for rule in rules for row in rule.table), element)
    rest = [element for element in range(group.count) if element not in kept.values()]
    return sorted([*kept.values(), *rest[: max(0, LEAST - len(kept))]])
