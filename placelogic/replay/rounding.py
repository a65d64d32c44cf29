"""How much rounding does: single-device training a second time, its samples in another order.

In float64 rounding is far below any fault, and fixed bounds do. In float32 the bound comes from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from placelogic.replay import optimizers
from placelogic.replay.data import apart
from placelogic.replay.models import Models
from placelogic.replay.tensors import Tensors
from placelogic.run.group import Group

ORDER = "order"
"""What such a difference is called among the others."""


class Reordered:
    """A second single device. `single`: what the first one holds, by the number of its group, now and later on; `on`: the
    tensors of each group; `clips`: whether the job does."""

    def __init__(
        self, model: Models, trained: Sequence[Group], on: Mapping[int, Tensors], single: dict[int, torch.Tensor], clips: bool
    ) -> None:
        self._model, self._trained, self._on, self._single, self._clips = model, trained, on, single, clips
        self._weights = dict(single)
        self._moments = {group.number: optimizers.zeros(group.count) for group in trained}
        self._gradients: dict[int, float] = {}

    def step(self, step: int, expected: dict[int, torch.Tensor]) -> None:
        """Before the first single device moves on; `expected`: what that one feeds its optimizer."""
        gradients = self._model.single(step, self._weights, self._trained, backwards=True)
        if self._clips:
            norm = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
            gradients = {n: g * optimizers.clip_factor(norm) for n, g in gradients.items()}
        self._gradients = {n: apart(g, expected[n]) for n, g in gradients.items()}
        for n, gradient in gradients.items():
            self._weights[n], self._moments[n] = self._on[n].stepped_single(
                gradient / optimizers.calmed(expected[n]), self._weights[n], self._moments[n]
            )

    def difference(self) -> float:
        """The largest so far, after both have moved on."""
        apart_now = [apart(self._weights[g.number], self._single[g.number]) for g in self._trained]
        return max([*self._gradients.values(), *apart_now], default=0.0)
