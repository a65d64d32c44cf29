"""Attention over shares of the sequence, in three ways: gathering keys and values, passing them round a ring,
and trading the sequence for heads (Ulysses). torch's own context parallelism needs CUDA kernels; these do not."""

from __future__ import annotations

import torch
import torch.distributed as dist

from placelogic.replay.functions import across
from placelogic.replay.native.transformer import masked

KINDS = ("all-gather", "ring", "Ulysses")


def _gathered(share: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """Shares of dimension 2 are put together; what flows back is summed where it belongs."""

    def there(share: torch.Tensor) -> torch.Tensor:
        pieces = [torch.empty_like(share, memory_format=torch.contiguous_format) for _ in range(group.size())]
        dist.all_gather(pieces, share.contiguous(), group=group)
        return torch.cat(pieces, 2)

    def back(gradient: torch.Tensor) -> torch.Tensor:
        total = gradient.contiguous().clone()
        dist.all_reduce(total, group=group)
        return total.chunk(group.size(), 2)[dist.get_rank(group)].contiguous()

    return across(share, there, back)


def _next(tensor: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    """To the next device of the ring, from the one before; gradients go the other way round."""
    return across(tensor, lambda t: _passed(t, group, 1), lambda g: _passed(g, group, -1))


def _passed(tensor: torch.Tensor, group: dist.ProcessGroup, by: int) -> torch.Tensor:
    rank, size = dist.get_rank(group), group.size()
    found = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    to, source = (dist.get_global_rank(group, (rank + step) % size) for step in (by, -by))
    waiting = [dist.isend(tensor.contiguous(), to, group=group), dist.irecv(found, source, group=group)]
    for one in waiting:
        if one is not None:
            one.wait()
    return found


def _trade(tensor: torch.Tensor, group: dist.ProcessGroup, out: int, back: int) -> torch.Tensor:
    """An all-to-all: cut along `out`, put together along `back`."""
    return across(tensor, lambda t: _traded(t, group, out, back), lambda g: _traded(g, group, back, out))


def _traded(tensor: torch.Tensor, group: dist.ProcessGroup, out: int, back: int) -> torch.Tensor:
    given = torch.stack(tensor.chunk(group.size(), out)).contiguous()
    found = torch.empty_like(given)
    dist.all_to_all_single(found, given, group=group)
    return torch.cat(list(found), back)


class SequenceShare:
    """Causal attention of this device's share of the sequence, (batch, heads, share, width)."""

    def __init__(self, kind: str, group: dist.ProcessGroup) -> None:
        self._group = group
        self._rank = dist.get_rank(group)
        self._inner = {"all-gather": self._gathered, "ring": self._ring, "Ulysses": self._ulysses}[kind]

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self._inner(q, k, v)

    def _gathered(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        whole = [_gathered(share, self._group) for share in (k, v)]
        return masked(q, whole[0], whole[1], self._rank * q.shape[2])

    def _ulysses(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        heads = [_trade(share, self._group, 1, 2) for share in (q, k, v)]
        return _trade(masked(heads[0], heads[1], heads[2], 0), self._group, 2, 1)

    def _ring(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Softmax over blocks as they come by, kept in scale by the largest score so far."""
        size, share = self._group.size(), q.shape[2]
        place = torch.arange(share) + self._rank * share
        highest = torch.full(q.shape[:-1], float("-inf"))
        total, weighted = torch.zeros(q.shape[:-1]), torch.zeros_like(q)
        for turn in range(size):
            owner = (self._rank - turn) % size
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
            hidden = (torch.arange(share) + owner * share)[None] > place[:, None]
            scores = scores.masked_fill(hidden, float("-inf"))
            if owner <= self._rank:  # else all of it lies in the future
                now = torch.maximum(highest, scores.amax(-1).detach())
                kept, new = (highest - now).exp(), (scores - now[..., None]).exp()
                total = total * kept + new.sum(-1)
                weighted = weighted * kept[..., None] + new @ v
                highest = now
            else:  # nothing, but gradients must travel round the whole ring
                weighted = weighted + 0 * (k.sum() + v.sum())
            if turn < size - 1:
                k, v = _next(k, self._group), _next(v, self._group)
        return weighted / total[..., None]
