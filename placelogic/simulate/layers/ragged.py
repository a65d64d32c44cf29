"""Rows of tokens that were sent to experts: what cannot be added up by position."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from placelogic.run.stop import GroupStop
from placelogic.simulate.layers.habits import Lies


class Ragged(Struct, frozen=True):
    """Of tensors that start with experts each device has rows for as many tokens as were sent to them: which token
    a row is of differs between devices that have other experts, or other tokens. `tokens`: the dimensions of both."""

    experts: frozenset[str] = frozenset()
    tokens: frozenset[str] = frozenset()

    def check(self, arrays: Sequence[Lies]) -> None:
        """Raises GroupStop where rows of different tokens would be added up."""
        first = arrays[0]
        if not first.dims or first.dims[0] not in self.experts:
            return
        for dim in self.tokens.intersection(first.dims):
            if any(array.along(dim) != first.along(dim) for array in arrays):
                raise GroupStop("rows of different tokens, sent to different experts, are added up")
