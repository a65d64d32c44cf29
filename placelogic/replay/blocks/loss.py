"""The loss of each token, over a vocabulary that devices may share out."""

from __future__ import annotations

import torch
from msgspec import Struct

from placelogic.replay.blocks.held import at_places
from placelogic.replay.blocks.lay import Lay
from placelogic.replay.comms import Comm
from placelogic.replay.data import generator
from placelogic.run.stop import GroupStop


class Loss(Struct, frozen=True):
    """Cross entropy on one device. `comm`: the devices that share out the vocabulary with this one."""

    lay: Lay
    vocabulary: str
    wanted: torch.Tensor
    comm: Comm | None

    @property
    def _at(self) -> int:
        return self.lay.dims.index(self.vocabulary)

    def _picked(self, like: torch.Tensor) -> torch.Tensor:
        """1 where a logit is that of the wanted word."""
        labels = torch.tensor(self.lay.along(self.vocabulary), dtype=torch.long)
        shape = [1] * like.dim()
        shape[self._at] = len(labels)
        return (self.wanted.unsqueeze(self._at) == labels.reshape(shape)).to(like.dtype)

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss, and the logarithm of the sum over the vocabulary."""
        at = self._at
        highest = logits.amax(at, keepdim=True)
        if self.comm is not None:
            highest = self.comm.all_reduce(highest, "max")
        total = (logits - highest).exp().sum(at)
        hit = (logits * self._picked(logits)).sum(at)
        if self.comm is not None:
            total, hit = self.comm.all_reduce(total), self.comm.all_reduce(hit)
        level = total.log() + highest.squeeze(at)
        return level - hit, level

    def backward(self, logits: torch.Tensor, level: torch.Tensor, arrived: torch.Tensor) -> torch.Tensor:
        """Nothing crosses between devices."""
        chances = (logits - level.unsqueeze(self._at)).exp()
        return (chances - self._picked(logits)) * arrived.unsqueeze(self._at)


def words(stream: tuple[object, ...], sizes: dict[str, int], lay: Lay, vocabulary: str) -> torch.Tensor:
    """The wanted word of every token that is here."""
    dims = [dim for dim in lay.dims if dim != vocabulary]
    drawn = torch.randint(
        sizes[vocabulary], tuple(sizes[dim] for dim in dims), generator=generator("words", *stream), device="cpu"
    )
    return at_places(drawn.to(torch.get_default_device()), [lay.along(dim) for dim in dims])


def check(lays: list[Lay], vocabulary: str) -> None:
    """Raises GroupStop where devices that share out a vocabulary have different tokens."""
    rest = [tuple(places for dim, places in zip(lay.dims, lay.labels) if dim != vocabulary) for lay in lays]
    if any(one != rest[0] for one in rest):
        raise GroupStop("devices that share out a vocabulary have different tokens")
