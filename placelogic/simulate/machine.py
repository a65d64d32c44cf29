"""The whole job on exact numbers, step after step, beside the single device that does the same training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

from placelogic.program.program import Axes, Program
from placelogic.run.arriving import kept_along, lines_of
from placelogic.run.buffers import Buffer, fresh
from placelogic.run.events import squares
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.run.group_step import GroupStep
from placelogic.run.job import Job
from placelogic.run.state import State, begun
from placelogic.run.work import Counts, Work, check_size
from placelogic.simulate import compare, model
from placelogic.simulate.arithmetic import PRIME, inverse
from placelogic.simulate.elements import COUNT, Elements
from placelogic.simulate.exact import Arrays, Exact
from placelogic.simulate.model import Model
from placelogic.simulate.optimizer import stepped
from placelogic.simulate.outcome import Difference, Outcome, Stop


class Machine(Job[Arrays, Arrays]):
    """One program on one mesh. `single`, `moments`: what the single device holds, by the number of the group."""

    def __init__(
        self,
        program: Program,
        sizes: Mapping[str, int],
        quantities: Mapping[str, int],
        counts: Counts,
        per_item: int,
    ) -> None:
        check_size(prod(sizes[axis] for axis in program.mesh.axes))
        grid = Grid(program.mesh.axes, sizes)
        work = Work(program, grid, quantities, counts, per_item)
        groups = [
            Group(i, w, grid, work.split, Elements, kept_along(lines_of(program, w.name)))
            for i, w in enumerate(program.weights)
        ]
        self.single = {g.number: Exact(g).started_single() for g in groups}
        self.moments = {g.number: [0] * COUNT for g in groups}
        super().__init__(program, grid, work, groups, {g.number: _state(g, self.single[g.number]) for g in groups})
        self.model = Model(work)
        self.differences: list[Difference] = []
        self._sums: dict[int, tuple[list[int], list[int]]] = {}
        # What the single device's gradients are in this step, before they are clipped and after; and what the models
        # of devices read from all parameters together when it began, and from those of each group.
        self.complete: dict[int, list[int]] = {}
        self.expected: dict[int, list[int]] = {}
        self.seen = [0] * grid.count
        self.reads: dict[int, list[int]] = {}

    def run(self, steps: int) -> Outcome:
        for step in range(1, steps + 1):
            self._step(step)
        stops = tuple(Stop(g.name, g.stop) for g in self.groups if g.stop is not None)
        return Outcome(tuple(self.differences), stops)

    # --- one step -----------------------------------------------------------------------------

    def _step(self, step: int) -> None:
        self.complete = self.expected = self._single_gradients()
        if self.program.clip is not None:
            factor = clip_factor(sum(map(_square, self.complete.values())) % PRIME)
            self.expected = {n: [v * factor % PRIME for v in values] for n, values in self.complete.items()}
        if step == 1:
            self.differences += compare.spared(self.program, self.work.microbatches)
        self._see(step)
        self.drive(step, self.runners(step))
        for group in self.trained:
            n = group.number
            self.single[n], self.moments[n] = stepped(
                group.units, range(COUNT),
                self.expected[n], self.single[n], self.moments[n],
            )  # fmt: skip
        for group in self.groups:
            if group.stop is None:
                self.differences += compare.parameters(self.states[group.number], self.single[group.number], step)
            else:
                state, on, n = self.states[group.number], Exact(group), group.number
                state.settle(partial(on.spread, self.single[n]), on.spread(self.moments[n], group.optimizer_local))

    def _single_gradients(self) -> dict[int, list[int]]:
        """The gradient of every trained group at the single device's parameters, not clipped."""
        h = model.read_single(self.single, self.groups)
        found = {}
        for group in self.trained:
            if group.number not in self._sums:
                self._sums[group.number] = self.model.single(group)
            a, s = self._sums[group.number]
            found[group.number] = [(v + w * h) % PRIME for v, w in zip(a, s)]
        return found

    def _see(self, step: int) -> None:
        """What every device's model reads from all parameters together."""
        total = [0] * self.grid.count
        for group in self.groups:
            self.reads[group.number] = model.read_devices(group, self.states[group.number].theta)
            total = [t + v for t, v in zip(total, self.reads[group.number])]
            if group.weights.frozen and group.noisy and group.stop is None:
                # Trained weights carry this noise in their own gradients.
                noise = model.disturbed(group)
                total = [t + v for t, v in zip(total, noise)]
                self.differences += compare.streams(group, step, noise)
        self.seen = [t % PRIME for t in total]

    # --- what a job asks ----------------------------------------------------------------------

    def backward(self, group: Group, step: int, turn: int, moving: bool) -> Buffer[Arrays]:
        seen, state = self.seen, self.states[group.number]
        if moving:
            now = model.read_devices(group, state.theta)
            seen = [(s - before + v) % PRIME for s, before, v in zip(seen, self.reads[group.number], now)]
        return fresh(group, state.on, model.fresh(self.model, group, turn, seen))

    def feed(self, state: State[Arrays, Arrays], step: int, buffer: Buffer[Arrays]) -> None:
        if step == 1:
            self.differences += compare.gradients(state.group, buffer, step, self.expected[state.group.number])
        state.update(buffer)

    def decide(self, runner: GroupStep[Arrays], step: int, axes: Axes) -> None:
        group = runner.state.group
        x = compare.disagreeing(group, runner.content(), axes, self.stepping)
        if x is not None:
            message = f"({self.grid.name(x)}) sees other gradients of `{group.name}` and may decide otherwise"
            self.differences.append(Difference(None, step, "skip", self.grid.device(x), None, message))

    def compare_clipped(self, runner: GroupStep[Arrays], step: int) -> None:
        if step == 1:
            group = runner.state.group
            self.differences += compare.clipped(group, runner.content(), self.complete[group.number])

    def clip(
        self, clipping: Sequence[GroupStep[Arrays]], going: Sequence[GroupStep[Arrays]], step: int
    ) -> None:
        assert self.program.clip is not None
        counted = {runner.state.group.number for runner in going}
        # Groups that had to stop count with the single device's squares.
        norm = [sum(_square(values) for n, values in self.complete.items() if n not in counted)] * self.grid.count
        for _, found in squares(self.program.clip, going):
            norm = [n + v for n, v in zip(norm, found)]
        known = {n: clip_factor(n % PRIME) for n in set(norm)}
        for runner in clipping:
            buffer = runner.content()
            if buffer is not None:
                on = Exact(runner.state.group)
                buffer.layers = [on.scale_each(array, [known[n] for n in norm]) for array in buffer.layers]


def _state(group: Group, single: list[int]) -> State[Arrays, Arrays]:
    """As training starts."""
    on = Exact(group)
    theta, master = begun(group, on, partial(on.spread, single))
    return State(group, on, theta, theta, master, on.spread([0] * COUNT, group.optimizer_local))


def clip_factor(norm: int) -> int:
    """What a gradient of this squared norm is multiplied by: different norms, different factors."""
    return inverse(1 + norm)


def _square(values: Sequence[int]) -> int:
    return sum(v * v for v in values)
