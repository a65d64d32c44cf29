"""Collectives inside the forward and backward pass, as tensor, sequence and expert parallelism have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from placelogic.replay.comms import Comm

Change = Callable[[torch.Tensor], torch.Tensor]
Bounds = Sequence[tuple[int, int]]
"""Of the piece of every member, from and to."""


class _Across(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, there: Change, back: Change) -> torch.Tensor:
        ctx.back = back
        return there(values.view_as(values))

    @staticmethod
    def backward(ctx: Any, arrived: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return ctx.back(arrived), None, None


def across(values: torch.Tensor, there: Change, back: Change) -> torch.Tensor:
    """Something that happens to a tensor, and what happens to its gradient on the way back."""
    return _Across.apply(values, there, back) if values.is_floating_point() else there(values)


def same(values: torch.Tensor) -> torch.Tensor:
    return values


def copied(tensor: torch.Tensor, comm: Comm) -> torch.Tensor:
    """Everyone uses the same tensor; what flows back is summed."""
    return across(tensor, same, comm.all_reduce)


def summed(tensor: torch.Tensor, comm: Comm) -> torch.Tensor:
    """Partial results are summed; everyone goes on with the same sum."""
    return across(tensor, comm.all_reduce, same)


def split(tensor: torch.Tensor, comm: Comm, dim: int, bounds: Bounds) -> torch.Tensor:
    """Each takes its piece of a tensor that all have."""
    return across(tensor, lambda t: _piece(t, comm, dim, bounds), lambda g: _whole(g, comm, dim, bounds))


def gathered(tensor: torch.Tensor, comm: Comm, dim: int, bounds: Bounds) -> torch.Tensor:
    """The pieces are put together; everyone goes on with the same whole."""
    return across(tensor, lambda t: _whole(t, comm, dim, bounds), lambda g: _piece(g, comm, dim, bounds))


def dispatched(tensor: torch.Tensor, comm: Comm, bounds: Bounds) -> torch.Tensor:
    """Everyone's rows travel to everyone: each holds other experts. What flows back is summed at home."""
    return across(
        tensor, lambda t: _whole(t, comm, 0, bounds), lambda g: _piece(comm.all_reduce(g), comm, 0, bounds)
    )


def combined(tensor: torch.Tensor, comm: Comm, bounds: Bounds) -> torch.Tensor:
    """What the experts of all made of one's rows comes home, summed."""
    return across(
        tensor, lambda t: _piece(comm.all_reduce(t), comm, 0, bounds), lambda g: _whole(g, comm, 0, bounds)
    )


def _piece(tensor: torch.Tensor, comm: Comm, dim: int, bounds: Bounds) -> torch.Tensor:
    low, high = bounds[comm.index]
    return tensor.narrow(dim, low, high - low).clone()


def _whole(tensor: torch.Tensor, comm: Comm, dim: int, bounds: Bounds) -> torch.Tensor:
    pieces = comm.all_gather_uneven(tensor.transpose(0, dim), [high - low for low, high in bounds])
    return torch.cat(pieces).transpose(0, dim).contiguous()


def bounds_of(length: int, parts: int) -> list[tuple[int, int]]:
    """Ceil-sized pieces of [0, length)."""
    chunk = -(-length // parts)
    return [(min(i * chunk, length), min((i + 1) * chunk, length)) for i in range(parts)]
