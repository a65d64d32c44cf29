"""What was recorded of a training step, as plain data."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

Axes = tuple[str, ...]

Phase = Literal["forward", "backward", "between", "optimizer"]
"""`between`: after the backward pass, outside of the optimizer. The loss counts as forward."""

Purpose = Literal["weights", "model", "scalar", "control"]
"""`model`: the forward pass, the loss and the formulas of the backward pass: activations, or gathered parameters;
`weights`: what is done with gradients and parameters otherwise; `scalar`: the same with single numbers, or with norms;
`control`: no floating-point numbers."""


class Event(Struct, frozen=True):
    """One collective, or one transfer between two ranks, in the order they were issued.

    `op`: sum, avg, max, ...; None where nothing is reduced. `axes`: along which its ranks lie; None when they
    are no group of the mesh. `bytes`: the whole message (gathered, or before it is scattered), which is
    `elements` numbers in `tensors` tensors. `purpose`: judged from where in the step it was issued, and
    from the dtype. `root`: of a broadcast; `peer`: of a transfer. `factor`: what the reduced gradient was
    multiplied by since it was computed or last communicated (None: unknown). `again`: the very same tensor was
    reduced like this before, and is unchanged, as DTensor does for every use of a gradient in parts."""

    order: int
    operation: str
    op: str | None
    ranks: tuple[int, ...]
    axes: Axes | None
    bytes: int
    elements: int
    tensors: int
    dtype: str
    phase: Phase
    purpose: Purpose
    root: int | None = None
    peer: int | None = None
    factor: Fraction | None = Fraction(1)
    parent: int | None = None
    again: bool = False


class Fed(Struct, frozen=True):
    """A gradient as the optimizer was given it: `factor` is what it was multiplied by since it was last
    communicated, by event number `parent` (None: never). `computed`: also multiplied by a number that was
    computed in the step, as clipping does."""

    elements: int
    factor: Fraction | None
    parent: int | None
    computed: bool
