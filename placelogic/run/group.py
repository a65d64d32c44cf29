"""One weight group on the mesh: which elements each device holds under each layout, and how its gradient is computed.

Everything here is about places, and the same whatever the numbers are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from placelogic.program.program import Axes, Layout, Optimizer, Weights
from placelogic.run.grid import Grid
from placelogic.run.owners import Owners, Sizes

Local = tuple[int, ...]
"""The elements in a device's local array, by position."""
Held = Sequence[Local]
"""Per device, the elements of its local array."""
Places = tuple[int, ...]
"""Per wanted element, its place in an array."""
Table = Sequence[Sequence[tuple[int, int]]]
"""Per device and wanted element, the device and the place where it is."""
NOWHERE = -1
"""The place, or device, of what nobody has."""


class Geometry(Protocol):
    """The elements of a group. `tables(layout)[axis]`: the owner of each along the axis; a second list holds on the
    last stage of tied weights, whose place in that stage's flat buffer is another one. `dealt`: the owners of the
    equal pieces of a buffer, where nothing else says them."""

    count: int

    def tables(self, layout: Layout) -> Mapping[str, tuple[Owners, ...]]: ...

    def dealt(self, axes: Axes) -> Mapping[str, Owners]: ...

    def units(self, optimizer: Optimizer) -> Sequence[int] | None:
        """Which elements an optimizer looks at together, by number: a tensor, a row, a block; None where it looks at
        each by itself."""


Elements = Callable[[Weights, Sizes, bool], Geometry]
"""From weights, sizes of axes, and whether the last stage lays them out shifted."""


class Rule:
    """Which coordinate along `axis` holds each element. Equal rules of a group are the same object."""

    __slots__ = ("axis", "table")

    def __init__(self, axis: str, table: tuple[Owners, ...]) -> None:
        self.axis = axis
        self.table = table


