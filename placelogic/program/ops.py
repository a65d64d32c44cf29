"""The step of one weight group: every operation there is, on one screen.

Axes are atoms, the axes that the mesh declares; an empty tuple means none. The syntax tree has the same
classes: there axes are references as they were written (`AxisRef`), and names of sizes are not yet looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from placelogic.program.expr import Expr
from placelogic.source import Span

Axes = tuple[str, ...]


class AxisRef(Struct, frozen=True):
    """An axis, or a product of axes, as it was written: `dp`, `edp * ep`. First factor slowest."""

    names: tuple[str, ...]
    span: Span


class Origin(Struct, frozen=True):
    """Where a thing comes from. `stated`: a person wrote it; else it was derived.

    `span` is in the checked file; `library` is the place inside an imported or standard
    strategy that it came through, if any."""

    span: Span
    stated: bool
    library: Span | None = None


class WithOrigin(Struct, frozen=True):
    """What was written, or derived, somewhere."""

    @property
    def span(self) -> Span:
        return self.origin.span  # type: ignore[attr-defined]


Subset = Literal["each", "but_last", "but_first", "first", "last", "index"]


class Loop(WithOrigin, frozen=True):
    """Runs `body` once per micro-batch of the subset, in order. `index` counts from 1 and the
    subset is empty when it exceeds M. Each turn computes a fresh gradient."""

    subset: Subset
    index: int | None
    body: tuple[Op, ...]
    origin: Origin


class Accumulate(WithOrigin, frozen=True):
    """Add the fresh gradient to the buffer (`replace`: overwrite it). Buffer None is the
    unnamed one; every buffer starts at zero. Ops before it act on the fresh gradient."""

    buffer: str | None
    replace: bool
    origin: Origin


class Reduce(WithOrigin, frozen=True):
    """Sum or average over every atom of `axes`; into a state cut there it is a reduce-scatter.
    `scattered`: leaves only the own shard valid, in a buffer that has room for all."""

    buffer: str | None
    axes: Axes
    op: Literal["sum", "mean"]
    scattered: bool
    origin: Origin


class GatherGradients(WithOrigin, frozen=True):
    axes: Axes
    origin: Origin


class Scale(WithOrigin, frozen=True):
    buffer: str | None
    factor: Expr
    origin: Origin


class ScaleLoss(WithOrigin, frozen=True):
    """Scale the part of the fresh gradient that comes from one loss term."""

    term: str | None
    factor: Expr
    origin: Origin


class Clip(WithOrigin, frozen=True):
    origin: Origin


class Skip(WithOrigin, frozen=True):
    """Skip the update when any gradient overflowed, as seen over `axes` (none: by each device)."""

    axes: Axes
    origin: Origin


class Update(WithOrigin, frozen=True):
    buffer: str | None
    origin: Origin


class GatherParams(WithOrigin, frozen=True):
    """Every device takes each element of the compute copy from its owner along `axes`."""

    axes: Axes
    origin: Origin


class BroadcastParams(WithOrigin, frozen=True):
    axes: Axes
    root: int
    origin: Origin


class Refresh(WithOrigin, frozen=True):
    """Compute copy <- master copy, where the master lies."""

    origin: Origin


class OffloadGradients(WithOrigin, frozen=True):
    origin: Origin


class FetchParams(WithOrigin, frozen=True):
    origin: Origin


Op = (
    Loop
    | Accumulate
    | Reduce
    | GatherGradients
    | Scale
    | ScaleLoss
    | Clip
    | Skip
    | Update
    | GatherParams
    | BroadcastParams
    | Refresh
    | OffloadGradients
    | FetchParams
)


def flat(ops: tuple[Op, ...]) -> Iterator[Op]:
    """Every operation, loop bodies included, loops themselves left out."""
    for op in ops:
        if isinstance(op, Loop):
            yield from flat(op.body)
        else:
            yield op


class StatedLine(Struct, frozen=True):
    """A `sync` line that shaped a derived step, also where it left no operation behind (`by none`).
    `axis` None: over micro-batches. Only reports read it."""

    axis: str | None
    origin: Origin


class Step(Struct, frozen=True):
    """What happens to one trained weight group in one step, after its backward passes.

    Routing to owners is part of the backward pass: it is no op, and happens before all.
    `stated`: a `step` block replaced everything; else single ops and `lines` tell by their origin."""

    weights: str
    ops: tuple[Op, ...]
    stated: bool
    origin: Origin
    lines: tuple[StatedLine, ...] = ()


class GlobalNorm(Struct, frozen=True):
    """Clipping by the global norm. `listed` None: derived, counts each element once.
    Else, per weights: the atoms over which its squares are summed, and where that was said."""

    listed: Mapping[str, tuple[Axes, Origin]] | None
    origin: Origin
