"""The parameters, host copies, master copies and moments of this rank, and how they start."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from placelogic.program.catalog import Needs
from placelogic.program.program import Axes
from placelogic.replay import optimizers
from placelogic.replay.buffers import Buffer, exchange, positions
from placelogic.replay.comms import Comms, padded
from placelogic.replay.data import normal
from placelogic.replay.group import Group, Rule
from placelogic.run.stop import GroupStop


class State:
    """Numbers of one group. `theta`: the compute copy; `host`: what an update writes where states lie on
    the host; `master`: the master copy. `single`: what the single device holds."""

    def __init__(self, group: Group, comms: Comms, seed: int) -> None:
        self.group = group
        self.comms = comms
        self._seed = seed
        x = comms.rank
        self.single = self._single_start()
        self.single_moments = optimizers.zeros(group.count)
        self.theta = self._start()
        self.host = self.theta.clone()
        self.moments = optimizers.zeros(len(group.optimizer_local[x]))
        self.master: torch.Tensor | None = None
        if group.weights.master:
            self.master = self.single[group.optimizer_local[x]].clone()
            self._overwrite(self.master, group.optimizer_local[x], self.theta, group.params_local[x])
        self.restricted: dict[str, Rule] = {}
        self.updated: torch.Tensor | None = None

    # --- start -----------------------------------------------------------------------------------

    def _draw(self, line: int, key: tuple[int, ...]) -> torch.Tensor:
        """What one `init` line adds to every element; line -1 is the seed that all devices share."""
        return 0.7 * normal((self._seed, "init", self.group.number, line, key), self.group.count)

    def _start(self) -> torch.Tensor:
        group, x = self.group, self.comms.rank
        array = self._draw(-1, ())[group.params_local[x]]
        for line, op in enumerate(group.weights.init):
            if op.kind == "broadcast":
                try:
                    array = broadcasted(group, self.comms, array, op.axes, op.root)
                except GroupStop as stop:
                    group.stop = group.stop or str(stop)
                continue
            key = tuple(group.grid.coordinate[a][x] for a in op.axes)
            array = array + self._draw(line, key)[group.params_local[x]]
        return array

    def _single_start(self) -> torch.Tensor:
        """Each element's owner along cut axes, coordinate 0 along others, or what was broadcast there."""
        group, grid = self.group, self.group.grid
        stage = next(iter(group.members.values()))
        base = stage * grid.stride[group.uses_axis] if group.uses_axis is not None else 0
        source = group.sources(base, group.params_rule.values())
        coordinate = {a: torch.tensor(grid.coordinate[a]) for a in grid.axes}
        value = self._draw(-1, ())
        at = {a: coordinate[a][source] for a in grid.axes}
        # Backwards: what a broadcast brought was drawn where its root is.
        for line, op in reversed(list(enumerate(group.weights.init))):
            if op.kind == "broadcast":
                members = group.groups(op.axes)[0]
                root = members[min(op.root, len(members) - 1)]
                for a in op.axes:
                    if a not in group.params_rule:
                        at[a] = torch.full_like(source, grid.coordinate[a][root])
                continue
            keys = torch.stack([at[a] for a in op.axes], 1) if op.axes else torch.zeros(group.count, 0)
            for key in {tuple(int(c) for c in row) for row in keys.tolist()}:
                here = (keys == torch.tensor(key)).all(1)
                value = torch.where(here, value + self._draw(line, key), value)
        return value

    def settle(self) -> None:
        """Take the single device's values, so that other groups can be judged."""
        group, x = self.group, self.comms.rank
        self.theta = self.single[group.params_local[x]].clone()
        self.host = self.theta.clone()
        self.moments = {n: m[group.optimizer_local[x]].clone() for n, m in self.single_moments.items()}
        if self.master is not None:
            self.master = self.single[group.optimizer_local[x]].clone()

    # --- the compute copy --------------------------------------------------------------------------

    def computed(self) -> torch.Tensor:
        """The values this rank computes with, after what is gathered on use."""
        group = self.group
        rules = [group.params_rule[a] for a in group.unsharded if group.grid.size[a] > 1]
        if not rules:
            return self.theta
        wanted = group.computed_local
        x = self.comms.rank
        otherwise = torch.zeros(len(wanted[x]))
        with self.comms.log.purpose("params"):
            return exchange(group, self.comms, rules, group.params_local, self.theta, wanted, otherwise)

    def refresh(self) -> None:
        """Compute copy <- master copy, where the master lies."""
        if self.master is None:
            return
        group, x = self.group, self.comms.rank
        target = self.host if group.hosted else self.theta
        self._overwrite(target, group.params_local[x], self.master, group.optimizer_local[x])

    def fetch(self) -> None:
        """Device copy <- host copy, of what this device keeps on the host."""
        if self.group.hosted:
            group, x = self.group, self.comms.rank
            mine = torch.isin(group.params_local[x], group.optimizer_local[x])
            self.theta = torch.where(mine, self.host, self.theta)

    def gather(self, axes: Axes) -> None:
        """Each element of the compute copy from whoever updates it along these axes."""
        group = self.group
        rules = []
        for axis in axes:
            if group.grid.size[axis] == 1 or axis in group.params_rule:
                continue
            rule = group.optimizer_rule.get(axis) or group.gradients_rule.get(axis) or self.restricted.get(axis)
            if rule is not None:
                rules.append(rule)
        if rules:
            local = group.params_local
            with self.comms.log.purpose("params"):
                self.theta = exchange(group, self.comms, rules, local, self.theta, local, self.theta)

    def broadcast(self, axes: Axes, root: int) -> None:
        shapes = self.group.params_local
        for members in self.group.groups(axes):
            if root < len(members) and any(not torch.equal(shapes[x], shapes[members[root]]) for x in members):
                raise GroupStop("the root of a broadcast does not hold what others would take from it")
        with self.comms.log.purpose("params"):
            self.theta = broadcasted(self.group, self.comms, self.theta, axes, root)

    def _overwrite(
        self, target: torch.Tensor, shape: torch.Tensor, source: torch.Tensor, source_shape: torch.Tensor
    ) -> None:
        """In place: elements that both have."""
        at = positions(self.group, source_shape)[shape]
        here = at >= 0
        target[here] = source[at[here]]

    # --- update --------------------------------------------------------------------------------------

    def plan(self, buffer: Buffer) -> list[torch.Tensor]:
        """Per device, the elements it updates: it holds state, gradient and parameter."""
        group = self.group
        found = []
        for usable, moments, params in zip(buffer.usable, group.optimizer_local, group.params_local):
            mine = usable[torch.isin(usable, moments)]
            found.append(mine if group.materialized else mine[torch.isin(mine, params)])
        return found

    def fed(self, buffer: Buffer) -> tuple[torch.Tensor, torch.Tensor]:
        """The elements that this rank updates, and their gradients."""
        x = self.comms.rank
        mine = self.plan(buffer)[x]
        return mine, buffer.summed()[positions(self.group, buffer.local[x])[mine]]

    def update(self, buffer: Buffer, name: str, calm: float = 1.0) -> None:
        """One optimizer step on what this rank updates, its gradient divided by `calm`."""
        group, x = self.group, self.comms.rank
        mine, gradient = self.fed(buffer)
        gradient = gradient / calm
        self.updated = mine
        if self.master is not None:
            target, shape = self.master, group.optimizer_local[x]
        else:
            target, shape = (self.host if group.hosted else self.theta), group.params_local[x]
        cut = {*group.optimizer_rule, *group.params_rule}
        over = tuple(axis for axis in group.grid.axes if axis in buffer.gathered and axis in cut)
        needs = group.weights.optimizer.needs
        comm = self.comms.among(group.groups(over)) if over and needs is not Needs.ELEMENT else None
        if len(mine) or comm is not None:
            column, row = positions(group, shape)[mine], positions(group, group.optimizer_local[x])[mine]
            old = {n: m[row] for n, m in self.moments.items()}
            theta, new = optimizers.stepped(name, needs, group.shape, mine, gradient, target[column], old, comm)
            target[column] = theta
            for key, values in new.items():
                self.moments[key][row] = values
        for rule in (*buffer.valid, *buffer.room.values()):
            self.restricted.setdefault(rule.axis, rule)
        if group.materialized:
            # Nothing is kept: whoever holds the master computes from its new value.
            self.refresh()
        reached = torch.zeros(group.count, dtype=torch.bool)
        for elements in self.plan(buffer):
            reached[elements] = True
        if not bool(reached.all()):
            lost = int((~reached).nonzero()[0])
            raise GroupStop(f"no device updates element {lost}")


def broadcasted(group: Group, comms: Comms, array: torch.Tensor, axes: Axes, root: int) -> torch.Tensor:
    """Everyone takes the root's array, position by position. Root counts among the holders."""
    groups = group.groups(axes)
    if any(root >= len(members) for members in groups):
        few = min(len(members) for members in groups)
        raise GroupStop(f"broadcast from {root}: there are only {few} devices along {'*'.join(axes)}")
    comm = comms.among(groups)
    if comm is None or comm.size == 1:
        return array
    local: Sequence[torch.Tensor] = group.params_local
    length = max(len(local[y]) for y in comm.members)
    source = comm.broadcast(padded(array, length), root)
    size = len(local[comm.members[root]])
    return torch.cat([source[: min(size, len(array))], array[size:]])
