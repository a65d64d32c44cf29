"""The numbers that this rank has of a tensor, and what crosses between it and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from placelogic.program.expr import Expr
from placelogic.replay.comms import Comm
from placelogic.run.layers.crossing import MEANS, Step
from placelogic.run.layers.lay import Labels, Lay, piece


def carried(
    data: torch.Tensor,
    lays: Sequence[Lay],
    steps: Sequence[Step],
    comm: Comm,
    rank: int,
    number: Callable[[Expr], float],
) -> torch.Tensor:
    """After all of the steps. `lays`: of every device before."""
    for step in steps:
        data, lays = _one(data, lays, step, comm, rank, number), step.lays
    return data


def _one(
    data: torch.Tensor, lays: Sequence[Lay], step: Step, comm: Comm, rank: int, number: Callable[[Expr], float]
) -> torch.Tensor:
    mine, members = lays[rank], [lays[x] for x in comm.members]
    by = comm.size if step.kind in MEANS else 1
    match step.kind:
        case "fit":
            return arranged(data, mine, step.lays[rank])
        case "zero":
            return torch.zeros_like(data)
        case "times":
            assert step.factor is not None
            return data * number(step.factor)
        case "root":
            return comm.broadcast(data if comm.index == 0 else data.new_zeros(members[0].shape), 0)
        case "reduce":
            total = comm.all_reduce(data)
            return total if comm.index == 0 else torch.zeros_like(total)
        case "sum" | "mean":
            return comm.all_reduce(data) / by
        case "scatter" | "scatter_mean":
            return comm.reduce_scatter(list(data.chunk(comm.size, mine.dims.index(step.dim)))) / by
        case "gather":
            axis = mine.dims.index(step.dim)
            lengths = [len(lay.along(step.dim)) for lay in members]
            return torch.cat(comm.all_gather_uneven(data.transpose(0, axis), lengths)).transpose(0, axis)
        case "exchange":
            sent = data.chunk(comm.size, mine.dims.index(step.into))
            shapes = [piece(lay, step.into, comm.size, comm.index).shape for lay in members]
            return torch.cat(comm.all_to_all(sent, shapes), mine.dims.index(step.dim))


def arranged(data: torch.Tensor, lay: Lay, like: Lay) -> torch.Tensor:
    """The places of `like`: those that are missing are zeros, others are left out."""
    for axis, (have, want) in enumerate(zip(lay.labels, like.labels)):
        if have != want:
            rank = {label: i for i, label in enumerate(have)}
            data = picked(data, axis, [rank.get(label, -1) for label in want])
    return data


def picked(data: torch.Tensor, axis: int, rows: Sequence[int]) -> torch.Tensor:
    """The entries at these positions of a dimension, zeros at -1."""
    if list(rows) == list(range(data.shape[axis])):
        return data
    at = torch.tensor(rows, dtype=torch.long)
    found = data.index_select(axis, at.clamp(min=0))
    if -1 not in rows:
        return found
    return found * (at >= 0).to(data.dtype).reshape([-1 if d == axis else 1 for d in range(data.dim())])


def at_places(whole: torch.Tensor, labels: Sequence[Labels]) -> torch.Tensor:
    """The entries of a whole tensor at these places."""
    for axis, places in enumerate(labels):
        whole = picked(whole, axis, places)
    return whole
