"""A whole job on one mesh: every weight group takes its steps, and all meet where the job decides as one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic

from placelogic.program.program import Axes, BroadcastParams, GatherParams, Loop, Program, Update
from placelogic.run.algebra import A, M
from placelogic.run.arriving import arrive, lines_of
from placelogic.run.buffers import Buffer
from placelogic.run.events import acting_skips, looking
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.run.group_step import GroupStep
from placelogic.run.state import State
from placelogic.run.step import Event, drive, running
from placelogic.run.work import Work


class Job(Generic[A, M]):
    """What is the same whatever the numbers are. `states`: by the number of the group."""

    def __init__(
        self, program: Program, grid: Grid, work: Work, groups: Sequence[Group], states: Mapping[int, State[A, M]]
    ) -> None:
        self.program = program
        self.grid = grid
        self.work = work
        self.groups = groups
        self.states = states
        self.trained = [group for group in groups if not group.weights.frozen]
        # Only devices that update some weights decide anything.
        self.stepping = [any(g.holder[x] for g in self.trained) for x in range(grid.count)]
        for group in self.groups:
            reason = impossible(program, group, work.microbatches)
            group.stop = group.stop or reason

    # --- what the numbers say ------------------------------------------------------------------

    @abstractmethod
    def backward(self, group: Group, step: int, turn: int, moving: bool) -> Buffer[A]:
        """The gradient that the backward pass of a micro-batch leaves. `moving`: parameters may have moved since the
        step began."""

    @abstractmethod
    def feed(self, state: State[A, M], step: int, buffer: Buffer[A]) -> None:
        """The optimizer's step."""

    @abstractmethod
    def decide(self, runner: GroupStep[A], step: int, axes: Axes) -> None:
        """Whether devices see different gradients over `axes`, where a step may be skipped."""

    @abstractmethod
    def compare_clipped(self, runner: GroupStep[A], step: int) -> None:
        """What the norm is taken of."""

    @abstractmethod
    def clip(self, clipping: Sequence[GroupStep[A]], going: Sequence[GroupStep[A]], step: int) -> None:
        """Multiply what is clipped by a factor of the norm of what all that are `going` have now."""

    # --- one step --------------------------------------------------------------------------------

    def runners(self, step: int) -> list[GroupStep[A]]:
        return [
            self.runner(group, step)
            for group in self.trained
            if group.stop is None and self.program.step(group.name) is not None
        ]

    def runner(self, group: Group, step: int) -> GroupStep[A]:
        plan = self.program.step(group.name)
        assert plan is not None
        state, lines = self.states[group.number], lines_of(self.program, group.name)
        # Parameters that move between micro-batches are read anew by the next one.
        moving = any(isinstance(op, Loop) and any(isinstance(o, _MOVES) for o in op.body) for op in plan.ops)

        def backward(turn: int) -> Buffer[A]:
            buffer = self.backward(group, step, turn, moving)
            arrive(lines, buffer, self.work)
            return buffer

        return GroupStep(state, self.work, plan.ops, backward, lambda buffer: self.feed(state, step, buffer))

    def drive(self, step: int, runners: Sequence[GroupStep[A]]) -> None:
        """Run all groups, from one common event to the next."""

        def decide(runner: GroupStep[A], _: Event) -> None:
            for axes in looking(self.program, runner.state.group.name, runner.skips - 1, self.work.microbatches):
                self.decide(runner, step, axes)

        def clip(clipping: Sequence[GroupStep[A]], _: Event) -> None:
            if self.program.clip is None:
                return
            for runner in clipping:
                # A norm is of the whole gradient: clipping parts of it, or nothing yet, is wrong in itself.
                if not runner.dead:
                    self.compare_clipped(runner, step)
            self.clip(clipping, [r for r in runners if r.state.group.stop is None], step)

        drive(runners, decide, clip)


_MOVES = (BroadcastParams, GatherParams, Update)


def impossible(program: Program, group: Group, microbatches: int) -> str | None:
    """Why the step of a group cannot be carried out, where no run is needed to know."""
    for conflict in program.conflicts:
        if conflict.weights == group.name and group.grid.size[conflict.axis] > 1:
            return f"{conflict.state} are placed twice along {conflict.axis}"
    step, w, size = program.step(group.name), group.weights, dict(group.sizes)
    ops = list(running(step.ops, microbatches)) if step is not None else []
    for cut in w.params.cuts:
        for axis in cut.axes if cut.letter == "S" else ():
            if size[axis] == 1 or axis in group.routed or axis == group.uses_axis:
                continue
            if axis in group.split:
                return f"each device along {axis} works on its own data with a shard of the parameters"
            if cut.dim == "flat":
                return f"a flat shard along {axis} is no tensor to compute with"
    if group.materialized:
        if not w.master:
            return "materialized parameters have no master copy to be recomputed from"
        gathered = {axis for op in ops if isinstance(op, GatherParams) for axis in op.axes}
        for axis in group.optimizer_rule:
            if size[axis] > 1 and axis not in group.params_rule and axis not in gathered:
                return f"the master copy is cut along {axis} and nothing gathers what it gives"
    if w.frozen:
        return None
    if w.optimizer_state.materialized is not None:
        return "optimizer state cannot be recomputed"
    if w.gradients.materialized is not None:
        if microbatches > 1:
            return "gradients are not kept, and there are several micro-batches"
        if program.clip is not None:
            return "gradients are not kept, and the norm needs all of them"
        if step is not None and acting_skips(step, microbatches):
            return "gradients are not kept, and whether to skip the update depends on all of them"
        if used_twice(program, w.name) or (w.uses is not None and w.uses.first and w.uses.last):
            return "gradients are not kept, and the weights are used twice in a backward pass"
    return None


def used_twice(program: Program, weights: str) -> bool:
    """Whether a backward pass comes by the same elements twice: operations have matrices of their own, except those
    that read the rows of a table or multiply by it turned round."""
    if program.layers is None or not program.layers.blocks:
        return False
    from placelogic.program import block as bl  # so that specs without blocks start faster

    mine = [op for block in program.layers.blocks for op in block.operations if getattr(op, "weights", None) == weights]
    tables = [((op.vocabulary,), op.produced) for op in mine if isinstance(op, bl.Embedding)]
    return any((op.produced, op.contracted) in tables for op in mine if isinstance(op, bl.Linear))
