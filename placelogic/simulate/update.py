"""The optimizer on every device: whoever holds state, gradient and parameter of an element."""

from __future__ import annotations

from placelogic.simulate.buffers import Buffer
from placelogic.simulate.elements import COUNT
from placelogic.simulate.group import Local
from placelogic.simulate.optimizer import stepped
from placelogic.simulate.state import State

Plan = tuple[tuple[int, int, int, int], ...]
"""element, position in the gradient, in the optimizer state, in the parameters."""


def plans(state: State, buffer: Buffer) -> list[Plan]:
    """Per device, what it updates."""
    group = state.group
    local, usable = buffer.local, buffer.usable
    known: dict[tuple[Local, ...], Plan] = {}
    found: list[Plan] = []
    for x in range(group.grid.count):
        key = local[x], usable[x], group.optimizer_local[x], group.params_local[x]
        plan = known.get(key)
        if plan is None:
            gradient, valid, moments, params = key
            plan = known[key] = tuple(
                (e, gradient.index(e), moments.index(e), params.index(e) if e in params else -1)
                for e in valid
                if e in moments and (e in params or group.materialized)
            )
        found.append(plan)
    return found


def _seen(state: State, buffer: Buffer, x: int) -> dict[int, int] | None:
    """The gradient that an optimizer reads beside that of what it updates; None: nothing. Where a step gathers
    gradients for an update that looks across elements, it gathers all that this reads."""
    group = state.group
    rules = (*group.optimizer_rule.values(), *group.params_rule.values())
    if not any(rule.axis in buffer.gathered for rule in rules):
        return None
    mine = set(group.local([rule for rule in rules if rule.axis not in buffer.gathered])[x])
    valid = set(buffer.usable[x])
    return {e: g for e, g in zip(buffer.local[x], buffer.layers[0][x]) if e in mine and e in valid}


def update(state: State, buffer: Buffer) -> None:
    """One optimizer step. Writes the master where there is one, else the host copy where states
    lie on the host, else the compute copy."""
    group = state.group
    needs = group.weights.optimizer.needs
    gradients = buffer.layers[0]
    target = state.master if state.master is not None else state.host if group.hosted else state.theta
    done: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    reached: set[int] = set()
    old_target, old_omega = list(target), list(state.omega)
    rows = plans(state, buffer)
    state.updated = [tuple(e for e, _, _, _ in plan) for plan in rows]
    for x, plan in enumerate(rows):
        if not plan:
            continue
        gradient, theta, omega = gradients[x], old_target[x], old_omega[x]
        key = id(gradient), id(theta), id(omega), id(plan), x if buffer.gathered else 0
        known = done.get(key)
        if known is None:
            reached.update(e for e, _, _, _ in plan)
            column = 3 if state.master is None else 2
            moved, moments = stepped(
                needs,
                [e for e, _, _, _ in plan],
                [gradient[g] for _, g, _, _ in plan],
                [theta[row[column]] for row in plan],
                [omega[o] for _, _, o, _ in plan],
                _seen(state, buffer, x),
            )
            theta, omega = list(theta), list(omega)
            for row, t, o in zip(plan, moved, moments):
                theta[row[column]] = t
                omega[row[2]] = o
            known = done[key] = theta, omega
        target[x], state.omega[x] = known
    for rule in (*buffer.valid, *buffer.room.values()):
        state.restricted.setdefault(rule.axis, rule)
    if group.materialized:
        # Nothing is kept: whoever holds the master computes from its new value.
        state.refresh()
    if group.stop is None and len(reached) < COUNT:
        lost = next(e for e in range(COUNT) if e not in reached)
        group.stop = f"no device updates element {lost}"
