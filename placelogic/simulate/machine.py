"""The whole job, step after step, beside the single device that does the same training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from placelogic.program.program import BroadcastParams, GatherParams, Loop, Op, Program, Skip, Update
from placelogic.run.grid import Grid
from placelogic.run.step import Event, drive, running
from placelogic.run.stop import GroupStop
from placelogic.run.work import Counts, Work, check_size
from placelogic.simulate import compare, events
from placelogic.simulate.arithmetic import PRIME
from placelogic.simulate.arriving import arrive, kept_along, lines_of
from placelogic.simulate.buffers import Buffer
from placelogic.simulate.elements import COUNT
from placelogic.simulate.group import Group
from placelogic.simulate.model import Model, disturbed, fresh, read_devices, read_single
from placelogic.simulate.ops import Runner
from placelogic.simulate.optimizer import stepped
from placelogic.simulate.outcome import Difference, Outcome, Stop
from placelogic.simulate.state import State
from placelogic.simulate.update import update


class Machine:
    """One program on one mesh."""

    def __init__(
        self,
        program: Program,
        sizes: Mapping[str, int],
        quantities: Mapping[str, int],
        counts: Counts,
        per_item: int,
    ) -> None:
        self.program = program
        check_size(prod(sizes[axis] for axis in program.mesh.axes))
        self.grid = Grid(program.mesh.axes, sizes)
        self.work = Work(program, self.grid, quantities, counts, per_item)
        self.model = Model(self.work)
        split = self.work.split
        self.lines = [lines_of(program, weights.name) for weights in program.weights]
        self.groups = [Group(i, w, self.grid, split, kept_along(self.lines[i])) for i, w in enumerate(program.weights)]
        self.trained = [g for g in self.groups if not g.weights.frozen]
        self._stepping = [any(g.holder[x] for g in self.trained) for x in range(self.grid.count)]
        self.states = {g.number: State(g) for g in self.groups}
        self.differences: list[Difference] = []
        self.clipping = program.clip is not None
        self._sums: dict[int, tuple[list[int], list[int]]] = {}
        for group in self.groups:
            self._check(group)

    def _check(self, group: Group) -> None:
        step = self.program.step(group.name)
        ops = list(running(step.ops, self.work.microbatches)) if step is not None else []
        gathered = frozenset(axis for op in ops if isinstance(op, GatherParams) for axis in op.axes)
        skipping = any(isinstance(op, Skip) and any(isinstance(o, Update) for o in ops[i:]) for i, op in enumerate(ops))
        for conflict in self.program.conflicts:
            if conflict.weights == group.name and self.grid.size[conflict.axis] > 1:
                group.stop = group.stop or f"{conflict.state} are placed twice along {conflict.axis}"
        try:
            group.check_static(self.clipping, skipping, self.work.microbatches, gathered, self._passes(group.name))
        except GroupStop as stop:
            group.stop = group.stop or str(stop)

    def _passes(self, weights: str) -> int:
        if self.program.layers is None:
            return 1
        from placelogic.simulate.layers.passes import passes  # so that specs without blocks start faster

        return passes(self.program.layers, weights)

    def run(self, steps: int) -> Outcome:
        for step in range(1, steps + 1):
            self._step(step)
        stops = tuple(Stop(g.name, g.stop) for g in self.groups if g.stop is not None)
        return Outcome(tuple(self.differences), stops)

    # --- the single device --------------------------------------------------------------------

    def _single_gradients(self) -> dict[int, list[int]]:
        """The gradient of every trained group at the single device's parameters, not clipped."""
        h = read_single({g.number: self.states[g.number].single for g in self.groups}, self.groups)
        found = {}
        for group in self.trained:
            if group.number not in self._sums:
                self._sums[group.number] = self.model.single(group)
            a, s = self._sums[group.number]
            found[group.number] = [(v + w * h) % PRIME for v, w in zip(a, s)]
        return found

    # --- one step -----------------------------------------------------------------------------

    def _step(self, step: int) -> None:
        expected = self._single_gradients()
        complete = expected
        squares = {n: sum(v * v for v in values) % PRIME for n, values in expected.items()}
        if self.clipping:
            factor = events.clip_factor(sum(squares.values()) % PRIME)
            expected = {n: [v * factor % PRIME for v in values] for n, values in expected.items()}
        seen = self._seen(step)
        runners = self._runners(step, seen, expected)
        if step == 1:
            self.differences += events.spared(self.program, self.work.microbatches)
        self._drive(step, runners, complete, squares)
        for group in self.trained:
            state = self.states[group.number]
            state.single, state.single_omega = stepped(
                group.weights.optimizer.needs,
                range(COUNT),
                expected[group.number],
                state.single,
                state.single_omega,
            )
        for group in self.groups:
            state = self.states[group.number]
            if group.stop is None:
                self.differences += compare.parameters(state, step)
            else:
                state.settle(state.single, state.single_omega)

    def _seen(self, step: int) -> list[int]:
        """What every device's model reads from all parameters together."""
        total = [0] * self.grid.count
        for group in self.groups:
            seen = read_devices(group, self.states[group.number].theta)
            total = [t + v for t, v in zip(total, seen)]
            if group.weights.frozen and group.noisy and group.stop is None:
                # Trained weights carry this noise in their own gradients.
                noise = disturbed(group)
                total = [t + v for t, v in zip(total, noise)]
                self.differences += compare.streams(group, step, noise)
        return [t % PRIME for t in total]

    def _runners(self, step: int, seen: list[int], expected: dict[int, list[int]]) -> list[Runner]:
        runners = []
        for group in self.trained:
            plan = self.program.step(group.name)
            if group.stop is not None or plan is None:
                continue
            runners.append(self._runner(group, plan.ops, step, seen, expected[group.number]))
        return runners

    def _runner(self, group: Group, ops: tuple[Op, ...], step: int, seen: list[int], expected: list[int]) -> Runner:
        state = self.states[group.number]
        # Parameters that move between micro-batches are read anew by the next one.
        moving = any(isinstance(op, Loop) and any(isinstance(o, _MOVES) for o in op.body) for op in ops)
        others = _less(seen, read_devices(group, state.theta)) if moving else seen

        def backward(turn: int) -> Buffer:
            now = _less(others, [-v for v in read_devices(group, state.theta)]) if moving else seen
            buffer = fresh(self.model, group, turn, now)
            if lines := self.lines[group.number]:
                buffer.layers = [arrive(lines, group, self.work, t, arrays) for t, arrays in enumerate(buffer.layers)]
            return buffer

        def feed(buffer: Buffer) -> None:
            self._feed(state, buffer, step, expected)

        return Runner(state, self.work, ops, backward, feed)

    def _feed(self, state: State, buffer: Buffer, step: int, expected: list[int]) -> None:
        if step == 1:
            self.differences += compare.gradients(state, buffer, step, expected)
        update(state, buffer)

    def _drive(self, step: int, runners: list[Runner], complete: dict[int, list[int]], squares: dict[int, int]) -> None:
        """Run all groups, from one common event to the next."""

        def clip(clipping: Sequence[Runner], _: Event) -> None:
            self._clip(step, clipping, runners, complete, squares)

        drive(runners, lambda runner, _: self._decide(step, runner), clip)

    def _clip(
        self,
        step: int,
        clipping: Sequence[Runner],
        runners: list[Runner],
        complete: dict[int, list[int]],
        squares: dict[int, int],
    ) -> None:
        if self.program.clip is None:
            return
        if step == 1:
            for runner in clipping:
                # A norm is of the whole gradient: clipping parts of it, or nothing yet, is wrong in itself.
                if not runner.dead:
                    self.differences += compare.clipped(runner.state, runner.content(), complete)
        going = [r for r in runners if r.state.group.stop is None]
        counted = {r.state.group.number for r in going}
        missing = sum(value for number, value in squares.items() if number not in counted)
        found = events.norms(self.program.clip, going, missing, self.grid.count)
        known = {norm: events.clip_factor(norm) for norm in set(found)}
        for runner in clipping:
            events.apply_clip(runner, [known[norm] for norm in found])

    def _decide(self, step: int, runner: Runner) -> None:
        name = runner.state.group.name
        for axes in events.looking(self.program, name, runner.skips - 1, self.work.microbatches):
            x = events.disagreeing(runner, axes, self._stepping)
            if x is not None:
                message = f"({self.grid.name(x)}) sees other gradients of `{name}` and may decide otherwise"
                self.differences.append(Difference(None, step, "skip", self.grid.device(x), None, message))
                return


_MOVES = (BroadcastParams, GatherParams)


def _less(total: list[int], part: list[int]) -> list[int]:
    return [(t - v) % PRIME for t, v in zip(total, part)]
