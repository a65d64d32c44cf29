"""The whole job on one rank, step after step, beside the single device that does the same training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from msgspec import Struct
from msgspec.structs import replace

from placelogic.program.program import Axes, BroadcastParams, FetchParams, GatherParams, Program, Refresh
from placelogic.replay import optimizers
from placelogic.replay.comms import Comms
from placelogic.replay.data import Data, Setup, apart
from placelogic.replay.models import Models
from placelogic.replay.optimizers import Moments
from placelogic.replay.rounding import ORDER, Reordered
from placelogic.replay.tensors import Tensors
from placelogic.run import job
from placelogic.run.buffers import Buffer, collected, fresh
from placelogic.run.events import squares, unskipped
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.run.group_step import GroupStep
from placelogic.run.state import State, begun

NOTHING = -1.0
"""What a device sees of an element that it holds nothing of."""


class Gap(Struct, frozen=True):
    """The largest difference to the single device on one rank. `what`: gradient (as fed to the
    optimizer), params, state (moments and master copies), clip, or, with weights None, forward (what the last block
    leaves), skip and order (rounding.py)."""

    weights: str | None
    step: int
    what: str
    difference: float


class Job(job.Job[torch.Tensor, Moments]):
    """One program on one mesh, as one rank runs it. `optimizer`: a name, or None for the spec's own. `only`:
    the number of the one loss term that counts, if not all do. `single`, `moments`: what the single device holds, by the
    number of the group."""

    def __init__(
        self, program: Program, setup: Setup, comms: Comms, optimizer: str | None = None, only: int | None = None
    ) -> None:
        self.comms = comms
        grid = Grid(program.mesh.axes, setup.sizes)
        data = Data(program, grid, setup)
        self.model = Models(program, grid, data, comms, only)
        groups = self.model.groups
        self.on = {
            g.number: Tensors(g, comms, setup.seed, optimizer or g.weights.optimizer.name) for g in groups
        }
        self.single = {n: on.started_single() for n, on in self.on.items()}
        self.moments = {g.number: optimizers.zeros(g.count) for g in groups}
        states = {n: _state(on, self.single[n]) for n, on in self.on.items()}
        super().__init__(program, grid, data.work, groups, states)
        rounded = torch.get_default_dtype() is not torch.float64
        clips = program.clip is not None
        self._reordered = Reordered(self.model, self.trained, self.on, self.single, clips) if rounded else None
        self.gaps: list[Gap] = []
        # The first step's gradients: what this rank fed, and the single device's, element by element; one pair for
        # all weights of a group, or for each matrix where operations have their own.
        self.fed: dict[str, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        # The gradient buffers of the last step; and in this step what the single device's gradients are, before they
        # are clipped and after, what this rank computed with, and by micro-batch, what gradients it came to.
        self.kept: list[Buffer[torch.Tensor]] = []
        self.complete: dict[int, torch.Tensor] = {}
        self.expected: dict[int, torch.Tensor] = {}
        self.computed: dict[int, torch.Tensor] = {}
        self.ran: dict[int, dict[int, list[torch.Tensor]]] = {}

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
        self.complete = self.expected = self.model.single(step, self.single, self.trained)
        if self.program.clip is not None:
            factor = optimizers.clip_factor(torch.tensor(sum(map(_square, self.complete.values()))).sqrt())
            self.expected = {n: g * factor for n, g in self.complete.items()}
        if self._reordered is not None:
            self._reordered.step(step, self.expected)
        with self.comms.log.purpose("params"):
            self.computed = {group.number: self._used(group) for group in self.groups}
        with self.comms.log.purpose("activations"):
            turns = range(1, self.work.microbatches + 1)
            self.ran = {turn: self.model.device(step, turn, self.computed, self.trained) for turn in turns}
        if unskipped(self.program, self.work.microbatches) is not None:
            self.gaps.append(Gap(None, step, "skip", 1.0))
        runners = self.runners(step)
        with self.comms.log.purpose("gradients"):
            self.drive(step, runners)
        if (gap := self.model.forward_gap()) is not None:
            self.gaps.append(Gap(None, step, "forward", gap))
        self.kept = [buffer for runner in runners for buffer in runner.buffers.values()]
        for group in self.trained:
            n = group.number
            self.single[n], self.moments[n] = self.on[n].stepped_single(
                self.expected[n] / optimizers.calmed(self.expected[n]), self.single[n], self.moments[n]
            )
        if self._reordered is not None:
            self.gaps.append(Gap(None, step, ORDER, self._reordered.difference()))
        for group in self.groups:
            if group.stop is None:
                self._compare(self.states[group.number], step)
            else:
                n, on = group.number, self.on[group.number]
                self.states[n].settle(partial(on.spread, self.single[n]), _moments(on, self.moments[n]))

    def _used(self, group: Group) -> torch.Tensor:
        """The values this rank computes with, after what is gathered on use."""
        state, size = self.states[group.number], group.grid.size
        rules = [rule for axis, rule in group.params_rule.items() if axis not in group.room and size[axis] > 1]
        if not rules:
            return state.theta
        with self.comms.log.purpose("params"):
            return collected(group, state.on, rules, state.theta, group.params_local, group.home_local)

    # --- what a job asks ------------------------------------------------------------------------------

    def backward(self, group: Group, step: int, turn: int, moving: bool) -> Buffer[torch.Tensor]:
        layers = self.ran[turn][group.number]
        if moving:
            now = {**self.computed, group.number: self._used(group)}
            layers = self.model.device(step, turn, now, self.trained).get(group.number, layers)
        return fresh(group, self.on[group.number], list(layers))

    def feed(self, state: State[torch.Tensor, Moments], step: int, buffer: Buffer[torch.Tensor]) -> None:
        group, x, array = state.group, self.comms.rank, buffer.layers[0]
        mine, expected = group.updates(buffer.usable), self.expected[group.number]
        gradient = state.on.take(array, buffer.local, mine, "")
        elements = self.on[group.number].index(mine[x])
        self._gap(group.name, step, "gradient", gradient, expected[elements])
        if step == 1 and group.name not in self.fed:
            kinds = self.model.units(group)[elements]
            pairs = [(gradient[kinds == kind], expected[elements[kinds == kind]]) for kind in kinds.unique()]
            self.fed[group.name] = pairs
        self.on[group.number].calm = optimizers.calmed(expected)
        state.update(buffer)

    def decide(self, runner: GroupStep[torch.Tensor], step: int, axes: Axes) -> None:
        with self.comms.log.purpose("decisions"):
            self.gaps.append(Gap(None, step, "skip", self._disagreement(runner, axes)))

    def _disagreement(self, runner: GroupStep[torch.Tensor], axes: Axes) -> float:
        """How far devices that step together see different gradients of this group over `axes`: then an
        overflow can be seen by some and not by others."""
        buffer, group, x = runner.content(), runner.state.group, self.comms.rank
        view = torch.full((2, group.count), NOTHING)
        if buffer is not None:
            elements = self.on[group.number].index(buffer.usable[x])
            values = torch.sigmoid(buffer.on.take(buffer.summed(), buffer.local, buffer.usable, ""))
            view[0, elements] = values
            view[1, elements] = 1 - values
        groups = group.grid.groups(axes)
        comm = self.comms.among(groups) if axes else None
        if comm is not None:
            view = comm.all_reduce(view, "max")
        views = self.comms.everyone().all_gather(view)
        # A process group decides for those of its devices that update some weights.
        deciding = [next((y for y in members if self.stepping[y]), None) for members in groups]
        first, *others = [views[y] for y in deciding if y is not None] or [view]
        return max((float((other - first).abs().max()) for other in others if buffer is not None), default=0.0)

    def compare_clipped(self, runner: GroupStep[torch.Tensor], step: int) -> None:
        buffer, group = runner.content(), runner.state.group
        if buffer is None:
            self.gaps.append(Gap(group.name, step, "clip", float("inf")))
            return
        found = buffer.on.take(buffer.summed(), buffer.local, buffer.usable, "")
        here = self.on[group.number].index(buffer.usable[self.comms.rank])
        self._gap(group.name, step, "clip", found, self.complete[group.number][here])

    def clip(
        self,
        clipping: Sequence[GroupStep[torch.Tensor]],
        going: Sequence[GroupStep[torch.Tensor]],
        step: int,
    ) -> None:
        assert self.program.clip is not None
        counted = {runner.state.group.number for runner in going}
        # Groups that had to stop count with the single device's squares.
        norm = torch.tensor(sum(_square(g) for n, g in self.complete.items() if n not in counted) or 0.0)
        with self.comms.log.purpose("decisions"):
            for _, found in squares(self.program.clip, going):
                norm = norm + found
        for runner in clipping:
            buffer = runner.content()
            if buffer is not None:
                buffer.layers = [layer * optimizers.clip_factor(norm.sqrt()) for layer in buffer.layers]

    # --- comparison -----------------------------------------------------------------------------------

    def _compare(self, state: State[torch.Tensor, Moments], step: int) -> None:
        group, single = state.group, self.single[state.group.number]
        on = self.on[group.number]
        self._gap(group.name, step, "params", state.theta, on.spread(single, group.params_local))
        held: set[int] = set().union(*set(group.params_local))
        if len(held) < group.count:
            self.gaps.append(Gap(group.name, step, "params", float("inf")))
        if state.updated is None:
            return
        pairs = [(state.moments[name], self.moments[group.number][name]) for name in ("first", "second")]
        for found, expected in (*pairs, *([(state.master, single)] if state.master is not None else [])):
            mine = on.take(found, group.optimizer_local, state.updated, "")
            self._gap(group.name, step, "state", mine, on.spread(expected, state.updated))

    def _gap(self, name: str, step: int, what: str, found: torch.Tensor, expected: torch.Tensor) -> None:
        self.gaps.append(Gap(name, step, what, apart(found, expected)))


class _State(State[torch.Tensor, Moments]):
    """What moves parameters is logged as such."""

    def publish(self, op: GatherParams | BroadcastParams | Refresh | FetchParams, where: str = "") -> None:
        assert isinstance(self.on, Tensors)
        with self.on.comms.log.purpose("params"):
            super().publish(op, where)


def _state(on: Tensors, single: torch.Tensor) -> _State:
    """As training starts."""
    theta, master = begun(on.group, on, partial(on.spread, single))
    return _State(on.group, on, theta, theta, master, _moments(on, optimizers.zeros(on.group.count)))


def _moments(on: Tensors, every: Moments) -> Moments:
    """What this rank holds of the moments of all elements."""
    return {name: on.spread(values, on.group.optimizer_local) for name, values in every.items()}


def _square(gradient: torch.Tensor) -> float:
    return float(gradient.square().sum())


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def without_clip(program: Program) -> Program:
    """The same job, so that what is fed to the optimizer shows its factor."""
    return replace(program, clip=None)
