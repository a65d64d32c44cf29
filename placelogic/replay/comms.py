"""Collectives of one rank, and what they carry.

Every rank walks through the same operations in the same order, so a process group is made the first time
that all of them come to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

import torch
import torch.distributed as dist

# Renamed in torch 2.13.
_reduce_scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)


class Comm:
    """One process group, seen from a rank that is in it. `members`: ranks, in the order of the axes; torch
    keeps its own order, by rank."""

    def __init__(self, members: Sequence[int], rank: int, group: dist.ProcessGroup | None, log: Log) -> None:
        self.members = tuple(members)
        self.index = self.members.index(rank)
        self._at = [sorted(self.members).index(member) for member in self.members]
        self._group = group
        self._log = log

    @property
    def size(self) -> int:
        return len(self.members)

    def all_reduce(self, tensor: torch.Tensor, op: str = "sum") -> torch.Tensor:
        """A new tensor; all of the group have equal shapes."""
        if self.size == 1:
            return tensor
        found = tensor.detach().clone().contiguous()
        dist.all_reduce(found, {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}[op], group=self._group)
        self._log.add("all-reduce", found)
        return found

    def all_gather(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """What every member gave, in order; equal shapes."""
        if self.size == 1:
            return [tensor]
        tensor = tensor.detach().contiguous()
        found = [torch.empty_like(tensor) for _ in self.members]
        dist.all_gather(found, tensor, group=self._group)
        self._log.add("all-gather", *found)
        return [found[place] for place in self._at]

    def all_gather_uneven(self, tensor: torch.Tensor, lengths: Sequence[int]) -> list[torch.Tensor]:
        """As `all_gather` for first dimensions that differ, padded as shards of uneven size are."""
        found = self.all_gather(padded(tensor, max(lengths)))
        return [one[:length] for one, length in zip(found, lengths)]

    def reduce_scatter(self, pieces: Sequence[torch.Tensor]) -> torch.Tensor:
        """The sum of the pieces that all members have for this one; equal shapes."""
        if self.size == 1:
            return pieces[0]
        whole = torch.cat([pieces[self._at.index(place)].detach() for place in range(self.size)])
        found = torch.empty_like(pieces[0])
        _reduce_scatter(found, whole, group=self._group)
        self._log.add("reduce-scatter", whole)
        return found

    def all_to_all(self, pieces: Sequence[torch.Tensor], shapes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
        """`pieces[i]` goes to member i; what every member sent to this one, of these shapes."""
        if self.size == 1:
            return list(pieces)
        order = sorted(range(self.size), key=lambda place: self.members[place])
        sent = torch.cat([pieces[place].detach().reshape(-1) for place in order])
        sizes = [prod(shapes[place]) for place in order]
        found = sent.new_empty(sum(sizes))
        dist.all_to_all_single(found, sent, sizes, [pieces[place].numel() for place in order], group=self._group)
        self._log.add("all-to-all", sent)
        came = dict(zip(order, found.split(sizes)))
        return [came[place].reshape(shape) for place, shape in enumerate(shapes)]

    def broadcast(self, tensor: torch.Tensor, root: int) -> torch.Tensor:
        """What the member number `root` has; equal shapes."""
        if self.size == 1:
            return tensor
        found = tensor.detach().clone().contiguous()
        dist.broadcast(found, self.members[root], group=self._group)
        self._log.add("broadcast", found)
        return found


class Log:
    """Logical payload by purpose and kind: the whole tensor that a collective is about, in bytes."""

    def __init__(self) -> None:
        self.bytes: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.on = False
        self._purpose = "other"

    def clear(self) -> None:
        self.bytes.clear()
        self.calls.clear()

    @contextmanager
    def purpose(self, name: str) -> Iterator[None]:
        before, self._purpose = self._purpose, name
        try:
            yield
        finally:
            self._purpose = before

    def add(self, kind: str, *tensors: torch.Tensor) -> None:
        if self.on:
            self.bytes[self._purpose, kind] += sum(t.numel() * t.element_size() for t in tensors)
            self.calls[self._purpose, kind] += 1


class Comms:
    """All process groups of one rank."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        self.world = world
        self.log = Log()
        self._known: dict[tuple[tuple[int, ...], ...], Comm | None] = {}

    def among(self, groups: Sequence[Sequence[int]]) -> Comm | None:
        """The one of these process groups that this rank is in. All ranks must ask alike."""
        key = tuple(tuple(group) for group in groups)
        if key not in self._known:
            self._known[key] = None
            for members in key:
                made = self._make(members)
                if self.rank in members:
                    self._known[key] = Comm(members, self.rank, made, self.log)
        return self._known[key]

    def everyone(self) -> Comm:
        comm = self.among([range(self.world)])
        assert comm is not None
        return comm

    def _make(self, members: tuple[int, ...]) -> dist.ProcessGroup | None:
        if len(members) == 1:
            return None
        if members == tuple(range(self.world)):
            return dist.group.WORLD
        return dist.new_group(list(members))

    def close(self) -> None:
        for comm in self._known.values():
            if comm is not None and comm._group is not None and comm.size < self.world:
                dist.destroy_process_group(comm._group)


def padded(tensor: torch.Tensor, length: int) -> torch.Tensor:
    if tensor.shape[0] == length:
        return tensor
    return torch.cat([tensor, tensor.new_zeros(length - tensor.shape[0], *tensor.shape[1:])])
