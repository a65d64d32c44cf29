"""The algebra of lines: an array is a variable of the script, and what is done to it a line that assigns to it.

Where elements lie is known, so it is written as tables of places, by device."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from placelogic.program.program import Axes
from placelogic.replay.script.lines import Names, NotShown, by_device, times
from placelogic.run.group import NOWHERE, Group, Held, Places, Table


class Variable(Struct, frozen=True):
    """`name`: what is assigned to; `value`: the expression that it stands for until then."""

    name: str
    value: str


class Lines:
    """Arrays of one weight group. `out`: where lines go. `unless`: the condition on which an update is left out."""

    def __init__(self, group: Group, names: Names, out: list[str], unless: str | None = None) -> None:
        self.group = group
        self.names = names
        self.out = out
        self.unless = unless

    def assign(self, array: Variable, value: str, why: str) -> Variable:
        self.out.append(f"{array.name} = {value}" + (f"  # {why}" if why else ""))
        return Variable(array.name, array.name)

    # --- one device --------------------------------------------------------------------------

    def take(self, array: Variable, held: Held, wanted: Held, why: str) -> Variable:
        return self._kept(array, held, self.group.places(wanted, held), why)

    def rubbish(self, array: Variable, held: Held, usable: Held, why: str) -> Variable:
        rows = [
            [place if e in mine else NOWHERE for place, e in enumerate(local)] for local, mine in zip(held, usable)
        ]
        return self._kept(array, held, rows, why)

    def _kept(self, array: Variable, held: Held, rows: Sequence[Sequence[int]], why: str) -> Variable:
        """What is at these places; no line where that is all of it."""
        return array if same(rows, held) else self.assign(array, self._taken(array.value, rows), why)

    def _taken(self, source: str, rows: Sequence[Sequence[int]]) -> str:
        if any(NOWHERE in row for row in rows):
            self.names.use("keep")
            return f"keep({source}, {at(rows)})"
        return f"{source}[{at(rows)}]"

    def put(self, array: Variable, held: Held, source: Variable, there: Held, only: Held, why: str) -> Variable:
        both = [
            tuple(e for e in mine if e in other and e in some) for mine, other, some in zip(held, there, only)
        ]
        here, own = places(both, held), places(both, there)
        if not any(here):
            self.out.append(f"# {why}: nobody has anything to take over")
            return array
        if same(here, held) and same(own, there):
            return self.assign(array, f"{source.value}.clone()", why)
        self.out.append(f"{array.name}[{at(here)}] = {source.value}[{at(own)}]  # {why}")
        return array

    def add(self, one: Variable, other: Variable) -> Variable:
        return Variable(one.name, f"{one.value} + {other.value}")

    def scale(self, array: Variable, factor: Fraction, why: str) -> Variable:
        return self.assign(array, f"{times(factor)}{array.value}", why)

    def draw(self, line: int, axes: Axes, held: Held) -> Variable:
        raise NotImplementedError("what a script starts from is made of tables (begin.py)")

    def step(
        self, target: Variable, there: Held, gradient: Variable, held: Held, moments: None, mine: Held,
        seen: Held | None, over: Axes,
    ) -> tuple[Variable, None]:  # fmt: skip
        if any(e not in local for own, local in zip(mine, there) for e in own):
            raise NotShown("parameters are updated where they are not")
        indent = ""
        if self.unless is not None:
            self.out.append(f"if not {self.unless}:")
            indent = "    "
        self.out += [indent + line for line in self._moved(target.name, there, gradient.value, held, mine, seen)]
        return target, None

    def _moved(
        self, target: str, there: Held, gradient: str, held: Held, mine: Held, seen: Held | None
    ) -> list[str]:
        here, own, units = places(mine, there), places(mine, held), self.group.units
        if not any(here):
            return ["# update: no device has gradient, optimizer state and parameter of any element"]
        if units is None and same(here, there) and same(own, held):
            return [f"{target} = {target} - 0.1 * {gradient}  # update"]
        if units is not None and seen is not None:  # it looks at more than it updates
            self.names.use("seen")
            wide = f"seen({gradient}[{at(places(seen, held))}], {by_device([[units[e] for e in row] for row in seen])})"
            return [f"{target}[{at(here)}] -= 0.1 * {wide}[{at(places(mine, seen))}]  # update"]
        lines, mine_here, mine_own = [], at(here), at(own)
        if mine_here == mine_own and "rank" in mine_here:
            lines = [f"mine = {mine_here}"]
            mine_here = mine_own = "mine"
        gradient = f"{gradient}[{mine_own}]"
        if units is not None:
            self.names.use("seen")
            gradient = f"seen({gradient}, {by_device([[units[e] for e in row] for row in mine])})"
        return [*lines, f"{target}[{mine_here}] -= 0.1 * {gradient}  # update"]

    # --- several devices ---------------------------------------------------------------------

    def sum(self, array: Variable, held: Held, axes: Axes, mean: bool, needed: Held | None, why: str) -> Variable:
        sets = self.group.groups(axes)
        name = self.names.group(axes, sets)
        if name is None:
            return array
        sizes = {len(members) for members in sets if any(held[x] for x in members)}
        if mean and len(sizes) > 1:
            raise NotShown("process groups differ in size")
        if any(len({len(held[x]) for x in members}) > 1 for members in sets):
            raise NotShown("arrays of different lengths are added")
        self.names.use("add")
        share = f" / {max(sizes)}" if mean and sizes else ""
        return self.assign(array, f'add({array.value}, "{name}"){share}', self._why(why, axes))

    def pick(self, array: Variable, held: Held, wanted: Held, axes: Axes, table: Table, why: str) -> Variable:
        sets = self.group.groups(axes)
        name, why = self.names.group(axes, sets), self._why(why, axes)
        if name is None:
            return self._kept(array, held, [[place for _, place in row] for row in table], why)
        longest = max(map(len, held))
        members = {x: sorted(group) for group in sets for x in group}
        rows = []
        for x, row in enumerate(table):
            if any(place != NOWHERE and y not in members[x] for y, place in row):
                raise NotShown("values come from outside the process group")
            rows.append([members[x].index(y) * longest + i if i != NOWHERE else NOWHERE for y, i in row])
        source = array.value
        if any(len(held[x]) != longest for x in members):
            padded = [
                [*range(len(local)), *[NOWHERE] * (longest - len(local))] if x in members else []
                for x, local in enumerate(held)
            ]
            source = self._taken(source, padded)
        self.names.use("gather")
        return self.assign(array, self._taken(f'gather({source}, "{name}")', rows), why)

    def copies(self, array: Variable, held: Held, axis: str) -> Variable:
        """The first of them is what is read."""
        first = {x: min(members) for members in self.group.groups((axis,)) for x in members}
        table = [[(first.get(x, x), place) for place in range(len(local))] for x, local in enumerate(held)]
        return self.pick(array, held, held, (axis,), table, "gather: whole arrays, the first is read")

    def broadcast(self, array: Variable, held: Held, axes: Axes, root: int, why: str) -> Variable:
        sets = self.group.groups(axes)
        name = self.names.group(axes, sets)
        if name is None:
            return array
        if any(len({len(held[x]) for x in members}) > 1 for members in sets):
            raise NotShown("a broadcast goes to arrays of another length")
        source = {x: members[root] for members in sets for x in members}
        roots = by_device([source.get(x, x) for x in range(self.group.grid.count)])
        self.names.use("broadcast")
        return self.assign(array, f'broadcast({array.value}, "{name}", {roots})', self._why(why, axes))

    def _why(self, why: str, axes: Axes) -> str:
        return why.replace("{}", self.names.label(axes))

    # --- the whole job -----------------------------------------------------------------------

    def squares(
        self, array: Variable, held: Held, usable: Held, copies: Sequence[int] | None, axes: Axes | None
    ) -> str:
        share = ""
        if copies is not None:
            rows = [[copies[e] for e in mine] for mine in usable]
            if any(count != 1 for row in rows for count in row):
                share = f" / torch.tensor({by_device(rows)})"
        over = tuple(self.group.grid.axes) if axes is None else axes
        return self.added(f"({self.values(array, held, usable)} ** 2{share}).sum()", over)

    def values(self, array: Variable, held: Held, usable: Held) -> str:
        """What there is a value of."""
        found = self.group.places(usable, held)
        return array.value if same(found, held) else f"{array.value}[{at(found)}]"

    def added(self, value: str, axes: Axes) -> str:
        """Over all devices along these axes, whether they hold the weights or not."""
        name = self.names.group(axes, self.group.grid.groups(axes)) if axes else None
        if name is None:
            return value
        self.names.use("add")
        return f'add({value}, "{name}")'


def at(rows: Sequence[Sequence[int]]) -> str:
    return by_device([list(row) for row in rows])


def places(wanted: Held, held: Held) -> list[Places]:
    """Where each wanted element is in the array that is held."""
    return [tuple(local.index(e) for e in mine) for mine, local in zip(wanted, held)]


def same(rows: Sequence[Sequence[int]], held: Held) -> bool:
    """Whether everyone just keeps the array."""
    return all(list(row) == list(range(len(local))) for row, local in zip(rows, held))
