"""A mixture of experts: every token visits one, on the device that holds it; devices send what they have,
unevenly."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn

from placelogic.replay.functions import across
from placelogic.replay.native.transformer import Widths


def _exchange(rows: torch.Tensor, given: list[int], got: list[int], group: dist.ProcessGroup) -> torch.Tensor:
    """An all-to-all of rows in uneven pieces; gradients take the way back."""
    return across(rows, lambda r: _exchanged(r, given, got, group), lambda g: _exchanged(g, got, given, group))


def _exchanged(rows: torch.Tensor, given: list[int], got: list[int], group: dist.ProcessGroup) -> torch.Tensor:
    found = rows.new_empty(sum(got), *rows.shape[1:])
    dist.all_to_all_single(found, rows.contiguous(), got, given, group=group)
    return found


class Mixture(nn.Module):
    """`group`: devices that hold the experts in equal parts; None: all are here. The router picks one expert
    per token and scales what it makes by the probability."""

    def __init__(self, sizes: Widths, group: dist.ProcessGroup | None = None) -> None:
        super().__init__()
        self._group = group
        self.own = sizes.experts // (group.size() if group is not None else 1)
        self.router = nn.Linear(sizes.hidden, sizes.experts, bias=False)
        self.expert_in = nn.Parameter(torch.zeros(self.own, sizes.ffn, sizes.hidden))
        self.expert_out = nn.Parameter(torch.zeros(self.own, sizes.hidden, sizes.ffn))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(0, 1)
        chance, chosen = self.router(rows).softmax(-1).max(-1)
        order = chosen.argsort(stable=True)
        made = self._visit(rows[order], chosen[order])
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        return (made[back] * chance[:, None]).view_as(x)

    def _visit(self, rows: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Rows sorted by their expert."""
        if self._group is None:
            return self._experts(rows, chosen)
        size = self._group.size()
        given = torch.bincount(chosen // self.own, minlength=size)
        got = torch.empty_like(given)
        dist.all_to_all_single(got, given, group=self._group)
        there, here = given.tolist(), got.tolist()
        which = _exchanged(chosen, there, here, self._group) % self.own
        arrived = _exchange(rows, there, here, self._group)
        return _exchange(self._experts(arrived, which), here, there, self._group)

    def _experts(self, rows: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        inner = torch.tanh(torch.einsum("nd,efd->nef", rows, self.expert_in))
        every = torch.einsum("nef,edf->ned", inner, self.expert_out)
        return every[torch.arange(len(rows)), chosen]
