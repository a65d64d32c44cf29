"""What a spec without blocks says of the gradient that reaches some weights, done to the gradients of this rank.

Backward is linear in what arrives: what is done to that is done to the gradients of the weights."""

from __future__ import annotations

import torch

from placelogic.program.habits import Override
from placelogic.replay.comms import Comms, padded
from placelogic.replay.data import Data
from placelogic.replay.group import Group
from placelogic.run.stop import GroupStop


def arrive(
    lines: tuple[Override, ...], group: Group, comms: Comms, data: Data, layers: list[torch.Tensor]
) -> list[torch.Tensor]:
    """The gradients of one group, one per loss term, as they are after these lines. Raises GroupStop."""
    return [_arrived(lines, group, comms, data, term, array) for term, array in enumerate(layers)]


def _arrived(
    lines: tuple[Override, ...], group: Group, comms: Comms, data: Data, term: int, array: torch.Tensor
) -> torch.Tensor:
    for line in lines:
        for axis in line.axes if line.by in ("sum", "mean") else ():
            comm = comms.among(group.groups((axis,)))
            if comm is not None:
                length = max(len(group.computed_local[y]) for y in comm.members)
                total = comm.all_reduce(padded(array, length))[: len(array)]
                array = total / comm.size if line.by == "mean" else total
        if line.by == "zero":
            array = array * 0
        elif line.scale is not None:
            try:
                array = array * float(data.work.value(line.scale, term))
            except ZeroDivisionError:
                raise GroupStop("a factor divides by zero") from None
    return array
