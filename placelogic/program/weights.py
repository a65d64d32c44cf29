"""Weight groups, and how each of their four states lies on the mesh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from placelogic.program.catalog import Needs
from placelogic.program.expr import Expr
from placelogic.program.ops import Axes, Origin
from placelogic.source import Span

Letter = Literal["S", "S*"]


class Cut(Struct, frozen=True):
    """One S or S* entry of a layout: `axes` (an atom, or a product by its row-major index)
    cut dimension `dim`. `dim` None: a dimension of its own, that nothing else cuts. `buffer`: the name of a flat buffer
    that several weights share, `members`, in the order in which they are declared."""

    axes: Axes
    letter: Letter
    dim: str | None
    origin: Origin
    buffer: str | None = None
    members: tuple[str, ...] = ()

    @property
    def dimension(self) -> str:
        """A name equal for cuts of the same dimension. Unnamed cuts get `@axes`; a buffer is what is in it."""
        if len(self.members) > 1:
            return f"flat of {', '.join(self.members)}"
        return self.dim if self.dim is not None else "@" + "*".join(self.axes)


def is_flat(dimension: str) -> bool:
    """Whether it is that of a flat buffer."""
    return dimension == "flat" or dimension.startswith("flat of ")


class Layout(Struct, frozen=True):
    """How one state of one weight group lies. Atoms not cut are R (every device holds all).
    Cuts of one dimension nest in the order listed, first one outermost.

    `host`: O, kept on the host as the cuts say. `materialized`: the origin of an M, if any.
    `reshard`: the value of reshard_after_forward, where stated (costs only)."""

    cuts: tuple[Cut, ...] = ()
    host: Origin | None = None
    materialized: Origin | None = None
    reshard: Expr | None = None

    def cut(self, axis: str) -> Cut | None:
        """The cut that this atom takes part in, or None where the state is whole along it."""
        for cut in self.cuts:  # asked thousands of times of one program
            if axis in cut.axes:
                return cut
        return None

    def stacked(self, axis: str) -> tuple[Cut, ...]:
        """The cuts of the dimension that `axis` cuts, outermost first, up to and including its
        own: together they decide which coordinate along `axis` holds an element."""
        own = self.cut(axis)
        if own is None:
            return ()
        same = [cut for cut in self.cuts if cut.dimension == own.dimension]
        return tuple(same[: same.index(own) + 1])


class Uses(Struct, frozen=True):
    """Weights that live only on the first and/or last stage of `axis`. With both, they are tied:
    each end computes a gradient of its own, and they add up.

    Members along the axis: first is 0, last is N-1 (0 under a V-shaped schedule)."""

    axis: str
    first: bool
    last: bool
    vee: bool
    span: Span

    def last_stage(self, size: Mapping[str, int]) -> int:
        """Its coordinate along the axis."""
        return 0 if self.vee else size[self.axis] - 1


class Optimizer(Struct, frozen=True):
    """`block`: elements of the blocks that it needs, where that is said; `along`: the dimensions of a row. `gathers`:
    axes over which it gathers what it needs for its update, and keeps its own part of what comes out."""

    name: str
    needs: Needs
    origin: Origin
    block: int | None = None
    along: tuple[str, ...] = ()
    gathers: Axes = ()

    @property
    def needed(self) -> str:
        """What it needs, in words."""
        if self.block is not None:
            return f"whole blocks of {self.block}"
        return f"{self.needs.value} along {', '.join(self.along)}" if self.along else self.needs.value


class InitOp(Struct, frozen=True):
    """`different`: params start from other random numbers along each of `axes`;
    `broadcast`: then everyone along `axes` (one product) takes what device `root` has."""

    kind: Literal["different", "broadcast"]
    axes: Axes
    root: int
    origin: Origin


class RandomStreams(Struct, frozen=True):
    """Whether random numbers (dropout) used with these weights agree along one atom."""

    axis: str
    kind: Literal["same", "different"]
    origin: Origin


class Weights(Struct, frozen=True):
    """A group of weights. `routed`: atoms over which tokens travel to the device that owns
    the expert. `precision`: state -> dtype; a `master` entry means a master copy exists."""

    name: str
    kind: str
    size: Expr | None
    layers: Expr | None
    dims: tuple[str, ...]
    uses: Uses | None
    routed: Axes
    frozen: bool
    optimizer: Optimizer
    precision: Mapping[str, str]
    params: Layout
    optimizer_state: Layout
    gradients: Layout
    activations: Layout
    init: tuple[InitOp, ...]
    random: tuple[RandomStreams, ...]
    span: Span

    @property
    def master(self) -> bool:
        return "master" in self.precision
