"""What a simulation found, as data."""

from __future__ import annotations

from msgspec import Struct


class Difference(Struct, frozen=True):
    """A value that is not the single-device value. `what`: params, gradient, clip, master, random or skip.

    `device`: coordinates in mesh order. `weights` None concerns every group."""

    weights: str | None
    step: int
    what: str
    device: tuple[int, ...] | None
    element: int | None
    message: str


class Stop(Struct, frozen=True):
    """The step cannot be carried out for these weights (None: for the whole job)."""

    weights: str | None
    reason: str


class Outcome(Struct, frozen=True):
    """`differences` holds a few examples per group, step and kind, not every wrong value."""

    differences: tuple[Difference, ...] = ()
    stops: tuple[Stop, ...] = ()

    @property
    def right(self) -> bool:
        return not self.differences and not self.stops

    @property
    def stopped(self) -> Stop | None:
        """The first stop, if any."""
        return self.stops[0] if self.stops else None

    def wrong(self, weights: str) -> bool:
        """Whether a difference or a stop concerns these weights."""
        found = (*self.differences, *self.stops)
        return any(one.weights is None or one.weights == weights for one in found)