class Group:
    """The layouts of one weight group on every device. `kept`: axes along which each device keeps only its own piece
    of the gradient that reaches these weights. `stop`: why it cannot go on."""

    def __init__(
        self, number: int, weights: Weights, grid: Grid, split: Axes, elements: Elements, kept: Axes = ()
    ) -> None:
        self.number = number
        self.weights = weights
        self.name = weights.name
        self.grid = grid
        self.split = split
        self.kept = kept
        self.stop: str | None = None
        self._place_uses()
        self.geometry = elements(weights, self.sizes, self.shifted)
        self.count = self.geometry.count
        self._rules: dict[tuple[str, tuple[Owners, ...]], Rule] = {}
        self._locals: dict[frozenset[Rule], list[Local]] = {}
        self._groups: dict[Axes, list[list[int]]] = {}
        self._places: dict[tuple[int, int], tuple[Held, Held, list[Places]]] = {}
        self._tables: dict[tuple[object, ...], tuple[Held, Held, Table]] = {}
        self._updates: dict[int, tuple[Held, list[Local]]] = {}
        self.params_rule = self._read(weights.params)
        self.optimizer_rule = self._read(weights.optimizer_state)
        self.gradients_rule = self._read(weights.gradients)
        self.params_local = self.local(self.params_rule.values())
        self.optimizer_local = self.local(self.optimizer_rule.values())
        self._how_computed()
        self.units = self.geometry.units(weights.optimizer)
        self.hosted = weights.params.host is not None or weights.optimizer_state.host is not None
        self.materialized = weights.params.materialized is not None

    def _place_uses(self) -> None:
        """`members`: per use (0 is the first stage's, 1 the last stage's), its stage."""
        uses, grid = self.weights.uses, self.grid
        self.variant = [0] * grid.count
        self.shifted = False
        self.members: dict[int, int] = {0: 0}
        self.holder = [True] * grid.count
        self.uses_axis = uses.axis if uses is not None else None
        if uses is not None:
            last = uses.last_stage(grid.size)
            self.members = ({0: 0} if uses.first else {}) | ({1: last} if uses.last else {})
            at = grid.coordinate[uses.axis]
            self.holder = [c in self.members.values() for c in at]
            if len(set(self.members.values())) == 2:
                self.shifted = True
                self.variant = [int(c == last) for c in at]
        self.holders = [x for x in range(grid.count) if self.holder[x]]
        self._stages = sorted(set(self.members.values()))
        # Along the axis of its stages a group is shared out among those who have it.
        self.sizes = tuple((a, len(self._stages) if a == self.uses_axis else n) for a, n in grid.size.items())

    def _how_computed(self) -> None:
        """`own_room`: the rules by which a device computes with a shard; `routed_room`: those that tell whose experts
        tokens go to. `parts`: axes along which each computes with a piece of the activations. `alike`: axes along
        which every device computes the very same thing; `noisy`: with other random numbers."""
        grid, w = self.grid, self.weights
        cut = [a for cut in w.params.cuts if cut.letter == "S" for a in cut.axes]
        self.routed = tuple(a for a in cut if a in w.routed)
        own = [a for a in cut if a not in self.routed and a not in self.split and a != self.uses_axis]
        self.own_room = {a: self.params_rule[a] for a in own}
        self.routed_room = {a: self.params_rule[a] for a in self.routed}
        self.room = {**self.own_room, **self.routed_room}
        self.computed_local = self.local(self.own_room.values())
        self.home_local = self.local(self.room.values())
        # Along the stages of these weights each use is computed whole, where it is.
        outside = {*self.split, *self.own_room, self.uses_axis}
        activations = {a for cut in w.activations.cuts if cut.letter == "S" for a in cut.axes}
        self.parts = tuple(a for a in grid.axes if a in {*activations, *self.kept} and a not in outside)
        self.alike = frozenset(a for a in grid.axes if a not in outside and a not in self.parts)
        streams = [r.axis for r in w.random if r.kind == "different" and grid.size[r.axis] > 1]
        self.noisy = tuple(a for a in grid.axes if a in streams and a in self.alike)

    # --- rules and local arrays ---------------------------------------------------------------

    def _read(self, layout: Layout) -> dict[str, Rule]:
        return {axis: self.rule(axis, table) for axis, table in self.geometry.tables(layout).items()}

    def rule(self, axis: str, table: tuple[Owners, ...]) -> Rule:
        """Owners as `owners` numbers them; along the axis of the stages they become stages."""
        if axis == self.uses_axis:
            table = tuple(tuple(self._stages[c] for c in row) for row in table)
        return self._rules.setdefault((axis, table), Rule(axis, table))

    def owner(self, rule: Rule, x: int) -> Owners:
        """Owner of each element along the rule's axis, as device x's stage has it."""
        return rule.table[self.variant[x] if len(rule.table) == 2 else 0]

    def local(self, rules: Iterable[Rule]) -> list[Local]:
        """Per device, the elements that every rule gives to it, in order; nothing outside the holders. Equal local
        arrays are the same object, and equal questions have the same answer."""
        key = frozenset(rules)
        known = self._locals.get(key)
        if known is None:
            order = tuple(key)
            shards = {v: self._shards(order, self.variant.index(v)) for v in set(self.variant)}
            at = zip(*(self.grid.coordinate[rule.axis] for rule in order)) if order else [()] * self.grid.count
            known = self._locals[key] = [
                shards[self.variant[x]].get(here, ()) if self.holder[x] else () for x, here in enumerate(at)
            ]
        return known

    def _shards(self, rules: tuple[Rule, ...], x: int) -> dict[tuple[int, ...], Local]:
        if not rules:
            return {(): tuple(range(self.count))}
        found: dict[tuple[int, ...], list[int]] = {}
        for element, at in enumerate(zip(*(self.owner(rule, x) for rule in rules))):
            found.setdefault(at, []).append(element)
        return {at: tuple(elements) for at, elements in found.items()}

    def groups(self, axes: Axes) -> list[list[int]]:
        """Process groups along `axes`, among the devices that hold these weights."""
        known = self._groups.get(axes)
        if known is None:
            known = self.grid.groups(axes)
            if len(self.holders) != self.grid.count:
                known = [kept for group in known if (kept := [x for x in group if self.holder[x]])]
            self._groups[axes] = known
        return known

    def sources(self, x: int, rules: Iterable[Rule]) -> list[int]:
        """For every element the device that holds it, seen from x: along each rule's axis its owner."""
        found = [x] * self.count
        # The stage first: it decides how a flat buffer is laid out.
        for rule in sorted(rules, key=lambda rule: rule.axis != self.uses_axis) if self.shifted else rules:
            at, stride = self.grid.coordinate[rule.axis], self.grid.stride[rule.axis]
            if len(rule.table) == 2:
                found = [y + (rule.table[self.variant[y]][e] - at[y]) * stride for e, y in enumerate(found)]
            else:
                found = [y + (owner - at[y]) * stride for owner, y in zip(rule.table[0], found)]
        return found

    def places(self, wanted: Held, held: Held) -> list[Places]:
        """Per device, where each wanted element is in its array. Equal questions have the same answer."""
        known = self._places.get((id(wanted), id(held)))
        if known is None:
            rows: dict[tuple[int, int], Places] = {}
            found = []
            for mine, array in zip(wanted, held):
                row = rows.get((id(mine), id(array)))
                if row is None:
                    at = {e: place for place, e in enumerate(array)}
                    row = rows[id(mine), id(array)] = tuple(at.get(e, NOWHERE) for e in mine)
                found.append(row)
            # What the key is made of is kept, so that it stays the key of nothing else.
            known = self._places[id(wanted), id(held)] = wanted, held, found
        return known[2]

    def table(self, rules: Sequence[Rule], wanted: Held, held: Held, otherwise: bool) -> Table:
        """Where each wanted element is when pieces are put together: at its owner along the axes of the rules, if that
        has it; `otherwise` the own one."""
        key = tuple(rules), id(wanted), id(held), otherwise
        known = self._tables.get(key)
        if known is None:
            at = {array: {e: place for place, e in enumerate(array)} for array in set(held)}
            found: list[Sequence[tuple[int, int]]] = [()] * self.grid.count
            for members in self.groups(tuple(dict.fromkeys(rule.axis for rule in rules))):
                rows: dict[tuple[int, Local], list[tuple[int, int]]] = {}
                for x in members:
                    row = rows.get((self.variant[x], wanted[x]))
                    if row is None or otherwise:
                        sources = self.sources(x, rules)
                        row = []
                        for e in wanted[x]:
                            y = sources[e]
                            if otherwise and e not in at[held[y]]:
                                y = x
                            row.append((y, at[held[y]].get(e, NOWHERE)))
                        rows[self.variant[x], wanted[x]] = row
                    found[x] = row
            known = self._tables[key] = wanted, held, found
        return known[2]

    def scattered(self, axes: Axes) -> list[Rule]:
        """Which shard is a device's own when a whole buffer is reduce-scattered over `axes`."""
        rules, bare = [], []
        for axis in axes:
            rule = self.optimizer_rule.get(axis) or self.params_rule.get(axis)
            if rule is not None:
                rules.append(rule)
            else:
                bare.append(axis)
        if bare:
            found = self.geometry.dealt(tuple(bare))
            rules += [self.rule(axis, (found[axis],)) for axis in bare]
        return rules

    def updates(self, usable: Held) -> list[Local]:
        """Per device, the elements it updates: it holds state, gradient (`usable`) and parameter."""
        known = self._updates.get(id(usable))
        if known is None:
            rows: dict[tuple[Local, Local, Local], Local] = {}
            found = []
            for gradient, moments, params in zip(usable, self.optimizer_local, self.params_local):
                row = rows.get((gradient, moments, params))
                if row is None:
                    both = set(moments) if self.materialized else set(moments).intersection(params)
                    row = rows[gradient, moments, params] = tuple(e for e in gradient if e in both)
                found.append(row)
            known = self._updates[id(usable)] = usable, found
        return known[1]

    def draws(self) -> list[list[tuple[int, tuple[int, ...]]]]:
        """What the single device starts from: per element, the `init` lines that drew it, and where: its owner along cut
        axes, coordinate 0 along others, or what was broadcast along them (along a cut axis a broadcast only
        destroys). Line -1 is the seed that all devices share."""
        grid = self.grid
        stage = next(iter(self.members.values()))
        base = stage * grid.stride[self.uses_axis] if self.uses_axis is not None else 0
        found = []
        for x in self.sources(base, self.params_rule.values()):
            at = {axis: grid.coordinate[axis][x] for axis in grid.axes}
            drawn: list[tuple[int, tuple[int, ...]]] = [(-1, ())]
            # Backwards: what a broadcast brought was drawn where its root is.
            for line, op in reversed(list(enumerate(self.weights.init))):
                if op.kind == "broadcast":
                    members = self.groups(op.axes)[0]
                    root = members[min(op.root, len(members) - 1)]
                    at.update({a: grid.coordinate[a][root] for a in op.axes if a not in self.params_rule})
                else:
                    drawn.append((line, tuple(at[a] for a in op.axes)))
            found.append(drawn)
        return found
