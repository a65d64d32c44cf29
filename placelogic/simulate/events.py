"""Where the job decides as one: clipping by the global norm, and skipping a step."""

from __future__ import annotations

from placelogic.program.program import Axes, GlobalNorm, Program, Skip, Step, Update
from placelogic.run.step import running
from placelogic.simulate import buffers
from placelogic.simulate.arithmetic import PRIME, inverse
from placelogic.simulate.buffers import Buffer
from placelogic.simulate.elements import COUNT
from placelogic.simulate.group import Local
from placelogic.simulate.ops import Runner
from placelogic.simulate.outcome import Difference


def clip_factor(norm: int) -> int:
    """What a gradient of this squared norm is multiplied by: different norms, different factors."""
    return inverse(1 + norm)


def norms(clip: GlobalNorm, runners: list[Runner], missing: int, count: int) -> list[int]:
    """The squared norm each device computes. `missing`: squares of groups that had to stop."""
    if clip.listed is None:
        return [(missing + sum(_each_once(runner) for runner in runners)) % PRIME] * count
    total = [missing] * count
    for runner in runners:
        group = runner.state.group
        axes = clip.listed[group.name][0] if group.name in clip.listed else ()
        local = _local_squares(runner.content(), count)
        if not axes:
            total = [t + v for t, v in zip(total, local)]
            continue
        for members in group.grid.groups(axes):
            seen = sum(local[x] for x in members)
            for x in members:
                total[x] += seen
    return [t % PRIME for t in total]


def apply_clip(runner: Runner, factors: list[int]) -> None:
    buffer = runner.content()
    if buffer is not None:
        for arrays in buffer.layers:
            buffers.scale_each(arrays, factors)


def _each_once(runner: Runner) -> int:
    """Squares of every element once: each of its copies counts for its fraction."""
    buffer = runner.content()
    if buffer is None:
        return 0
    squares, copies = [0] * COUNT, [0] * COUNT
    local, usable, arrays = buffer.local, buffer.usable, _summed(buffer)
    done: dict[tuple[int, Local], list[tuple[int, int]]] = {}
    for x in buffer.group.holders:
        key = id(arrays[x]), usable[x]
        known = done.get(key)
        if known is None:
            mine = usable[x]
            known = done[key] = [(e, v * v % PRIME) for e, v in zip(local[x], arrays[x]) if e in mine]
        for e, square in known:
            squares[e] += square
            copies[e] += 1
    return sum(square * inverse(n) for square, n in zip(squares, copies) if n) % PRIME


def _local_squares(buffer: Buffer | None, count: int) -> list[int]:
    found = [0] * count
    if buffer is not None:
        local, usable, arrays = buffer.local, buffer.usable, _summed(buffer)
        for x in buffer.group.holders:
            mine = usable[x]
            found[x] = sum(v * v for e, v in zip(local[x], arrays[x]) if e in mine) % PRIME
    return found


def _summed(buffer: Buffer) -> list[list[int]]:
    """The arrays, loss terms added."""
    if len(buffer.layers) == 1:
        return buffer.layers[0]
    return [[sum(column) % PRIME for column in zip(*arrays)] for arrays in zip(*buffer.layers)]


def acting_skips(step: Step, count: int) -> list[Skip]:
    """The skips of a step that an update comes after, with so many micro-batches: others decide nothing."""
    ops = list(running(step.ops, count))
    return [o for i, o in enumerate(ops) if isinstance(o, Skip) and any(isinstance(u, Update) for u in ops[i:])]


def unskipped(program: Program, count: int) -> str | None:
    """Weights that are updated although an overflow skips the updates of others."""
    skipping = {step.weights: bool(acting_skips(step, count)) for step in program.steps}
    return next((name for name, skips in skipping.items() if not skips), None) if any(skipping.values()) else None


def spared(program: Program, count: int) -> list[Difference]:
    """That some weights are updated although an overflow skips the updates of others."""
    name = unskipped(program, count)
    text = f"`{name}` is updated although an overflow skips the updates of others"
    return [] if name is None else [Difference(None, 1, "skip", None, None, text)]


def looking(program: Program, weights: str, number: int, count: int) -> list[Axes]:
    """Over which axes the decisions that this group's skip of this number (from 0) is part of are looked at.

    The first skips of all steps make one decision, the second ones another; a step with fewer takes part with its
    last. Each skip of a decision sees the gradients of all weights, over its own axes, so that they agree only
    where these are alike along every axis that one of them leaves out."""
    skips = {step.weights: [op.axes for op in acting_skips(step, count)] for step in program.steps}
    skips = {name: found for name, found in skips.items() if found}
    mine = len(skips[weights])
    out = []
    for decision in range(max(map(len, skips.values()))):
        if min(decision, mine - 1) == number:
            together = [found[min(decision, len(found) - 1)] for found in skips.values()]
            out.append(tuple(axis for axis in program.mesh.axes if all(axis in axes for axes in together)))
    return out


def disagreeing(runner: Runner, axes: Axes, stepping: list[bool]) -> int | None:
    """A device that sees other gradients of this group over `axes` than another one, if any.
    Only devices that update some weights decide anything."""
    buffer = runner.content()
    if buffer is None:
        return None
    local, usable, arrays = buffer.local, buffer.usable, _summed(buffer)
    first: frozenset[tuple[int, int]] | None = None
    for members in buffer.group.grid.groups(axes):
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
