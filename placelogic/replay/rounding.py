"""How much rounding does: single-device training a second time, its samples in another order.

In float64 rounding is far below any fault, and fixed bounds do. In float32 the bound comes from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from placelogic.replay import optimizers
from placelogic.replay.data import apart

if TYPE_CHECKING:
    from placelogic.replay.job import Job

ORDER = "order"
"""What such a difference is called among the others."""


class Reordered:
    """A second single device."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._weights = dict(job.single)
        self._moments = {group.number: optimizers.zeros(group.count) for group in job.trained}
        self._gradients: dict[int, float] = {}

    def step(self, step: int, expected: dict[int, torch.Tensor]) -> None:
        """Before the first single device moves on; `expected`: what that one feeds its optimizer."""
        job = self._job
        gradients = job.model.single(step, self._weights, job.trained, backwards=True)
        if job.program.clip is not None:
            norm = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
            gradients = {n: g * optimizers.clip_factor(norm) for n, g in gradients.items()}
        self._gradients = {n: apart(g, expected[n]) for n, g in gradients.items()}
        for n, gradient in gradients.items():
            self._weights[n], self._moments[n] = job.on[n].stepped_single(
                gradient / optimizers.calmed(expected[n]), self._weights[n], self._moments[n]
            )

    def difference(self) -> float:
        """The largest so far, after both have moved on."""
        apart_now = [apart(self._weights[g.number], self._job.single[g.number]) for g in self._job.trained]
        return max([*self._gradients.values(), *apart_now], default=0.0)
