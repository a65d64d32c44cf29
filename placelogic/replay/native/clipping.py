"""Clipping by the global norm. torch's own clip_grad_norm_ takes the norm of the gradients that a rank is given:
right where these are whole or DTensors, wrong where others hold the rest, as other pipeline stages and experts do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

MOST = 0.5
"""The norm that gradients are clipped to: small, so that it always acts."""

Clip = Callable[[], torch.Tensor]
"""Clips, and returns the norm that was found."""


def whole(tensor: Any) -> torch.Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def by_torch(parameters: Iterable[nn.Parameter]) -> torch.Tensor:
    """As people call it."""
    return whole(nn.utils.clip_grad_norm_(list(parameters), MOST))


def clipped(
    every: Sequence[nn.Parameter],
    here: Sequence[nn.Parameter],
    also: Sequence[nn.Parameter],
    group: dist.ProcessGroup,
) -> torch.Tensor:
    """The norm of gradients of which `here` are on this member of the group only, and `also` on all of them; the
    others of `every` count elsewhere. clip_grad_norm_ consists of two functions of torch: the squares are summed
    between the two."""
    squares = _squares(here)
    dist.all_reduce(squares, group=group)
    norm = (squares + _squares(also)).sqrt()
    nn.utils.clip_grads_with_norm_(every, MOST, norm)
    return norm


def _squares(parameters: Sequence[nn.Parameter]) -> torch.Tensor:
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.zeros(())
    return whole(nn.utils.get_total_norm(gradients)).detach().clone() ** 2
