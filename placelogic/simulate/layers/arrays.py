"""Local arrays: numbers with named dimensions, each place labelled by where it lies in the whole tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME

Labels = tuple[int, ...]


class Array:
    """`labels[i]`: which places of dimension `dims[i]` are here, in order. `data`: row-major."""

    __slots__ = ("data", "dims", "labels")

    def __init__(self, dims: tuple[str, ...], labels: tuple[Labels, ...], data: list[int]) -> None:
        assert len(data) == prod(map(len, labels)), "an array of another size than its labels"
        self.dims = dims
        self.labels = labels
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.labels))

    def along(self, dim: str) -> Labels:
        return self.labels[self.dims.index(dim)]

    def has(self, dim: str) -> bool:
        return dim in self.dims

    def places(self) -> Iterator[tuple[int, ...]]:
        """The labels of every place, in the order of the data."""
        return product(*self.labels)

    def map(self, change: Callable[[int], int]) -> Array:
        return Array(self.dims, self.labels, [change(v) % PRIME for v in self.data])

    def lookup(self) -> dict[tuple[int, ...], int]:
        return dict(zip(self.places(), self.data))


def filled(dims: Sequence[str], labels: Sequence[Labels], value: Callable[[tuple[int, ...]], int]) -> Array:
    places = product(*labels)
    return Array(tuple(dims), tuple(labels), [value(place) % PRIME for place in places])


def zeros(like: Array) -> Array:
    return Array(like.dims, like.labels, [0] * len(like.data))


def added(arrays: Sequence[Array]) -> Array:
    """By position, as a collective adds; the labels are those of the first. Raises GroupStop."""
    first = arrays[0]
    if any(array.shape != first.shape for array in arrays):
        raise GroupStop("arrays of different sizes are added up")
    if len(arrays) == 1:
        return first
    return Array(first.dims, first.labels, [sum(column) % PRIME for column in zip(*(a.data for a in arrays))])


def same_places(one: Array, two: Array) -> None:
    """Raises GroupStop where two tensors do not lie alike."""
    if one.dims != two.dims or one.labels != two.labels:
        raise GroupStop("two tensors that meet do not lie alike")


def joined(arrays: Sequence[Array], dim: str) -> Array:
    """The pieces of one dimension, one after the other. Raises GroupStop."""
    first = arrays[0]
    axis = first.dims.index(dim)
    others = [tuple(labels for i, labels in enumerate(array.labels) if i != axis) for array in arrays]
    if any(len(a) != len(b) for one in others for a, b in zip(one, others[0])):
        raise GroupStop("pieces of different sizes are put together")
    labels = list(first.labels)
    if len({label for array in arrays for label in array.labels[axis]}) < sum(len(a.labels[axis]) for a in arrays):
        raise GroupStop(f"pieces of {dim} that are put together overlap")
    labels[axis] = tuple(label for array in arrays for label in array.labels[axis])
    inner = prod(map(len, first.labels[axis + 1 :]))
    outer = prod(map(len, first.labels[:axis]))
    data: list[int] = []
    for o in range(outer):
        for array in arrays:
            run = len(array.labels[axis]) * inner
            data += array.data[o * run : (o + 1) * run]
    return Array(first.dims, tuple(labels), data)


def chosen(array: Array, dim: str, positions: Sequence[int]) -> Array:
    """The places at these positions of one dimension."""
    axis = array.dims.index(dim)
    labels = list(array.labels)
    labels[axis] = tuple(array.labels[axis][p] for p in positions)
    inner = prod(map(len, array.labels[axis + 1 :]))
    outer = prod(map(len, array.labels[:axis]))
    length = len(array.labels[axis])
    data: list[int] = []
    for o in range(outer):
        for p in positions:
            start = (o * length + p) * inner
            data += array.data[start : start + inner]
    return Array(array.dims, tuple(labels), data)


def piece(array: Array, dim: str, count: int, mine: int) -> Array:
    """One of `count` equal pieces of a dimension. Raises GroupStop."""
    length = len(array.along(dim))
    if length % count:
        raise GroupStop(f"{length} places of {dim} do not divide into {count} pieces")
    size = length // count
    return chosen(array, dim, range(mine * size, (mine + 1) * size))


def arranged(array: Array, dim: str, labels: Labels) -> Array:
    """The same with these places of a dimension: those that are missing are zeros, others are left out."""
    have = array.along(dim)
    if have == labels:
        return array
    rank = {label: i for i, label in enumerate(have)}
    axis = array.dims.index(dim)
    new = list(array.labels)
    new[axis] = labels
    known = [rank.get(label) for label in labels]
    inner = prod(map(len, array.labels[axis + 1 :]))
    outer = prod(map(len, array.labels[:axis]))
    data: list[int] = []
    for o in range(outer):
        for p in known:
            start = 0 if p is None else (o * len(have) + p) * inner
            data += [0] * inner if p is None else array.data[start : start + inner]
    return Array(array.dims, tuple(new), data)
