"""The plan of the layers: what crosses between devices at every tensor, forward and backward.

Like a step, it is derived where nothing is stated (placelogic/layers), and what a person says an
implementation does stands in it instead. Proof, simulation and costs read the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from placelogic.program.expr import Expr
from placelogic.program.ops import Origin

MoveKind = Literal[
    "none", "sum", "mean", "scatter", "scatter_mean", "gather", "slice", "pad", "exchange", "zero", "root", "reduce"
]


class Move(Struct, frozen=True):
    """What happens to the local arrays of one tensor along one axis.

    `sum`, `mean`: add up (average) what all have; `scatter`, `scatter_mean`: the same, then keep one's own
    piece of `dim`; `gather`: put the pieces of `dim` together; `slice`: keep one's own piece; `pad`: zeros for
    the pieces of others; `exchange`: gather `dim` and keep one's piece of `into`; `root`: what device 0 has;
    `reduce`: device 0 has the sum, the others zeros; `zero`: nothing. `scale` multiplies what results."""

    kind: MoveKind
    origin: Origin
    dim: str | None = None
    into: str | None = None
    scale: Expr | None = None

    @property
    def idle(self) -> bool:
        return self.kind == "none" and self.scale is None


class Boundary(Struct, frozen=True):
    """Where a tensor changes how it lies along one axis. `consumers`: the readers (operation, place among its inputs)
    that get it so; None: all, right where it is produced. Backward, what arrives from them is added up
    first."""

    block: str
    tensor: str
    consumers: tuple[tuple[int, int], ...] | None
    axis: str
    forward: Move
    backward: Move


class Work(Struct, frozen=True):
    """How one operation is shared out along one axis. `weights`: the dimension its weights are cut on.
    `pieces`: the dimension of which it makes (or reads) only its own piece although its input is whole."""

    weights: str | None = None
    pieces: str | None = None


class Dealt(Struct, frozen=True):
    """A dimension of a tensor that is dealt out evenly along a product of axes. `twice`: each device has two
    pieces of it, one from each end, as a ring of causal attention has."""

    dim: str
    axes: tuple[str, ...]
    twice: bool
    block: str
    tensor: str


class Plan(Struct, frozen=True):
    """`boundaries` in the order in which they run forward, per block. `shapes`: (block, tensor) -> axis -> the
    dimension it is cut on where it is produced, after boundaries for all. `work`: (block, operation) -> axis ->
    how it is shared out. `repeats` are the blocks' own."""

    boundaries: tuple[Boundary, ...] = ()
    shapes: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    work: Mapping[tuple[str, int], Mapping[str, Work]] = field(default_factory=dict)
    moves: Mapping[tuple[str, int], Mapping[str, tuple[Move, Move]]] = field(default_factory=dict)
    """What a collective among the operations does along each of its axes, forward and backward."""

    def at(self, block: str, tensor: str, reader: tuple[int, int] | None) -> tuple[Boundary, ...]:
        """The boundaries of one tensor for one reader (None: where it is produced)."""
        return tuple(
            b
            for b in self.boundaries
            if b.block == block
            and b.tensor == tensor
            and (b.consumers is None if reader is None else b.consumers is not None and reader in b.consumers)
        )
