"""One weight group on the mesh: who holds which elements, and how its gradient is computed.

Everything here is about layouts and known to every rank; numbers are elsewhere (state.py, buffers.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch

from placelogic.program.program import Axes, Layout, Weights
from placelogic.replay.shape import Shape, Sizes
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop


class Elements(Protocol):
    """The elements of a group: how many, which tensor and block each is of, and who holds it (shape.py)."""

    count: int
    tensor: torch.Tensor
    block: torch.Tensor

    def tables(self, layout: Layout) -> dict[str, tuple[torch.Tensor, ...]]: ...

    def dealt(self, axes: Axes) -> dict[str, torch.Tensor]: ...


Tensors = Callable[[Weights, Sizes, bool], Elements]


class Rule:
    """Which coordinate along `axis` holds each element; a second table for the last stage of tied weights."""

    __slots__ = ("axis", "tables")

    def __init__(self, axis: str, tables: tuple[torch.Tensor, ...]) -> None:
        self.axis = axis
        self.tables = tables


class Group:
    """Layouts of one weight group on every device of the mesh."""

    def __init__(
        self, number: int, weights: Weights, grid: Grid, split: Axes, tensors: Tensors | None = None, kept: Axes = ()
    ) -> None:
        """`tensors`: those of the operations that use the weights; None: of a small model of its own. `kept`:
        axes along which each device keeps only its own piece of the gradient that reaches these weights."""
        self.number = number
        self.weights = weights
        self.name = weights.name
        self.grid = grid
        self.split = split
        self.kept = kept
        self.stop: str | None = None
        self._place_uses()
        self.shape = (tensors or Shape)(weights, self._size, self.shifted)
        self.count = self.shape.count
        self._rules: list[Rule] = []
        self._locals: dict[frozenset[Rule], list[torch.Tensor]] = {}
        self.params_rule = self._read(weights.params)
        self.optimizer_rule = self._read(weights.optimizer_state)
        self.gradients_rule = self._read(weights.gradients)
        self.params_local = self.local(self.params_rule.values())
        self.optimizer_local = self.local(self.optimizer_rule.values())
        self._how_computed()
        self.hosted = weights.params.host is not None or weights.optimizer_state.host is not None
        self.materialized = weights.params.materialized is not None

    def _place_uses(self) -> None:
        """`members`: use (0 first stage, 1 last stage) -> its stage."""
        uses, grid = self.weights.uses, self.grid
        self.variant = [0] * grid.count
        self.shifted = False
        self.members: dict[int, int] = {0: 0}
        self.holder = [True] * grid.count
        self.uses_axis = uses.axis if uses is not None else None
        if uses is not None:
            last = 0 if uses.vee else grid.size[uses.axis] - 1
            self.members = ({0: 0} if uses.first else {}) | ({1: last} if uses.last else {})
            at = grid.coordinate[uses.axis]
            self.holder = [c in self.members.values() for c in at]
            if len(set(self.members.values())) == 2:
                self.shifted = True
                self.variant = [int(c == last) for c in at]
        self.holders = [x for x in range(grid.count) if self.holder[x]]
        self._stages = sorted(set(self.members.values()))
        # Along the axis of its stages a group is shared out among those who have it.
        self._size = {a: len(self._stages) if a == self.uses_axis else n for a, n in grid.size.items()}

    def _how_computed(self) -> None:
        grid, w = self.grid, self.weights
        cut = [a for cut in w.params.cuts if cut.letter == "S" for a in cut.axes]
        self.routed = tuple(a for a in cut if a in w.routed)
        own = [a for a in cut if a not in self.routed and a not in self.split and a != self.uses_axis]
        self.own_room = {a: self.params_rule[a] for a in own}
        self.routed_room = {a: self.params_rule[a] for a in self.routed}
        # Activations cut along rows (tokens) or columns (heads, hidden, vocabulary).
        parts = {
            a: "columns" if cut.dim in ("heads", "hidden", "vocab") else "rows"
            for cut in w.activations.cuts
            if cut.letter == "S"
            for a in cut.axes
            if a not in self.split and a not in self.own_room and a != self.uses_axis
        }
        parts |= {a: "rows" for a in self.kept if a not in (*self.split, *self.own_room, self.uses_axis)}
        self.row_parts = tuple(a for a in grid.axes if parts.get(a) == "rows")
        self.column_parts = tuple(a for a in grid.axes if parts.get(a) == "columns")
        self.computed_rules = (*self.own_room.values(), *self.routed_room.values())
        self.computed_local = self.local(self.computed_rules)
        self.unsharded = tuple(a for a in self.params_rule if a not in self.own_room and a not in self.routed_room)
        # Along these every device of a group computes the very same thing.
        self.alike = frozenset(
            a
            for a in grid.axes
            if a not in self.split and a not in parts and a != self.uses_axis and a not in self.own_room
        )
        streams = [r.axis for r in w.random if r.kind == "different" and grid.size[r.axis] > 1]
        self.noisy = tuple(a for a in grid.axes if a in streams and a in self.alike)

    # --- rules and local arrays ---------------------------------------------------------------

    def _read(self, layout: Layout) -> dict[str, Rule]:
        return {axis: self.rule(axis, tables) for axis, tables in self.shape.tables(layout).items()}

    def rule(self, axis: str, tables: tuple[torch.Tensor, ...]) -> Rule:
        """Equal rules are one object. Along the axis of its stages, owners are stages."""
        if axis == self.uses_axis:
            stages = torch.tensor(self._stages)
            tables = tuple(stages[table] for table in tables)
        for known in self._rules:
            if known.axis == axis and len(known.tables) == len(tables):
                if all(torch.equal(a, b) for a, b in zip(known.tables, tables)):
                    return known
        self._rules.append(Rule(axis, tables))
        return self._rules[-1]

    def owner(self, rule: Rule, x: int) -> torch.Tensor:
        """The owner of each element along the rule's axis, as device x's stage has it."""
        return rule.tables[self.variant[x] if len(rule.tables) == 2 else 0]

    def local(self, rules: Iterable[Rule]) -> list[torch.Tensor]:
        """Per device, the elements that every rule gives to it, in order; none outside the holders."""
        key = frozenset(rules)
        known = self._locals.get(key)
        if known is None:
            known = []
            for x in range(self.grid.count):
                mask = torch.full((self.count,), self.holder[x])
                for rule in key:
                    mask &= self.owner(rule, x) == self.grid.coordinate[rule.axis][x]
                known.append(mask.nonzero().squeeze(1))
            self._locals[key] = known
        return known

    def groups(self, axes: Iterable[str]) -> list[list[int]]:
        """Process groups along `axes`, among the devices that hold these weights."""
        found = self.grid.groups(tuple(axes))
        return [kept for group in found if (kept := [x for x in group if self.holder[x]])]

    def sources(self, x: int, rules: Iterable[Rule]) -> torch.Tensor:
        """For every element the device that holds it, seen from x: along each rule's axis its owner."""
        at = torch.full((self.count,), x)
        variant = torch.full((self.count,), self.variant[x])
        for rule in sorted(rules, key=lambda rule: rule.axis != self.uses_axis):
            # The stage first: it decides how a flat buffer is laid out.
            table = rule.tables[0]
            if len(rule.tables) == 2:
                table = torch.where(variant == 1, rule.tables[1], rule.tables[0])
            at = at + (table - self.grid.coordinate[rule.axis][x]) * self.grid.stride[rule.axis]
            if rule.axis == self.uses_axis:
                variant = torch.tensor(self.variant)[at]
        return at

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
            found = self.shape.dealt(tuple(bare))
            rules += [self.rule(axis, (found[axis],)) for axis in bare]
        return rules

    def check(self, clipped: bool, microbatches: int, gathered: frozenset[str], tied: bool, skips: bool) -> None:
        """Raises GroupStop where no run is needed to know. `gathered`: axes the step gathers params over. `tied`:
        two operations of layers use one table. `skips`: whether the update comes is decided before it."""
        w, size = self.weights, self._size
        for axis in (axis for cut in w.params.cuts if cut.letter == "S" for axis in cut.axes):
            if size[axis] == 1 or axis in self.routed or axis == self.uses_axis:
                continue
            if axis in self.split:
                raise GroupStop(f"each device along {axis} works on its own data with a shard of the parameters")
            if self.weights.params.cut(axis).dim == "flat":  # type: ignore[union-attr]
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
            if skips:
                raise GroupStop("gradients are not kept, and whether to skip the update depends on all of them")
            if tied or (w.uses is not None and w.uses.first and w.uses.last):
                raise GroupStop("gradients are not kept, and the weights are used twice in a backward pass")
