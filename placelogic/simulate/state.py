"""The parameters, host copies, master copies and moments that devices hold, and their start."""

from __future__ import annotations

from placelogic.program.program import Axes
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.elements import COUNT
from placelogic.simulate.group import Group, Local, Rule


class State:
    """Numbers of one group. `theta` is the compute copy on the device, `host` the copy that
    an update writes where states lie on the host, `master` the master copy; all per device."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.single = started_single(group)
        self.single_omega = [0] * COUNT
        self.theta = started_devices(group)
        self.host = list(self.theta)
        zeros: dict[Local, list[int]] = {local: [0] * len(local) for local in set(group.optimizer_local)}
        self.omega = [zeros[local] for local in group.optimizer_local]
        self.master: list[list[int]] | None = None
        if group.weights.master:
            self.master = [self._copied(x) for x in range(group.grid.count)]
        # Which axes, and by which rule, restricted who updated; filled by the update.
        self.restricted: dict[str, Rule] = {}
        # Per device, the elements it updates; None before the first update.
        self.updated: list[Local] | None = None

    def _copied(self, x: int) -> list[int]:
        """A master starts as a copy of the parameters; where its device holds none, from an owner."""
        group = self.group
        have = dict(zip(group.params_local[x], self.theta[x]))
        return [have[e] if e in have else self.single[e] for e in group.optimizer_local[x]]

    def settle(self, single: list[int], omega: list[int]) -> None:
        """Give every device the single device's values, so that other groups can be judged."""
        group = self.group
        self.theta = [[single[e] for e in local] for local in group.params_local]
        self.host = list(self.theta)
        self.omega = [[omega[e] for e in local] for local in group.optimizer_local]
        if self.master is not None:
            self.master = [[single[e] for e in local] for local in group.optimizer_local]

    # --- moves of the compute copy --------------------------------------------------------------

    def refresh(self) -> None:
        """Compute copy <- master copy, where the master lies."""
        if self.master is None:
            return
        arrays = self.host if self.group.hosted else self.theta
        _overwrite(arrays, self.group.params_local, self.master, self.group.optimizer_local)

    def fetch(self) -> None:
        """Device copy <- host copy, of what this device keeps on the host."""
        if self.group.hosted:
            group = self.group
            kept = [
                [v for e, v in zip(local, array) if e in mine]
                for local, array, mine in zip(group.params_local, self.host, group.optimizer_local)
            ]
            shapes = [
                tuple(e for e in local if e in mine)
                for local, mine in zip(group.params_local, group.optimizer_local)
            ]
            _overwrite(self.theta, group.params_local, kept, shapes)

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
        if not rules:
            return
        ranks = {local: {e: i for i, e in enumerate(local)} for local in set(group.params_local)}
        found = list(self.theta)
        for members in group.groups(tuple(rule.axis for rule in rules)):
            known: dict[tuple[int, Local], list[int]] = {}
            for x in members:
                key = group.variant[x], group.params_local[x]
                if key not in known:
                    array = []
                    for e, own in zip(key[1], self.theta[x]):
                        source = group.moved(x, rules, e)
                        rank = ranks[group.params_local[source]].get(e)
                        array.append(own if rank is None else self.theta[source][rank])
                    known[key] = array
                found[x] = known[key]
        self.theta = found

    def broadcast(self, axes: Axes, root: int) -> None:
        """Everyone takes what the root has of its own elements. Raises GroupStop where it does not have them."""
        shapes = self.group.params_local
        for members in self.group.groups(axes):
            if root < len(members) and any(shapes[x] != shapes[members[root]] for x in members):
                raise GroupStop("the root of a broadcast does not hold what others would take from it")
        self.theta = broadcasted(self.group, self.theta, axes, root)


def _overwrite(
    arrays: list[list[int]], shapes: list[Local], source: list[list[int]], source_shapes: list[Local]
) -> None:
    plans: dict[tuple[Local, Local], list[tuple[int, int]]] = {}
    done: dict[tuple[int, int], list[int]] = {}
    keep = list(arrays)
    for x, array in enumerate(keep):
        shape = shapes[x], source_shapes[x]
        plan = plans.get(shape)
        if plan is None:
            rank = {e: i for i, e in enumerate(shape[0])}
            plan = plans[shape] = [(rank[e], i) for i, e in enumerate(shape[1]) if e in rank]
        if not plan:
            continue
        key = id(array), id(source[x])
        known = done.get(key)
        if known is None:
            known = list(array)
            for here, there in plan:
                known[here] = source[x][there]
            done[key] = known
        arrays[x] = known


def broadcasted(group: Group, arrays: list[list[int]], axes: Axes, root: int) -> list[list[int]]:
    """Everyone takes the root's array, position by position. Root counts among the holders."""
    found = list(arrays)
    for members in group.groups(axes):
        if root >= len(members):
            raise GroupStop(f"broadcast from {root}: there are only {len(members)} devices along {'*'.join(axes)}")
        source = arrays[members[root]]
        for x in members:
            size = len(arrays[x])
            found[x] = source if len(source) == size else source[:size] + arrays[x][len(source) :]
    return found


# --- start ------------------------------------------------------------------------------------


def _draw(group: Group, element: int, line: int, key: tuple[int, ...]) -> int:
    """The random number that one `init` line adds; line -1 is the seed all devices share."""
    return mix(6, group.number, element, line, *key)


def started_devices(group: Group) -> list[list[int]]:
    """Every device's parameters after the `init` lines."""
    made: dict[object, list[int]] = {}
    arrays: list[list[int]] = []
    for local in group.params_local:
        if local not in made:
            made[local] = [_draw(group, e, -1, ()) for e in local]
        arrays.append(made[local])
    for line, op in enumerate(group.weights.init):
        if op.kind == "broadcast":
            try:
                arrays = broadcasted(group, arrays, op.axes, op.root)
            except GroupStop as stop:
                group.stop = group.stop or str(stop)
            continue
        drawn: dict[object, list[int]] = {}
        for x, array in enumerate(arrays):
            local = group.params_local[x]
            key = tuple(group.grid.coordinate[a][x] for a in op.axes)
            if (local, key) not in drawn:
                drawn[local, key] = [_draw(group, e, line, key) for e in local]
            arrays[x] = [(a + b) % PRIME for a, b in zip(array, drawn[local, key])]
    return arrays


def started_single(group: Group) -> list[int]:
    """What one device starts from: each element's owner along cut axes, coordinate 0 along
    others, or what was broadcast along them (along a cut axis a broadcast only destroys)."""
    grid = group.grid
    stage = next(iter(group.members.values()))
    base = stage * grid.stride[group.uses_axis] if group.uses_axis is not None else 0
    found = []
    for e in range(COUNT):
        x = group.moved(base, group.params_rule.values(), e)
        at = {axis: grid.coordinate[axis][x] for axis in grid.axes}
        value = _draw(group, e, -1, ())
        # Backwards: what a broadcast brought was drawn where its root is.
        for line, op in reversed(list(enumerate(group.weights.init))):
            if op.kind == "broadcast":
                members = group.groups(op.axes)[0]
                root = members[min(op.root, len(members) - 1)]
                at.update({a: grid.coordinate[a][root] for a in op.axes if a not in group.params_rule})
            else:
                value += _draw(group, e, line, tuple(at[a] for a in op.axes))
        found.append(value % PRIME)
    return found
