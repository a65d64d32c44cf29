"""Collectives inside the forward and backward pass, as tensor, sequence and expert parallelism have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from placelogic.replay.comms import Comm


class Copy(torch.autograd.Function):
    """Everyone uses the same tensor; what flows back is summed."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, comm: Comm) -> torch.Tensor:
        ctx.comm = comm
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.comm.all_reduce(gradient), None


class Sum(torch.autograd.Function):
    """Partial results are summed; everyone goes on with the same sum."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, comm: Comm) -> torch.Tensor:
        return comm.all_reduce(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


class Split(torch.autograd.Function):
    """Each takes its piece of a tensor that all have."""

    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, comm: Comm, dim: int, bounds: Sequence[tuple[int, int]]
    ) -> torch.Tensor:
        ctx.saved = comm, dim, bounds
        low, high = bounds[comm.index]
        return tensor.narrow(dim, low, high - low).clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        return _whole(gradient, *ctx.saved), None, None, None


class Gather(torch.autograd.Function):
    """The pieces are put together; everyone goes on with the same whole."""

    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, comm: Comm, dim: int, bounds: Sequence[tuple[int, int]]
    ) -> torch.Tensor:
        ctx.saved = comm, dim, bounds
        return _whole(tensor, comm, dim, bounds)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        comm, dim, bounds = ctx.saved
        low, high = bounds[comm.index]
        return gradient.narrow(dim, low, high - low).clone(), None, None, None


class Dispatch(torch.autograd.Function):
    """Everyone's rows travel to everyone: each holds other experts. What flows back is summed at home."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, comm: Comm, bounds: Sequence[tuple[int, int]]) -> torch.Tensor:
        ctx.saved = comm, bounds
        return _whole(tensor, comm, 0, bounds)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        comm, bounds = ctx.saved
        low, high = bounds[comm.index]
        return comm.all_reduce(gradient)[low:high].clone(), None, None


class Combine(torch.autograd.Function):
    """What the experts of all made of one's rows comes home, summed."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, comm: Comm, bounds: Sequence[tuple[int, int]]) -> torch.Tensor:
        ctx.saved = comm, bounds
        low, high = bounds[comm.index]
        return comm.all_reduce(tensor)[low:high].clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        comm, bounds = ctx.saved
        return _whole(gradient, comm, 0, bounds), None, None


def _whole(tensor: torch.Tensor, comm: Comm, dim: int, bounds: Sequence[tuple[int, int]]) -> torch.Tensor:
    pieces = comm.all_gather_uneven(tensor.transpose(0, dim), [high - low for low, high in bounds])
    return torch.cat(pieces).transpose(0, dim).contiguous()


def bounds_of(length: int, parts: int) -> list[tuple[int, int]]:
    """Ceil-sized pieces of [0, length)."""
    chunk = -(-length // parts)
    return [(min(i * chunk, length), min((i + 1) * chunk, length)) for i in range(parts)]
