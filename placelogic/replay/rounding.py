"""How much rounding does: single-device training a second time, its samples in another order.

In float64 rounding is far below any fault, and fixed bounds do. In float32 the bound comes from here."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from placelogic.replay import events, optimizers
from placelogic.replay.data import apart
from placelogic.replay.group import Group
from placelogic.replay.models import Models
from placelogic.replay.state import State

ORDER = "order"
"""What such a difference is called among the others."""


class Reordered:
    """A second single device."""

    def __init__(self, model: Models, states: dict[int, State], trained: Sequence[Group], clip: bool) -> None:
        self._model = model
        self._states = states
        self._trained = trained
        self._clip = clip
        self._weights = {number: state.single for number, state in states.items()}
        self._moments = {group.number: optimizers.zeros(group.count) for group in trained}

    def step(self, step: int, names: dict[int, str], expected: dict[int, torch.Tensor]) -> None:
        """Before the first single device moves on; `expected`: what that one feeds its optimizer."""
        gradients = self._model.single(step, self._weights, self._trained, backwards=True)
        if self._clip:
            norm = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
            gradients = {n: g * events.clip_factor(norm) for n, g in gradients.items()}
        self._gradients = {n: apart(g, expected[n]) for n, g in gradients.items()}
        for group in self._trained:
            n = group.number
            self._weights[n], self._moments[n] = optimizers.stepped(
                names[n], group.weights.optimizer.needs, group.shape, torch.arange(group.count),
                gradients[n] / optimizers.calmed(expected[n]), self._weights[n], self._moments[n],
            )  # fmt: skip

    def difference(self) -> float:
        """The largest so far, after both have moved on."""
        found = max(self._gradients.values(), default=0.0)
        for group in self._trained:
            state = self._states[group.number]
            found = max(found, apart(self._weights[group.number], state.single))
        return found
