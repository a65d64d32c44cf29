"""What a simulation found, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that is not the single-device value. `what`: params, gradient, clip, master, random or skip.

    `device`: coordinates in mesh order. `weights` None concerns every group."""

    weights: str | None
    step: int
    what: str
    device: tuple[int, ...] | None
    element: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The step cannot be carried out for these weights (None: for the whole job)."""

    weights: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
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
