"""Which places of a tensor each device has, known to every device; the numbers are the affair of who computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from placelogic.run.stop import GroupStop

Labels = tuple[int, ...]
"""Places of one dimension of a whole tensor, in order."""
Data = TypeVar("Data")


class Lay(Struct, frozen=True):
    """`labels[i]`: which places of dimension `dims[i]` of the whole tensor are here, in order."""

    dims: tuple[str, ...]
    labels: tuple[Labels, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.labels))

    def along(self, dim: str) -> Labels:
        return self.labels[self.dims.index(dim)]

    def with_places(self, dim: str, labels: Labels) -> Lay:
        axis = self.dims.index(dim)
        return Lay(self.dims, (*self.labels[:axis], labels, *self.labels[axis + 1 :]))

    def of(self, dims: Sequence[str]) -> Lay:
        """With some of its dimensions, in this order."""
        return self if self.dims == tuple(dims) else Lay(tuple(dims), tuple(map(self.along, dims)))


class Tensor(Struct, Generic[Data], frozen=True):
    """`lays`: what each device has of it. `data`: the numbers of all devices, those of one rank, or their name."""

    lays: tuple[Lay, ...]
    data: Data

    @property
    def dims(self) -> tuple[str, ...]:
        return self.lays[0].dims


def same_shapes(lays: Sequence[Lay]) -> None:
    """Collectives add by position. Raises GroupStop."""
    if any(lay.shape != lays[0].shape for lay in lays):
        raise GroupStop("arrays of different sizes are added up")


def joined(lays: Sequence[Lay], dim: str) -> Lay:
    """The pieces of one dimension, one after the other. Raises GroupStop."""
    first = lays[0]
    axis = first.dims.index(dim)
    for lay in lays:
        if any(i != axis and n != m for i, (n, m) in enumerate(zip(lay.shape, first.shape))):
            raise GroupStop("pieces of different sizes are put together")
    together = tuple(label for lay in lays for label in lay.labels[axis])
    if len(set(together)) < len(together):
        raise GroupStop(f"pieces of {dim} that are put together overlap")
    return first.with_places(dim, together)


def part(labels: Labels, count: int, mine: int) -> Labels:
    """One of `count` pieces of these places, all of one size."""
    size = len(labels) // count
    return labels[mine * size : (mine + 1) * size]


def piece(lay: Lay, dim: str, count: int, mine: int) -> Lay:
    """One of `count` equal pieces of a dimension. Raises GroupStop."""
    labels = lay.along(dim)
    if len(labels) % count:
        raise GroupStop(f"{len(labels)} places of {dim} do not divide into {count} pieces")
    return lay.with_places(dim, part(labels, count, mine))


def has_all(lay: Lay, like: Lay) -> None:
    """Raises GroupStop."""
    if any(set(want) - set(have) for have, want in zip(lay.labels, like.labels)):
        raise GroupStop("a gradient lacks pieces of its tensor")
