"""A tensor on all devices: which places each of them has, and the numbers that this rank has."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from msgspec import Struct

from placelogic.replay.blocks.lay import Lay
from placelogic.simulate.layers.arrays import Labels


class Held(Struct, frozen=True):
    """`lays`: of every device; `data`: what this rank has."""

    lays: tuple[Lay, ...]
    data: torch.Tensor


def cut(data: torch.Tensor, lay: Lay, dim: str, count: int, mine: int) -> torch.Tensor:
    size = len(lay.along(dim)) // count
    return data.narrow(lay.dims.index(dim), mine * size, size)


def arranged(data: torch.Tensor, lay: Lay, like: Lay) -> torch.Tensor:
    """The places of `like`: those that are missing are zeros, others are left out."""
    for axis, (have, want) in enumerate(zip(lay.labels, like.labels)):
        if have == want:
            continue
        rank = {label: i for i, label in enumerate(have)}
        known = [rank.get(label, -1) for label in want]
        data = data.index_select(axis, torch.tensor([max(k, 0) for k in known], dtype=torch.long))
        if -1 in known:
            shape = [1] * data.dim()
            shape[axis] = len(known)
            data = data * torch.tensor([float(k >= 0) for k in known]).reshape(shape)
    return data


def at_places(whole: torch.Tensor, labels: Sequence[Labels]) -> torch.Tensor:
    """The entries of a whole tensor at these places."""
    for axis, places in enumerate(labels):
        if places != tuple(range(whole.shape[axis])):
            whole = whole.index_select(axis, torch.tensor(places, dtype=torch.long))
    return whole
