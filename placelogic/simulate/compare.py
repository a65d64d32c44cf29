"""What every device holds against what the single device holds."""

from __future__ import annotations

from collections.abc import Mapping

from placelogic.simulate.arithmetic import PRIME
from placelogic.simulate.buffers import Buffer
from placelogic.simulate.elements import COUNT
from placelogic.simulate.group import Group, Local
from placelogic.simulate.outcome import Difference
from placelogic.simulate.state import State
from placelogic.simulate.update import plans

EXAMPLES = 4
"""Differences kept per group, step and kind."""


def parameters(state: State, step: int) -> list[Difference]:
    """Compute copies, and the master copies of those who update, against the single device."""
    group = state.group
    found = _arrays(state, step, "params", state.theta, group.params_local)
    held: set[int] = set().union(*set(group.params_local))
    for element in range(COUNT):
        if element not in held:
            message = f"no device holds element {element} of `{group.name}`"
            found.append(Difference(group.name, step, "params", None, element, message))
    if state.master is not None and state.updated is not None:
        shapes = [tuple(e for e in local if e in mine) for local, mine in zip(group.optimizer_local, state.updated)]
        arrays = [
            [v for e, v in zip(local, array) if e in mine]
            for local, array, mine in zip(group.optimizer_local, state.master, state.updated)
        ]
        found += _arrays(state, step, "master", arrays, shapes)
    return found


def clipped(state: State, buffer: Buffer | None, complete: Mapping[int, list[int]]) -> list[Difference]:
    """What stands in the buffer when its norm is taken against the single device's gradient."""
    group = state.group
    if buffer is None:
        return [_difference(state, 1, "clip", group.holders[0], 0)]
    expected = complete[group.number]
    local, usable = buffer.local, buffer.usable
    done: set[tuple[object, ...]] = set()
    for x in group.holders:
        key = (*(id(arrays[x]) for arrays in buffer.layers), usable[x])
        if key in done:
            continue
        done.add(key)
        own = usable[x]
        for position, element in enumerate(local[x]):
            total = sum(arrays[x][position] for arrays in buffer.layers)
            if element in own and total % PRIME != expected[element]:
                return [_difference(state, 1, "clip", x, element)]
    return []


def streams(group: Group, step: int, noise: list[int]) -> list[Difference]:
    """Devices that share one computation with frozen weights, and draw other random numbers."""
    other = next((x for x in group.holders if noise[x] != noise[group.holders[0]]), None)
    if other is None:
        return []
    where = group.grid.name(other)
    text = f"({where}) draws other random numbers with `{group.name}` than devices that compute the same"
    return [Difference(group.name, step, "random", group.grid.device(other), None, text)]


def _arrays(state: State, step: int, what: str, arrays: list[list[int]], shapes: list[Local]) -> list[Difference]:
    single = state.single
    right: dict[Local, list[int]] = {}
    found: list[Difference] = []
    for x, (local, array) in enumerate(zip(shapes, arrays)):
        expected = right.get(local)
        if expected is None:
            expected = right[local] = [single[e] for e in local]
        if array != expected:
            wrong = next(e for e, v, w in zip(local, array, expected) if v != w)
            found.append(_difference(state, step, what, x, wrong))
            if len(found) == EXAMPLES:
                break
    return found


def gradients(state: State, buffer: Buffer, step: int, expected: list[int]) -> list[Difference]:
    """What each device feeds the optimizer against the single device's gradient."""
    found: list[Difference] = []
    done: set[tuple[int, int]] = set()
    arrays = buffer.layers[0]
    for x, plan in enumerate(plans(state, buffer)):
        key = id(arrays[x]), id(plan)
        if key in done:
            continue
        wrong = next((e for e, g, _, _ in plan if arrays[x][g] != expected[e]), None)
        if wrong is None:
            done.add(key)
        else:
            found.append(_difference(state, step, "gradient", x, wrong))
            if len(found) == EXAMPLES:
                break
    return found


def _difference(state: State, step: int, what: str, x: int, element: int) -> Difference:
    grid, name = state.group.grid, state.group.name
    where = grid.name(x)
    text = {
        "params": f"after step {step} ({where}) holds another value of element {element} of `{name}`",
        "master": f"after step {step} ({where}) has another master copy of element {element} of `{name}`",
        "clip": f"({where}) takes the norm of another gradient of element {element} of `{name}`",
        "gradient": f"({where}) feeds another gradient of element {element} of `{name}` to the optimizer",
    }[what]
    return Difference(name, step, what, grid.device(x), element, text)
