"""The algebra of exact numbers: the arrays of all devices, as residues.

Devices that hold the same numbers share one array, and what is done to it is done once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import zip_longest

from placelogic.program.program import Axes
from placelogic.run.group import NOWHERE, Group, Held, Table
from placelogic.simulate.arithmetic import PRIME, inverse, mix, residue
from placelogic.simulate.optimizer import stepped

Arrays = list[list[int]]
"""Per device, the numbers of its local array."""


class Exact:
    """Arrays of one weight group."""

    def __init__(self, group: Group) -> None:
        self.group = group

    # --- one device --------------------------------------------------------------------------

    def take(self, array: Arrays, held: Held, wanted: Held, why: str) -> Arrays:
        places = self.group.places(wanted, held)
        whole: dict[tuple[int, int], list[int]] = {}
        found = []
        for x, (numbers, row) in enumerate(zip(array, places)):
            known = whole.get((id(numbers), id(row)))
            if known is None:
                if NOWHERE in row:
                    known = [numbers[i] if i >= 0 else _left(x, e) for i, e in zip(row, wanted[x])]
                else:
                    known = whole[id(numbers), id(row)] = [numbers[i] for i in row]
            found.append(known)
        return found

    def rubbish(self, array: Arrays, held: Held, usable: Held, why: str) -> Arrays:
        return [
            numbers if len(own) == len(local) else [v if e in own else _left(x, e) for e, v in zip(local, numbers)]
            for x, (numbers, local, own) in enumerate(zip(array, held, usable))
        ]

    def put(self, array: Arrays, held: Held, source: Arrays, there: Held, only: Held, why: str) -> Arrays:
        places = self.group.places(held, there)

        def put(x: int) -> list[int]:
            mine = only[x]
            return [
                source[x][place] if place >= 0 and e in mine else old
                for old, place, e in zip(array[x], places[x], held[x])
            ]

        return _once(put, ((id(array[x]), id(source[x]), id(places[x]), id(only[x])) for x in range(len(array))))

    def add(self, one: Arrays, other: Arrays) -> Arrays:
        def add(x: int) -> list[int]:
            return [(v + w) % PRIME for v, w in zip(one[x], other[x])]

        return _once(add, ((id(a), id(b)) for a, b in zip(one, other)))

    def scale(self, array: Arrays, factor: Fraction, why: str) -> Arrays:
        return self.scale_each(array, [residue(factor)] * len(array))

    def scale_each(self, array: Arrays, factors: Sequence[int]) -> Arrays:
        """Multiply each device's array by its own factor."""

        def scale(x: int) -> list[int]:
            return [v * factors[x] % PRIME for v in array[x]]

        return _once(scale, ((id(numbers), factor) for numbers, factor in zip(array, factors)))

    def draw(self, line: int, axes: Axes, held: Held) -> Arrays:
        at = [self.group.grid.coordinate[axis] for axis in axes]
        keys = [tuple(coordinate[x] for coordinate in at) for x in range(len(held))]
        return _once(
            lambda x: [self.drawn(e, line, keys[x]) for e in held[x]], ((id(h), k) for h, k in zip(held, keys))
        )

    def drawn(self, element: int, line: int, key: tuple[int, ...]) -> int:
        return mix(6, self.group.number, element, line, *key)

    def step(
        self, target: Arrays, there: Held, gradient: Arrays, held: Held, moments: Arrays, mine: Held,
        seen: Held | None, over: Axes,
    ) -> tuple[Arrays, Arrays]:  # fmt: skip
        group = self.group
        at = group.places(mine, there), group.places(mine, held), group.places(mine, group.optimizer_local)
        done: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
        new_target, new_moments = list(target), list(moments)
        for x, elements in enumerate(mine):
            if not elements:
                continue
            theta, omega, rows = target[x], moments[x], [places[x] for places in at]
            read = None if seen is None else {e: gradient[x][held[x].index(e)] for e in seen[x]}
            key = id(gradient[x]), id(theta), id(omega), *map(id, rows), seen and seen[x]
            known = done.get(key)
            if known is None:
                t, g, o = rows
                moved, state = stepped(
                    group.units, elements,
                    [gradient[x][i] for i in g], [theta[i] for i in t], [omega[i] for i in o], read,
                )  # fmt: skip
                known = done[key] = list(theta), list(omega)
                for i, value in zip(t, moved):
                    known[0][i] = value
                for i, value in zip(o, state):
                    known[1][i] = value
            new_target[x], new_moments[x] = known
        return new_target, new_moments

    # --- several devices ---------------------------------------------------------------------

    def sum(self, array: Arrays, held: Held, axes: Axes, mean: bool, needed: Held | None, why: str) -> Arrays:
        found = list(array)
        for members in self.group.groups(axes):
            if len(members) > 1:
                total = _added([array[x] for x in members])
                if mean:
                    share = inverse(len(members))
                    total = [v * share % PRIME for v in total]
                for x in members:
                    found[x] = total if len(held[x]) == len(total) else total[: len(held[x])]
        return found

    def pick(self, array: Arrays, held: Held, wanted: Held, axes: Axes, table: Table, why: str) -> Arrays:
        whole: dict[int, list[int]] = {}
        found = []
        for x, row in enumerate(table):
            known = whole.get(id(row))
            if known is None:
                known = [array[y][i] if i >= 0 else _left(x, e) for (y, i), e in zip(row, wanted[x])]
                if all(i >= 0 for _, i in row):
                    whole[id(row)] = known
            found.append(known)
        return found

    def copies(self, array: Arrays, held: Held, axis: str) -> Arrays:
        found = list(array)
        for members in self.group.groups((axis,)):
            first = array[members[0]]
            if any(array[x] is not first and array[x] != first for x in members):
                for x in members:
                    found[x] = [_left(x, e) for e in range(len(array[x]))]
        return found

    def broadcast(self, array: Arrays, held: Held, axes: Axes, root: int, why: str) -> Arrays:
        found = list(array)
        for members in self.group.groups(axes):
            source = array[members[root]]
            for x in members:
                size = len(array[x])
                found[x] = source if len(source) == size else source[:size] + array[x][len(source) :]
        return found

    # --- the whole job -----------------------------------------------------------------------

    def squares(
        self, array: Arrays, held: Held, usable: Held, copies: Sequence[int] | None, axes: Axes | None
    ) -> list[int]:
        share = [1] * self.group.count if copies is None else [inverse(n) if n else 0 for n in copies]

        def square(x: int) -> int:
            own = usable[x]
            return sum(v * v * share[e] for e, v in zip(held[x], array[x]) if e in own) % PRIME

        local = _once(square, ((id(a), id(h), id(u)) for a, h, u in zip(array, held, usable)))
        if axes is None:
            return [sum(local)] * len(array)
        found = list(local)
        for members in self.group.grid.groups(axes) if axes else ():
            together = sum(local[x] for x in members)
            for x in members:
                found[x] = together
        return found

    # --- from one device -----------------------------------------------------------------------

    def started_single(self) -> list[int]:
        """What the single device starts from."""
        return [
            sum(self.drawn(e, line, key) for line, key in drawn) % PRIME for e, drawn in enumerate(self.group.draws())
        ]

    def spread(self, single: Sequence[int], held: Held) -> Arrays:
        """Every device has the single device's values."""
        return _once(lambda x: [single[e] for e in held[x]], map(id, held))


def _once(value: Callable[[int], list[int]], keys: Iterable[object]) -> Arrays:  # type: ignore[type-arg]
    """Per device its value, computed once for all that have the same key."""
    known: dict[object, list[int]] = {}
    found = []
    for x, key in enumerate(keys):
        if key not in known:
            known[key] = value(x)
        found.append(known[key])
    return found


def _added(arrays: list[list[int]]) -> list[int]:
    if len({len(array) for array in arrays}) == 1:
        return [sum(column) % PRIME for column in zip(*arrays)]
    return [sum(column) % PRIME for column in zip_longest(*arrays, fillvalue=0)]


def _left(x: int, element: int) -> int:
    """What lies in memory that holds no value."""
    return mix(7, x, element)
