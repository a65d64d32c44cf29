"""What is trained: the operations of a spec's blocks, and a small model of weights that no operation uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import torch

from placelogic.program.program import Program
from placelogic.replay.blocks.matrices import Matrices
from placelogic.replay.blocks.model import BlockModel, used
from placelogic.replay.comms import Comms
from placelogic.replay.data import Data
from placelogic.replay.model import Model
from placelogic.replay.shape import Shape
from placelogic.run.arriving import kept_along, lines_of
from placelogic.run.grid import Grid
from placelogic.run.group import Elements, Group
from placelogic.run.layers.setting import Setting
from placelogic.run.stop import GroupStop

PLACES = 2
"""Of a piece of a dimension: enough for it to be cut again, and to be put together in a wrong order."""


class Models:
    """`groups`: of all weights, whoever uses them. `only`: the number of one loss term, if not all count."""

    def __init__(self, program: Program, grid: Grid, data: Data, comms: Comms, only: int | None) -> None:
        names = used(program)
        setting = Setting(program, grid, data.work, _many(program, grid), PLACES) if names else None
        split = data.work.split
        self.groups: list[Group] = []
        for number, weights in enumerate(program.weights):
            inside = setting is not None and weights.name in names
            elements: Elements = partial(Matrices, setting) if inside else Shape
            kept = kept_along(lines_of(program, weights.name))
            self.groups.append(Group(number, weights, grid, split, elements, kept))
        inside = [group for group in self.groups if group.name in names]
        outside = [group for group in self.groups if group.name not in names]
        self._plain = Model(outside, data, only) if outside else None
        self._blocks = BlockModel(setting, inside, data, comms, only) if setting is not None else None
        self._comms = comms

    def single(
        self, step: int, weights: Mapping[int, torch.Tensor], trained: Sequence[Group], backwards: bool = False
    ) -> dict[int, torch.Tensor]:
        """The gradient of the objective for every trained group; `backwards`: added up in another order."""
        found: dict[int, torch.Tensor] = {}
        for model in (self._plain, self._blocks):
            if model is not None:
                found |= model.single(step, _of(weights, model.groups), _trained(trained, model.groups), backwards)
        return found

    def device(
        self, step: int, turn: int, computed: Mapping[int, torch.Tensor], trained: Sequence[Group]
    ) -> dict[int, list[torch.Tensor]]:
        """Per trained group and loss term, the gradient of this rank's own loss in the elements it computes
        with. Weights of operations that cannot be carried out stop, on all ranks alike."""
        found: dict[int, list[torch.Tensor]] = {}
        if self._plain is not None:
            groups = self._plain.groups
            found |= self._plain.device(self._comms, step, turn, _of(computed, groups), _trained(trained, groups))
        if self._blocks is not None:
            groups = self._blocks.groups
            try:
                found |= self._blocks.device(step, turn, _of(computed, groups), _trained(trained, groups))
            except GroupStop as stop:
                for group in groups:
                    group.stop = group.stop or str(stop)
        return found

    def units(self, group: Group) -> torch.Tensor:
        """Per element, what is multiplied by one factor where the gradient is: the matrix it is of, if
        operations use the weights, else all of them."""
        inside = self._blocks is not None and group in self._blocks.groups
        return torch.tensor(group.geometry.tensor if inside else [0] * group.count)

    def forward_gap(self) -> float | None:
        """The largest difference of what the last block leaves, since it was last asked for."""
        if self._blocks is None:
            return None
        gap, self._blocks.forward = self._blocks.forward, 0.0
        return gap


def _many(program: Program, grid: Grid) -> int:
    """Layers that stand for many: one for each stage, and two at least. Where layers multiply what they read by
    itself, more would leave no number of a sensible size."""
    return max(2, 1 if program.stages is None else grid.size[program.stages.axis])


def _of(values: Mapping[int, torch.Tensor], groups: Sequence[Group]) -> dict[int, torch.Tensor]:
    return {group.number: values[group.number] for group in groups}


def _trained(trained: Sequence[Group], groups: Sequence[Group]) -> list[Group]:
    return [group for group in trained if group in groups]
