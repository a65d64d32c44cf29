"""Where the few elements of a script lie: of elements that all layouts treat alike one is enough.

Rules and devices are those of the simulator; there are no numbers here, only places in local arrays."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from placelogic.program.catalog import Needs
from placelogic.program.program import Axes, Op, Reduce, flat
from placelogic.simulate.elements import COUNT, block, tensor
from placelogic.simulate.group import Group, Local, Rule

NOTHING = -1
"""The place of a value that is not there."""
LEAST = 2
"""Elements of a group, so that a person sees an array."""

Places = list[list[int]]
"""Per device, places in a local array."""


class Shape(Struct):
    """The layout of one gradient array, the same on every device; see simulate/buffers.py."""

    room: dict[str, Rule]
    valid: frozenset[Rule]
    alike: frozenset[str]

    def copy(self) -> Shape:
        return Shape(dict(self.room), self.valid, self.alike)


class Layout:
    """One weight group on the mesh, with its elements numbered anew: `elements` are the simulator's."""

    def __init__(self, group: Group, ops: tuple[Op, ...]) -> None:
        self.group = group
        self.needs = group.weights.optimizer.needs
        self.elements = self._chosen(tuple(flat(ops)))
        self._number = {element: number for number, element in enumerate(self.elements)}
        self.count = len(self.elements)
        self.params = self.local(group.params_rule.values())
        self.optimizer = self.local(group.optimizer_rule.values())
        self.computed = self.local(group.own_room.values())
        self.home = self.local((*group.own_room.values(), *group.routed_room.values()))

    def _chosen(self, ops: tuple[Op, ...]) -> list[int]:
        if self.needs is not Needs.ELEMENT:
            return list(range(COUNT))
        group = self.group
        rules = [*group.params_rule.values(), *group.optimizer_rule.values(), *group.gradients_rule.values()]
        for op in ops:
            if isinstance(op, Reduce) and op.scattered:
                bare = tuple(axis for axis in op.axes if axis not in group.gradients_rule)
                rules += group.scattered(bare) if bare else []
        kept: dict[tuple[int, ...], int] = {}
        for element in range(COUNT):
            kept.setdefault(tuple(row[element] for rule in rules for row in rule.table), element)
        rest = [element for element in range(COUNT) if element not in kept.values()]
        return sorted([*kept.values(), *rest[: max(0, LEAST - len(kept))]])

    def local(self, rules: Iterable[Rule]) -> list[Local]:
        """Per device, what every rule gives to it, in new numbers."""
        found = self.group.local(rules)
        return [tuple(self._number[e] for e in local if e in self._number) for local in found]

    def held(self, shape: Shape) -> list[Local]:
        return self.local(shape.room.values())

    def usable(self, shape: Shape) -> list[Local]:
        return self.local((*shape.room.values(), *shape.valid))

    def units(self) -> list[int]:
        """Which tensor, or block of a tensor, each element belongs to, for optimizers that look at these."""
        of = tensor if self.needs is Needs.TENSOR else block
        names = [of(element) for element in self.elements]  # type: ignore[operator]
        return [sorted(set(names)).index(name) for name in names]

    def source(self, x: int, rules: list[Rule], number: int) -> int:
        """The device that has this element, seen from device x."""
        return self.group.moved(x, rules, self.elements[number])

    def groups(self, axes: Axes) -> list[list[int]]:
        """Process groups among the devices that hold these weights."""
        return self.group.groups(axes)


def places(wanted: list[Local], there: list[Local]) -> Places:
    """Where each wanted element is in the array that is there."""
    return [
        [array.index(e) if e in array else NOTHING for e in mine] for mine, array in zip(wanted, there, strict=True)
    ]


def same(found: Places, there: list[Local]) -> bool:
    """Whether everyone just keeps the array."""
    return all(mine == list(range(len(array))) for mine, array in zip(found, there, strict=True))
