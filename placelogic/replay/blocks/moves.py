"""Moves of a plan as collectives: along one axis, on the pieces of one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from placelogic.program.plan import Move
from placelogic.replay.blocks.crossing import MEANS, SUMS, after, check_back
from placelogic.replay.blocks.held import Held, arranged, cut
from placelogic.replay.blocks.lay import Lay, joined, piece
from placelogic.replay.comms import Comm, Comms
from placelogic.run.grid import Grid
from placelogic.simulate.layers.ragged import Ragged


def forward(held: Held, move: Move, axis: str, grid: Grid, comms: Comms, factor: float, ragged: Ragged) -> Held:
    """Raises GroupStop, on all ranks alike, where the arrays are no such pieces."""
    lays = list(held.lays)
    groups = grid.groups((axis,))
    for members in groups:
        came = [held.lays[x] for x in members]
        if move.kind in SUMS:
            ragged.check(came)
        for x, lay in zip(members, after(came, move)):
            lays[x] = lay
    comm = _among(comms, groups)
    data = _carried(held.data, [held.lays[x] for x in comm.members], move, comm)
    return Held(tuple(lays), data if factor == 1 else data * factor)


def _among(comms: Comms, groups: Sequence[Sequence[int]]) -> Comm:
    comm = comms.among(groups)
    assert comm is not None, "every device is in a group along an axis"
    return comm


def _carried(data: torch.Tensor, lays: Sequence[Lay], move: Move, comm: Comm) -> torch.Tensor:
    """What this rank has afterwards. `lays`: of the members before."""
    count, dim, mine = comm.size, move.dim or "", lays[comm.index]
    match move.kind:
        case "none":
            return data
        case "zero":
            return torch.zeros_like(data)
        case "root":
            own = data if comm.index == 0 else data.new_zeros(lays[0].shape)
            return comm.broadcast(own, 0)
        case "sum" | "mean":
            return comm.all_reduce(data) / (count if move.kind in MEANS else 1)
        case "scatter" | "scatter_mean":
            pieces = [cut(data, mine, dim, count, i) for i in range(count)]
            return comm.reduce_scatter(pieces) / (count if move.kind in MEANS else 1)
        case "gather":
            return _gathered(data, lays, dim, comm)
        case "slice" | "pad":
            return cut(data, mine, dim, count, comm.index)
        case "exchange":
            into = move.into or ""
            sent = [cut(data, mine, into, count, i) for i in range(count)]
            shapes = [piece(lay, into, count, comm.index).shape for lay in lays]
            return torch.cat(comm.all_to_all(sent, shapes), mine.dims.index(dim))
    raise AssertionError(move.kind)


def _gathered(data: torch.Tensor, lays: Sequence[Lay], dim: str, comm: Comm) -> torch.Tensor:
    axis = lays[0].dims.index(dim)
    pieces = comm.all_gather_uneven(data.transpose(0, axis), [len(lay.along(dim)) for lay in lays])
    return torch.cat(pieces).transpose(0, axis)


def backward(
    held: Held, move: Move, axis: str, grid: Grid, comms: Comms, factor: float, ragged: Ragged, before: Held
) -> Held:
    """The gradient of what the tensor was `before` the move forward: as that lies, whatever arrives."""
    groups = grid.groups((axis,))
    lays = list(before.lays)
    for members in groups:
        came = [held.lays[x] for x in members]
        if move.kind in SUMS:
            ragged.check(came)
        check_back(came, move, [before.lays[x] for x in members])
        if move.kind == "root":
            for x in members:
                lays[x] = came[0]
    comm = _among(comms, groups)
    came = [held.lays[x] for x in comm.members]
    data = _carried_back(held.data, came, move, comm, before.lays[comm.members[comm.index]])
    return Held(tuple(lays), data if factor == 1 else data * factor)


def _carried_back(data: torch.Tensor, came: Sequence[Lay], move: Move, comm: Comm, like: Lay) -> torch.Tensor:
    mine, dim = came[comm.index], move.dim or ""
    match move.kind:
        case "none":
            return data
        case "zero":
            return data.new_zeros(like.shape)
        case "root":
            own = data if comm.index == 0 else data.new_zeros(came[0].shape)
            return comm.broadcast(own, 0)
        case "slice" | "pad":
            return arranged(data, mine, like)
        case "gather" | "exchange":
            together = joined(came, dim)
            want = like.with_places(dim, together.along(dim)) if move.kind == "exchange" else like
            found = _gathered(data, came, dim, comm)
            return arranged(arranged(found, together, want), want, like)
        case kind if kind in SUMS:
            total = comm.all_reduce(data) / (comm.size if kind in MEANS else 1)
            return arranged(total, mine, like)
    raise AssertionError(move.kind)
