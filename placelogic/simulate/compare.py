"""What every device holds against what the single device holds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from placelogic.program.program import Axes, Program
from placelogic.run.buffers import Buffer
from placelogic.run.events import unskipped
from placelogic.run.group import Group, Held, Local
from placelogic.run.state import State
from placelogic.simulate.elements import COUNT
from placelogic.simulate.exact import Arrays
from placelogic.simulate.outcome import Difference

EXAMPLES = 4
"""Differences kept per group, step and kind."""


def parameters(state: State[Arrays, Arrays], single: list[int], step: int) -> list[Difference]:
    """Compute copies, and the master copies of those who update, against the single device."""
    group = state.group
    found = _arrays(group, single, step, "params", state.theta, group.params_local)
    held: set[int] = set().union(*set(group.params_local))
    for element in range(COUNT):
        if element not in held:
            message = f"no device holds element {element} of `{group.name}`"
            found.append(Difference(group.name, step, "params", None, element, message))
    if state.master is not None and state.updated is not None:
        master = state.on.take(state.master, group.optimizer_local, state.updated, "")
        found += _arrays(group, single, step, "master", master, state.updated)
    return found


def clipped(group: Group, buffer: Buffer[Arrays] | None, expected: list[int]) -> list[Difference]:
    """What stands in the buffer when its norm is taken against the single device's gradient."""
    if buffer is None:
        return [_difference(group, 1, "clip", group.holders[0], 0)]
    wrong = _wrong(group, buffer.summed(), buffer.local, buffer.usable, expected)
    return [_difference(group, 1, "clip", x, e) for x, e in islice(wrong, 1)]


def gradients(group: Group, buffer: Buffer[Arrays], step: int, expected: list[int]) -> list[Difference]:
    """What each device feeds the optimizer against the single device's gradient."""
    wrong = _wrong(group, buffer.layers[0], buffer.local, group.updates(buffer.usable), expected)
    return [_difference(group, step, "gradient", x, e) for x, e in islice(wrong, EXAMPLES)]


def _wrong(
    group: Group, arrays: Arrays, held: Held, mine: Held, expected: list[int]
) -> Iterator[tuple[int, int]]:
    """Devices, and the first of their elements `mine` that has another value."""
    places = group.places(mine, held)
    right: set[tuple[int, int]] = set()
    for x, row in enumerate(places):
        key = id(arrays[x]), id(row)
        if key in right:
            continue
        wrong = next((e for e, place in zip(mine[x], row) if arrays[x][place] != expected[e]), None)
        if wrong is None:
            right.add(key)
        else:
            yield x, wrong


def streams(group: Group, step: int, noise: list[int]) -> list[Difference]:
    """Devices that share one computation with frozen weights, and draw other random numbers."""
    other = next((x for x in group.holders if noise[x] != noise[group.holders[0]]), None)
    if other is None:
        return []
    where = group.grid.name(other)
    text = f"({where}) draws other random numbers with `{group.name}` than devices that compute the same"
    return [Difference(group.name, step, "random", group.grid.device(other), None, text)]


def _arrays(
    group: Group, single: list[int], step: int, what: str, arrays: Arrays, shapes: Held
) -> list[Difference]:
    right: dict[Local, list[int]] = {}
    found: list[Difference] = []
    for x, (local, array) in enumerate(zip(shapes, arrays)):
        expected = right.get(local)
        if expected is None:
            expected = right[local] = [single[e] for e in local]
        if array != expected:
            wrong = next(e for e, v, w in zip(local, array, expected) if v != w)
            found.append(_difference(group, step, what, x, wrong))
            if len(found) == EXAMPLES:
                break
    return found


def _difference(group: Group, step: int, what: str, x: int, element: int) -> Difference:
    grid, name = group.grid, group.name
    where = grid.name(x)
    text = {
        "params": f"after step {step} ({where}) holds another value of element {element} of `{name}`",
        "master": f"after step {step} ({where}) has another master copy of element {element} of `{name}`",
        "clip": f"({where}) takes the norm of another gradient of element {element} of `{name}`",
        "gradient": f"({where}) feeds another gradient of element {element} of `{name}` to the optimizer",
    }[what]
    return Difference(name, step, what, grid.device(x), element, text)


def disagreeing(group: Group, buffer: Buffer[Arrays] | None, axes: Axes, stepping: list[bool]) -> int | None:
    """A device that sees other gradients of this group over `axes` than another one, if any.
    Only devices that update some weights decide anything."""
    if buffer is None:
        return None
    local, usable, arrays = buffer.local, buffer.usable, buffer.summed()
    first: frozenset[tuple[int, int]] | None = None
    for members in group.grid.groups(axes):
        deciding = next((x for x in members if stepping[x]), None)
        if deciding is None:
            continue
        seen: set[tuple[int, int]] = set()
        done: set[tuple[int, Local]] = set()
        for x in members:
            key = id(arrays[x]), usable[x]
            if key not in done:
                done.add(key)
                seen.update((e, v) for e, v in zip(local[x], arrays[x]) if e in usable[x])
        view = frozenset(seen)
        if first is None:
            first = view
        elif view != first:
            return deciding
    return None


def spared(program: Program, count: int) -> list[Difference]:
    """That some weights are updated although an overflow skips the updates of others."""
    name = unskipped(program, count)
    text = f"`{name}` is updated although an overflow skips the updates of others"
    return [] if name is None else [Difference(None, 1, "skip", None, None, text)]
