"""One weight group on the mesh: who holds what, and the numbers held."""

from __future__ import annotations

from placelogic.program.program import Axes, Layout, Weights
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop
from placelogic.simulate.elements import COUNT, Geometry

Local = tuple[int, ...]
"""The elements in a device's local array, by position."""


class Rule:
    """Which coordinate along `axis` holds each element. Equal rules are the same object.

    `table` has one owner list, or a second one for the last stage of tied weights."""

    __slots__ = ("axis", "table")

    def __init__(self, axis: str, table: tuple[tuple[int, ...], ...]) -> None:
        self.axis = axis
        self.table = table


class Group:
    """Geometry and state of one weight group; arrays are never changed in place, so devices
    that hold the same numbers may share them. `kept`: axes along which each device keeps only its own piece of
    the gradient that reaches these weights."""

    def __init__(self, number: int, weights: Weights, grid: Grid, split: Axes, kept: Axes = ()) -> None:
        self.number = number
        self.weights = weights
        self.name = weights.name
        self.grid = grid
        self.split = split
        self.kept = kept
        self.stop: str | None = None
        self._place_uses()
        self._geometry = geometry = Geometry(weights, self._sizes, self.shifted)
        self._rules: dict[tuple[str, tuple[tuple[int, ...], ...]], Rule] = {}
        self._locals: dict[frozenset[Rule], list[Local]] = {}
        self._groups: dict[Axes, list[list[int]]] = {}
        self.params_rule = self._read(geometry, weights.params)
        self.optimizer_rule = self._read(geometry, weights.optimizer_state)
        self.gradients_rule = self._read(geometry, weights.gradients)
        self.params_local = self.local(self.params_rule.values())
        self.optimizer_local = self.local(self.optimizer_rule.values())
        self._how_computed()
        hosts = weights.params.host, weights.optimizer_state.host
        self.hosted = any(host is not None for host in hosts)
        self.materialized = weights.params.materialized is not None

    def _place_uses(self) -> None:
        """`uses`: 0 is the first stage's use, 1 the last stage's. `members`: per use, its stage."""
        uses, grid = self.weights.uses, self.grid
        self.variant = [0] * grid.count
        self.shifted = False
        self.members: dict[int, int] = {0: 0}
        self.holder = [True] * grid.count
        if uses is not None:
            last = 0 if uses.vee else grid.size[uses.axis] - 1
            self.members = ({0: 0} if uses.first else {}) | ({1: last} if uses.last else {})
            at = grid.coordinate[uses.axis]
            self.holder = [c in self.members.values() for c in at]
            if len(set(self.members.values())) == 2:
                self.shifted = True
                self.variant = [int(c == last) for c in at]
        self.holders = [x for x in range(grid.count) if self.holder[x]]
        self.uses_axis = uses.axis if uses is not None else None
        self._stages = sorted(set(self.members.values()))
        # Along the axis of its stages a group is shared out among those who have it.
        self._sizes = tuple((a, len(self._stages) if a == self.uses_axis else n) for a, n in grid.size.items())

    def _how_computed(self) -> None:
        """Along which axes the backward pass leaves what; see the methods that use these."""
        grid, w = self.grid, self.weights
        self.routed = tuple(
            cut_axis for cut in w.params.cuts if cut.letter == "S" for cut_axis in cut.axes if cut_axis in w.routed
        )
        together = [a for cut in w.params.cuts if cut.letter == "S" for a in cut.axes if a not in self.routed]
        self.own_room = {a: self.params_rule[a] for a in together if a not in self.split and a != self.uses_axis}
        self.routed_room = {a: self.params_rule[a] for a in self.routed}
        cut_activations = [a for cut in w.activations.cuts if cut.letter == "S" for a in cut.axes]
        self.parts = tuple(
            a
            for a in grid.axes
            # Along the stages of these weights each use is computed whole, where it is.
            if (a in cut_activations or a in self.kept)
            and a not in self.split
            and a not in self.own_room
            and a != self.uses_axis
        )
        self.computed_local = self.local(self.own_room.values())
        # Along these every device of a group computes the very same thing.
        self.alike = frozenset(
            a
            for a in grid.axes
            if a not in self.split and a not in self.parts and a != self.uses_axis and a not in self.own_room
        )
        streams = [r.axis for r in w.random if r.kind == "different" and grid.size[r.axis] > 1]
        self.noisy = tuple(a for a in grid.axes if a in streams and a in self.alike)

    # --- rules and local arrays ---------------------------------------------------------------

    def _read(self, geometry: Geometry, layout: Layout) -> dict[str, Rule]:
        return {axis: self.rule(axis, table) for axis, table in geometry.tables(layout).items()}

    def rule(self, axis: str, table: tuple[tuple[int, ...], ...]) -> Rule:
        """Owners as `owners` numbers them; along the axis of the stages they become stages."""
        if axis == self.uses_axis:
            table = tuple(tuple(self._stages[c] for c in row) for row in table)
        return self._rules.setdefault((axis, table), Rule(axis, table))

    def owner(self, rule: Rule, x: int) -> tuple[int, ...]:
        """Owner of each element along the rule's axis, as device x's stage has it."""
        return rule.table[self.variant[x] if len(rule.table) == 2 else 0]

    def local(self, rules) -> list[Local]:  # type: ignore[no-untyped-def]
        """Per device, the elements that every rule gives to it; nothing outside the holders."""
        key = frozenset(rules)
        known = self._locals.get(key)
        if known is None:
            shapes: dict[tuple[int, ...], Local] = {}
            known = []
            columns = [self.grid.coordinate[rule.axis] for rule in key]
            at = list(zip(*columns)) if columns else [()] * self.grid.count
            mine: dict[tuple[Rule, int], dict[int, list[int]]] = {}
            for x in range(self.grid.count):
                if not self.holder[x]:
                    known.append(())
                    continue
                shape = (self.variant[x], *at[x])
                if shape not in shapes:
                    left = list(range(COUNT))
                    for rule, coordinate in zip(key, at[x]):
                        shards = mine.get((rule, shape[0]))
                        if shards is None:
                            shards = mine[rule, shape[0]] = _shards(self.owner(rule, x))
                        own = shards.get(coordinate, ())
                        left = [e for e in left if e in own]
                    shapes[shape] = tuple(left)
                known.append(shapes[shape])
            self._locals[key] = known
        return known

    def groups(self, axes: Axes) -> list[list[int]]:
        """Process groups along `axes`, among the devices that hold these weights."""
        known = self._groups.get(axes)
        if known is None:
            known = self.grid.groups(axes)
            if len(self.holders) != self.grid.count:
                known = [kept for group in known if (kept := [x for x in group if self.holder[x]])]
            self._groups[axes] = known
        return known

    def moved(self, x: int, rules, element: int) -> int:  # type: ignore[no-untyped-def]
        """The device that holds the element, seen from x: along each rule's axis its owner."""
        if self.shifted:
            # The stage first: it decides how a flat buffer is laid out.
            rules = sorted(rules, key=lambda rule: rule.axis != self.uses_axis)
        for rule in rules:
            step = self.owner(rule, x)[element] - self.grid.coordinate[rule.axis][x]
            x += step * self.grid.stride[rule.axis]
        return x

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
            found = self._geometry.dealt(tuple(bare))
            rules += [self.rule(axis, (found[axis],)) for axis in bare]
        return rules

    def check_static(
        self, clipped: bool, skipping: bool, microbatches: int, gathered: frozenset[str], passes: int
    ) -> None:
        """Stops that no run is needed for. `gathered`: axes over which the step gathers params. `skipping`: it
        decides about the update before it comes. `passes`: how often a device comes by one element in its backward
        pass, as far as the operations of layers say."""
        w, size = self.weights, dict(self._sizes)
        for cut in w.params.cuts:
            if cut.letter != "S":
                continue
            for axis in cut.axes:
                if size[axis] == 1 or axis in self.routed or axis == self.uses_axis:
                    continue
                if axis in self.split:
                    raise GroupStop(f"each device along {axis} works on its own data with a shard of the parameters")
                if cut.dim == "flat":
                    raise GroupStop(f"a flat shard along {axis} is no tensor to compute with")
        if self.materialized:
            if not w.master:
                raise GroupStop("materialized parameters have no master copy to be recomputed from")
            for axis in self.optimizer_rule:
                if size[axis] > 1 and axis not in self.params_rule and axis not in gathered:
                    raise GroupStop(f"the master copy is cut along {axis} and nothing gathers what it gives")
        if w.frozen:
            return
        if w.optimizer_state.materialized is not None:
            raise GroupStop("optimizer state cannot be recomputed")
        if w.gradients.materialized is not None:
            if microbatches > 1:
                raise GroupStop("gradients are not kept, and there are several micro-batches")
            if clipped:
                raise GroupStop("gradients are not kept, and the norm needs all of them")
            if skipping:
                raise GroupStop("gradients are not kept, and whether to skip the update depends on all of them")
            if passes > 1 or (w.uses is not None and w.uses.first and w.uses.last):
                raise GroupStop("gradients are not kept, and the weights are used twice in a backward pass")


def _shards(owner: tuple[int, ...]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for element, coordinate in enumerate(owner):
        found.setdefault(coordinate, []).append(element)
    return found
