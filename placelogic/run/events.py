"""Where the job decides as one: clipping by the global norm, and skipping a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from placelogic.program.program import Axes, GlobalNorm, Program, Skip, Step, Update
from placelogic.run.group_step import GroupStep
from placelogic.run.step import running


def squares(clip: GlobalNorm, runners: Sequence[GroupStep[Any]]) -> Iterator[tuple[GroupStep[Any], Any]]:
    """What each group adds to the squared norm, as every device computes it: by the number of its copies if the norm
    is of each element once, else as far as the sums over the listed axes bring it together."""
    for runner in runners:
        buffer = runner.content()
        if buffer is None:
            continue
        group, usable = runner.state.group, buffer.usable
        copies: list[int] | None = None
        axes: Axes | None = None
        if clip.listed is None:
            copies = [0] * group.count
            for elements in usable:
                for e in elements:
                    copies[e] += 1
        else:
            axes = clip.listed[group.name][0] if group.name in clip.listed else ()
        yield runner, buffer.on.squares(buffer.summed(), buffer.local, usable, copies, axes)


def acting_skips(step: Step, count: int) -> list[Skip]:
    """The skips of a step that an update comes after, with so many micro-batches: others decide nothing."""
    ops = list(running(step.ops, count))
    return [o for i, o in enumerate(ops) if isinstance(o, Skip) and any(isinstance(u, Update) for u in ops[i:])]


def unskipped(program: Program, count: int) -> str | None:
    """Weights that are updated although an overflow skips the updates of others."""
    skipping = {step.weights: bool(acting_skips(step, count)) for step in program.steps}
    return next((name for name, skips in skipping.items() if not skips), None) if any(skipping.values()) else None


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
