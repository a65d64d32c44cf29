"""The whole job on one rank, step after step, beside the single device that does the same training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from msgspec import Struct
from msgspec.structs import replace

from placelogic.layers.operations import tied
from placelogic.program.program import BroadcastParams, GatherParams, Loop, Op, Program, Skip, Update
from placelogic.replay import events, optimizers
from placelogic.replay.arriving import arrive
from placelogic.replay.buffers import Buffer
from placelogic.replay.comms import Comms
from placelogic.replay.data import Data, Setup, apart
from placelogic.replay.group import Group
from placelogic.replay.models import Models
from placelogic.replay.rounding import ORDER, Reordered
from placelogic.replay.state import State
from placelogic.replay.step import Runner
from placelogic.run.grid import Grid
from placelogic.run.step import Event, drive, running
from placelogic.run.stop import GroupStop
from placelogic.simulate.arriving import lines_of
from placelogic.simulate.events import looking, unskipped


class Gap(Struct, frozen=True):
    """The largest difference to the single device on one rank. `what`: gradient (as fed to the
    optimizer), params, state (moments and master copies), clip, or, with weights None, forward (what the last block
    leaves), skip and order (rounding.py)."""

    weights: str | None
    step: int
    what: str
    difference: float


class Job:
    """One program on one mesh, as one rank runs it. `optimizer`: a name, or None for the spec's own. `only`:
    the number of the one loss term that counts, if not all do."""

    def __init__(
        self, program: Program, setup: Setup, comms: Comms, optimizer: str | None = None, only: int | None = None
    ) -> None:
        self.program = program
        self.comms = comms
        self.grid = Grid(program.mesh.axes, setup.sizes)
        self.data = Data(program, self.grid, setup)
        self.optimizer = optimizer
        self.model = Models(program, self.grid, self.data, comms, only)
        self.groups = self.model.groups
        self.trained = [g for g in self.groups if not g.weights.frozen]
        self.states = {g.number: State(g, comms, setup.seed) for g in self.groups}
        rounded = torch.get_default_dtype() is not torch.float64
        clip = program.clip is not None
        self._reordered = Reordered(self.model, self.states, self.trained, clip) if rounded else None
        self._stepping = [any(g.holder[x] for g in self.trained) for x in range(self.grid.count)]
        self.gaps: list[Gap] = []
        # The first step's gradients: what this rank fed, and the single device's, element by element; one pair for
        # all weights of a group, or for each matrix where operations have their own.
        self.fed: dict[str, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        # The gradient buffers of the last step.
        self.kept: list[Buffer] = []
        for group in self.groups:
            self._check(group)

    def _check(self, group: Group) -> None:
        step = self.program.step(group.name)
        ops = tuple(running(step.ops, self.data.microbatches)) if step is not None else ()
        gathered = frozenset(axis for op in ops if isinstance(op, GatherParams) for axis in op.axes)
        twice = tied(self.program.layers.blocks) if self.program.layers is not None else ()
        for conflict in self.program.conflicts:
            if conflict.weights == group.name and self.grid.size[conflict.axis] > 1:
                group.stop = group.stop or f"{conflict.state} are placed twice along {conflict.axis}"
        try:
            skips = any(isinstance(o, Skip) and any(isinstance(u, Update) for u in ops[i:]) for i, o in enumerate(ops))
            group.check(self.program.clip is not None, self.data.microbatches, gathered, group.name in twice, skips)
        except GroupStop as stop:
            group.stop = group.stop or str(stop)

    @property
    def stops(self) -> tuple[tuple[str, str], ...]:
        return tuple((g.name, g.stop) for g in self.groups if g.stop is not None)

    def run(self, steps: int) -> None:
        for step in range(1, steps + 1):
            # Traffic is counted in a step that is like all later ones.
            self.comms.log.on = step == min(2, steps)
            self._step(step)
        self.comms.log.on = False

    def held(self) -> dict[str, int]:
        """Bytes that this rank keeps between steps, by state."""
        found = {"params": 0, "optimizer": 0, "gradients": 0}
        for group in self.groups:
            state = self.states[group.number]
            found["params"] += _bytes(state.theta)
            if not group.weights.frozen:
                found["optimizer"] += _bytes(state.moments["first"]) + _bytes(state.moments["second"])
                found["optimizer"] += _bytes(state.master) if state.master is not None else 0
        for buffer in self.kept:
            found["gradients"] += sum(_bytes(layer) for layer in buffer.layers)
        return found

    # --- one step -----------------------------------------------------------------------------------

    def _step(self, step: int) -> None:
        complete = self.model.single(step, {g.number: self.states[g.number].single for g in self.groups}, self.trained)
        squares = {n: float(g.square().sum()) for n, g in complete.items()}
        expected = complete
        if self.program.clip is not None:
            factor = events.clip_factor(torch.tensor(sum(squares.values())).sqrt())
            expected = {n: g * factor for n, g in complete.items()}
        if self._reordered is not None:
            self._reordered.step(step, {g.number: self._name(g) for g in self.trained}, expected)
        runners = self._runners(step, expected)
        if unskipped(self.program, self.data.microbatches) is not None:
            self.gaps.append(Gap(None, step, "skip", 1.0))
        with self.comms.log.purpose("gradients"):
            self._drive(step, runners, complete, squares)
        if (gap := self.model.forward_gap()) is not None:
            self.gaps.append(Gap(None, step, "forward", gap))
        self.kept = [buffer for runner in runners for buffer in runner.buffers.values()]
        for group in self.trained:
            self._single_step(group, expected[group.number])
        if self._reordered is not None:
            self.gaps.append(Gap(None, step, ORDER, self._reordered.difference()))
        for group in self.groups:
            state = self.states[group.number]
            if group.stop is None:
                self._compare(state, step)
            else:
                state.settle()

    def _single_step(self, group: Group, gradient: torch.Tensor) -> None:
        state = self.states[group.number]
        every = torch.arange(group.count)
        state.single, state.single_moments = optimizers.stepped(
            self._name(group), group.weights.optimizer.needs, group.shape, every, gradient / optimizers.calmed(gradient),
            state.single, state.single_moments,
        )  # fmt: skip

    def _name(self, group: Group) -> str:
        return self.optimizer or group.weights.optimizer.name

    def _runners(self, step: int, expected: dict[int, torch.Tensor]) -> list[Runner]:
        with self.comms.log.purpose("params"):
            computed = {g.number: self.states[g.number].computed() for g in self.groups}
        ran = {}
        for turn in range(1, self.data.microbatches + 1):
            with self.comms.log.purpose("activations"):
                ran[turn] = self.model.device(step, turn, computed, self.trained)
        runners = []
        for group in self.trained:
            plan = self.program.step(group.name)
            if group.stop is None and plan is not None:
                runners.append(self._runner(group, plan.ops, step, ran, computed, expected[group.number]))
        return runners

    def _runner(
        self,
        group: Group,
        ops: tuple[Op, ...],
        step: int,
        ran: dict[int, dict[int, list[torch.Tensor]]],
        computed: dict[int, torch.Tensor],
        expected: torch.Tensor,
    ) -> Runner:
        state = self.states[group.number]
        # Parameters that move between micro-batches are read anew by the next one.
        moving = any(isinstance(op, Loop) and any(isinstance(o, _MOVES) for o in op.body) for op in ops)

        def backward(turn: int) -> Buffer:
            layers = ran[turn][group.number]
            if moving:
                now = {**computed, group.number: state.computed()}
                layers = self.model.device(step, turn, now, self.trained).get(group.number, layers)
            if lines := lines_of(self.program, group.name):
                layers = arrive(lines, group, self.comms, self.data, layers)
            room = {**group.own_room, **group.routed_room}
            return Buffer(group, self.comms, list(layers), room, frozenset(), group.alike)

        def feed(buffer: Buffer) -> None:
            self._feed(state, buffer, step, expected)

        return Runner(state, self.data, ops, backward, feed)

    def _feed(self, state: State, buffer: Buffer, step: int, expected: torch.Tensor) -> None:
        elements, gradient = state.fed(buffer)
        self._gap(state.group.name, step, "gradient", gradient, expected[elements])
        if step == 1 and state.group.name not in self.fed:
            kinds = self.model.units(state.group)[elements]
            pairs = [(gradient[kinds == kind], expected[elements[kinds == kind]]) for kind in kinds.unique()]
            self.fed[state.group.name] = pairs
        state.update(buffer, self._name(state.group), optimizers.calmed(expected))

    # --- events ---------------------------------------------------------------------------------------

    def _drive(
        self, step: int, runners: list[Runner], complete: dict[int, torch.Tensor], squares: dict[int, float]
    ) -> None:
        """Run all groups, from one common event to the next."""

        def decide(runner: Runner, _: Event) -> None:
            for axes in looking(self.program, runner.state.group.name, runner.skips - 1, self.data.microbatches):
                with self.comms.log.purpose("decisions"):
                    found = events.skip_disagreement(runner, axes, self.comms, self._stepping)
                self.gaps.append(Gap(None, step, "skip", found))

        def clip(clipping: Sequence[Runner], _: Event) -> None:
            self._clip(step, clipping, runners, complete, squares)

        drive(runners, decide, clip)

    def _clip(
        self,
        step: int,
        clipping: Sequence[Runner],
        runners: list[Runner],
        complete: dict[int, torch.Tensor],
        squares: dict[int, float],
    ) -> None:
        if self.program.clip is None:
            return
        for runner in clipping:
            # A norm is of the whole gradient: clipping parts of it, or nothing yet, is wrong in itself.
            if not runner.dead:
                self._compare_clip(runner, step, complete[runner.state.group.number])
        going = [r for r in runners if r.state.group.stop is None]
        counted = {r.state.group.number for r in going}
        missing = sum(value for number, value in squares.items() if number not in counted)
        with self.comms.log.purpose("decisions"):
            norm = events.squared_norm(self.program.clip, going, missing, self.comms, self.grid).sqrt()
        for runner in clipping:
            buffer = runner.content()
            if buffer is not None:
                buffer.layers = [layer * events.clip_factor(norm) for layer in buffer.layers]

    def _compare_clip(self, runner: Runner, step: int, complete: torch.Tensor) -> None:
        buffer, group = runner.content(), runner.state.group
        if buffer is None:
            self.gaps.append(Gap(group.name, step, "clip", float("inf")))
            return
        mine = buffer.mine()
        here = buffer.local[self.comms.rank][mine]
        self._gap(group.name, step, "clip", buffer.summed()[mine], complete[here])

    # --- comparison -----------------------------------------------------------------------------------

    def _compare(self, state: State, step: int) -> None:
        group, x = state.group, self.comms.rank
        self._gap(group.name, step, "params", state.theta, state.single[group.params_local[x]])
        held = torch.zeros(group.count, dtype=torch.bool)
        for elements in group.params_local:
            held[elements] = True
        if not bool(held.all()):
            self.gaps.append(Gap(group.name, step, "params", float("inf")))
        if state.updated is None:
            return
        mine = torch.isin(group.optimizer_local[x], state.updated)
        where = group.optimizer_local[x][mine]
        for name in ("first", "second"):
            self._gap(group.name, step, "state", state.moments[name][mine], state.single_moments[name][where])
        if state.master is not None:
            self._gap(group.name, step, "state", state.master[mine], state.single[where])

    def _gap(self, name: str, step: int, what: str, found: torch.Tensor, expected: torch.Tensor) -> None:
        self.gaps.append(Gap(name, step, what, apart(found, expected)))


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


_MOVES = (BroadcastParams, GatherParams, Update)


def without_clip(program: Program) -> Program:
    """The same job, so that what is fed to the optimizer shows its factor."""
    return replace(program, clip=None)
