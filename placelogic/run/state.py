"""The parameters, host copies, master copies and moments that devices hold, and what moves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from placelogic.program.ops import Axes, BroadcastParams, FetchParams, GatherParams, Refresh
from placelogic.run.algebra import A, Arrays, M
from placelogic.run.buffers import Buffer, collected, gathered
from placelogic.run.group import Group, Held, Local, Rule
from placelogic.run.stop import GroupStop


class State(Generic[A, M]):
    """Numbers of one group. `theta`: the compute copy on the device; `host`: the copy that an update writes where
    states lie on the host; `master`: the master copy. Moments lie as the optimizer state does."""

    def __init__(self, group: Group, on: Arrays[A, M], theta: A, host: A, master: A | None, moments: M) -> None:
        self.group = group
        self.on = on
        self.theta = theta
        self.host = host
        self.master = master
        self.moments = moments
        # Which axes, and by which rule, restricted who updated; filled by the update.
        self.restricted: dict[str, Rule] = {}
        # Per device, the elements it updates; None before the first update.
        self.updated: list[Local] | None = None

    def settle(self, alone: Callable[[Held], A], moments: M) -> None:
        """Take what the single device has, so that other groups can be judged. `alone`: its values of these elements."""
        self.theta = self.host = alone(self.group.params_local)
        self.master = alone(self.group.optimizer_local) if self.master is not None else None
        self.moments = moments

    def publish(self, op: GatherParams | BroadcastParams | Refresh | FetchParams, where: str = "") -> None:
        """Moves of the compute copy."""
        match op:
            case GatherParams(axes, _):
                self.gather(axes)
            case BroadcastParams(axes, root, _):
                local = self.group.params_local
                sets = self.group.groups(axes)
                if any(root < len(m) and any(local[x] != local[m[root]] for x in m) for m in sets):
                    raise GroupStop("the root of a broadcast does not hold what others would take from it")
                self.theta = broadcasted(self.group, self.on, self.theta, axes, root, where)
            case Refresh():
                self.refresh()
            case FetchParams():
                self.fetch()

    def refresh(self) -> None:
        """Compute copy <- master copy, where the master lies."""
        if self.master is None:
            return
        group = self.group
        found = self.on.put(
            self.host if group.hosted else self.theta, group.params_local,
            self.master, group.optimizer_local, group.optimizer_local, "refresh",
        )  # fmt: skip
        if group.hosted:
            self.host = found
        else:
            self.theta = found

    def fetch(self) -> None:
        """Device copy <- host copy, of what this device keeps on the host."""
        local = self.group.params_local
        if self.group.hosted:
            self.theta = self.on.put(self.theta, local, self.host, local, self.group.optimizer_local, "fetch params")

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
            self.theta = collected(group, self.on, rules, self.theta, local, local, "gather params over {}", True)

    def target(self) -> tuple[A, Held]:
        """What an update writes, and the elements of that: the master where there is one, else the host copy where
        states lie on the host, else the compute copy."""
        group = self.group
        if self.master is not None:
            return self.master, group.optimizer_local
        return self.host if group.hosted else self.theta, group.params_local

    def update(self, buffer: Buffer[A]) -> None:
        """One optimizer step on what each device updates. Raises GroupStop where an element is left out."""
        group = self.group
        mine = group.updates(buffer.usable)
        target, there = self.target()
        read = gathered(buffer, group.weights.optimizer.gathers)
        over, seen = self._looked_at(buffer, read)
        found, self.moments = self.on.step(target, there, read.layers[0], read.local, self.moments, mine, seen, over)
        if self.master is not None:
            self.master = found
        elif group.hosted:
            self.host = found
        else:
            self.theta = found
        self.updated = mine
        for rule in (*buffer.valid, *buffer.room.values()):
            self.restricted.setdefault(rule.axis, rule)
        if group.materialized:
            # Nothing is kept: whoever holds the master computes from its new value.
            self.refresh()
        reached: set[int] = set().union(*set(mine))
        if len(reached) < group.count:
            lost = next(e for e in range(group.count) if e not in reached)
            raise GroupStop(f"no device updates element {lost}")

    def _looked_at(self, buffer: Buffer[A], read: Buffer[A]) -> tuple[Axes, Held | None]:
        """Axes over which shards are put together for an optimizer that looks across elements, and by device, the elements
        whose gradient it reads there. None: those it updates. Where the step gathers gradients, or the optimizer what it
        needs, that is all that it reads across elements. `read`: the buffer, with what the optimizer has gathered."""
        group, optimizer = self.group, self.group.weights.optimizer
        rules = (*group.optimizer_rule.values(), *group.params_rule.values())
        cut = {rule.axis for rule in rules} & {*buffer.gathered, *optimizer.gathers}
        cut |= {rule.axis for rule in (*buffer.room.values(), *buffer.valid)} & {*optimizer.gathers}
        if group.units is None or not cut:
            return (), None
        mine = group.local([rule for rule in rules if rule.axis not in cut])
        seen = [tuple(e for e in usable if e in own) for usable, own in zip(read.usable, map(set, mine))]
        return tuple(axis for axis in group.grid.axes if axis in cut), seen


def broadcasted(group: Group, on: Arrays[A, M], array: A, axes: Axes, root: int, where: str = "") -> A:
    """Everyone takes the root's array, position by position. Root counts among the holders."""
    few = min(len(members) for members in group.groups(axes))
    if root >= few:
        raise GroupStop(f"broadcast from {root}: there are only {few} devices along {'*'.join(axes)}")
    return on.broadcast(array, group.params_local, axes, root, f"broadcast over {{}} from {root}{where}")


def begun(group: Group, on: Arrays[A, M], alone: Callable[[Held], A]) -> tuple[A, A | None]:
    """Parameters and master copies as training starts. `alone`: what the single device starts from, for these elements."""
    theta, local, there = _drawn(group, on), group.params_local, group.optimizer_local
    # A master starts as a copy of the parameters; where its device holds none, from an owner.
    return theta, on.put(alone(there), there, theta, local, local, "") if group.weights.master else None


def _drawn(group: Group, on: Arrays[A, M]) -> A:
    """Every device's parameters after the `init` lines."""
    local = group.params_local
    array = on.draw(-1, (), local)
    for line, op in enumerate(group.weights.init):
        if op.kind != "broadcast":
            array = on.add(array, on.draw(line, op.axes, local))
            continue
        try:
            array = broadcasted(group, on, array, op.axes, op.root)
        except GroupStop as stop:
            group.stop = group.stop or str(stop)
    return array
