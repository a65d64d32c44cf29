"""Tensors put together along their last dimensions, on one device."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.program import block as bl
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME
from placelogic.simulate.layers.arrays import Array, filled
from placelogic.simulate.layers.functions import Element, Local


def put_together(local: Local, op: bl.Concat, ins: Sequence[Array]) -> Array:
    """Raises GroupStop where a part is not all there, or lies otherwise than the first."""
    first = ins[0]
    known = []
    for one in ins:
        if one.labels[-1] != tuple(range(local.sizes[one.dims[-1]])):
            raise GroupStop("a part of what is put together is missing")
        if any(one.along(dim) != first.along(dim) for dim in one.dims[:-1]):
            raise GroupStop("two tensors that are put together do not lie alike")
        known.append((one.lookup(), [first.dims.index(dim) for dim in one.dims[:-1]], len(one.labels[-1])))
    whole = sum(size for *_, size in known)

    def value(place: Element) -> int:
        at = place[-1]
        for numbers, where, size in known:
            if at < size:
                return numbers[(*(place[i] for i in where), at)]
            at -= size
        raise AssertionError(place)

    return filled((*first.dims[:-1], op.into), (*first.labels[:-1], tuple(range(whole))), value)


def taken_apart(local: Local, ins: Sequence[Array], arrived: Array) -> list[Array]:
    """The gradient of each part: its piece, added up along the dimensions that it does not have."""
    found, start = [], 0
    for one in ins:
        size = len(one.labels[-1])
        where = [arrived.dims.index(dim) for dim in one.dims[:-1]]
        back = dict.fromkeys(one.places(), 0)
        for place, value in zip(arrived.places(), arrived.data):
            if start <= place[-1] < start + size:
                back[(*(place[i] for i in where), place[-1] - start)] += value
        found.append(Array(one.dims, one.labels, [value % PRIME for value in back.values()]))
        start += size
    return found
