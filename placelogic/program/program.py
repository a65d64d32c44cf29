"""The step program: what a spec means, on one screen.

Everything is in *atoms*: the axes the mesh declares. A product axis (`dp = edp * ep`) is the
tuple of its atoms, first factor slowest (row-major index). An empty tuple of axes means none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from placelogic.program.catalog import Needs
from placelogic.program.expr import Compare, Expr
from placelogic.program.facts import Facts
from placelogic.source import Span

Axes = tuple[str, ...]
Letter = Literal["S", "S*"]
State = Literal["params", "optimizer", "gradients", "activations"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a thing comes from. `stated`: a person wrote it; else it was derived.

    `span` is in the checked file; `library` is the place inside an imported or standard
    strategy that it came through, if any."""

    span: Span
    stated: bool
    library: Span | None = None


# --- mesh and sizes -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Atom:
    """One mesh axis: `size` is None when open, else an expression over lets (or a number)."""

    name: str
    size: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Let:
    """A named size; `value` None means any positive integer."""

    name: str
    value: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Assumption:
    """A condition on sizes. `text` is what reports print."""

    condition: Compare
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Mesh:
    """Atoms in written order; `views` names products of atoms."""

    atoms: tuple[Atom, ...]
    views: tuple[tuple[str, Axes], ...] = ()

    @property
    def axes(self) -> Axes:
        return tuple(atom.name for atom in self.atoms)

    def label(self, axes: Axes) -> str:
        """The name a person gave to this product, else `a*b`."""
        if len(axes) == 1:
            return axes[0]
        return next((name for name, factors in self.views if factors == axes), "*".join(axes))


# --- work -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Split:
    """What one atom splits: batch, sequence or tokens."""

    axis: str
    dim: str
    span: Span


@dataclass(frozen=True, slots=True)
class Feed:
    """What the loader does along one atom when it differs: `same` or `different`."""

    axis: str
    kind: Literal["same", "different"]
    span: Span


@dataclass(frozen=True, slots=True)
class LossTerm:
    """One summed loss. `mean`: each item's loss is divided by the tokens of its device and
    micro-batch, summed over the atoms in `over` (X of the semantics), and over micro-batches
    when `microbatches`. Not `mean`: no division. `name` is None for the unnamed term."""

    name: str | None
    mean: bool
    over: Axes
    microbatches: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Work:
    """`microbatches`: a number or a name (an open count), M of the semantics."""

    splits: tuple[Split, ...]
    feeds: tuple[Feed, ...]
    microbatches: Expr
    tokens_even: bool
    objective: Literal["mean", "sum"]
    losses: tuple[LossTerm, ...]

    @property
    def split_axes(self) -> Axes:
        return tuple(split.axis for split in self.splits)

    def feed(self, axis: str) -> Feed | None:
        return next((feed for feed in self.feeds if feed.axis == axis), None)


@dataclass(frozen=True, slots=True)
class Stages:
    """The axis pipeline stages lie on; `vee`: first and last stage on one device (index 0)."""

    axis: str
    schedule: str
    chunks: Expr
    vee: bool
    span: Span


# --- weights and how their states lie -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """One S or S* entry of a layout: `axes` (an atom, or a product by its row-major index)
    cut dimension `dim`. `dim` None: a dimension of its own, that nothing else cuts."""

    axes: Axes
    letter: Letter
    dim: str | None
    origin: Origin

    @property
    def dimension(self) -> str:
        """A name equal for cuts of the same dimension. Unnamed cuts get `@axes`."""
        return self.dim if self.dim is not None else "@" + "*".join(self.axes)


@dataclass(frozen=True, slots=True)
class Layout:
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
        return next((cut for cut in self.cuts if axis in cut.axes), None)

    def stacked(self, axis: str) -> tuple[Cut, ...]:
        """The cuts of the dimension that `axis` cuts, outermost first, up to and including its
        own: together they decide which coordinate along `axis` holds an element."""
        own = self.cut(axis)
        if own is None:
            return ()
        same = [cut for cut in self.cuts if cut.dimension == own.dimension]
        return tuple(same[: same.index(own) + 1])


@dataclass(frozen=True, slots=True)
class Uses:
    """Weights that live only on the first and/or last stage of `axis`. With both, they are tied:
    each end computes a gradient of its own, and they add up.

    Members along the axis: first is 0, last is N-1 (0 under a V-shaped schedule)."""

    axis: str
    first: bool
    last: bool
    vee: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Optimizer:
    name: str
    needs: Needs
    origin: Origin


@dataclass(frozen=True, slots=True)
class InitOp:
    """`different`: params start from other random numbers along each of `axes`;
    `broadcast`: then everyone along `axes` (one product) takes what device `root` has."""

    kind: Literal["different", "broadcast"]
    axes: Axes
    root: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class RandomStreams:
    """Whether random numbers (dropout) used with these weights agree along one atom."""

    axis: str
    kind: Literal["same", "different"]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Weights:
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


# --- steps ----------------------------------------------------------------------------------

Subset = Literal["each", "but_last", "but_first", "first", "last", "index"]


@dataclass(frozen=True, slots=True)
class Loop:
    """Runs `body` once per micro-batch of the subset, in order. `index` counts from 1 and the
    subset is empty when it exceeds M. Each turn computes a fresh gradient."""

    subset: Subset
    index: int | None
    body: tuple[Op, ...]
    origin: Origin


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Add the fresh gradient to the buffer (`replace`: overwrite it). Buffer None is the
    unnamed one; every buffer starts at zero. Ops before it act on the fresh gradient."""

    buffer: str | None
    replace: bool
    origin: Origin


@dataclass(frozen=True, slots=True)
class Reduce:
    """Sum or average over every atom of `axes`; into a state cut there it is a reduce-scatter.
    `scattered`: leaves only the own shard valid, in a buffer that has room for all."""

    buffer: str | None
    axes: Axes
    op: Literal["sum", "mean"]
    scattered: bool
    origin: Origin


@dataclass(frozen=True, slots=True)
class GatherGradients:
    axes: Axes
    origin: Origin


@dataclass(frozen=True, slots=True)
class Scale:
    buffer: str | None
    factor: Expr
    origin: Origin


@dataclass(frozen=True, slots=True)
class ScaleLoss:
    """Scale the part of the fresh gradient that comes from one loss term."""

    term: str | None
    factor: Expr
    origin: Origin


@dataclass(frozen=True, slots=True)
class Clip:
    origin: Origin


@dataclass(frozen=True, slots=True)
class Skip:
    """Skip the update when any gradient overflowed, as seen over `axes` (none: by each device)."""

    axes: Axes
    origin: Origin


@dataclass(frozen=True, slots=True)
class Update:
    buffer: str | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class GatherParams:
    """Every device takes each element of the compute copy from its owner along `axes`."""

    axes: Axes
    origin: Origin


@dataclass(frozen=True, slots=True)
class BroadcastParams:
    axes: Axes
    root: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class Refresh:
    """Compute copy <- master copy, where the master lies."""

    origin: Origin


@dataclass(frozen=True, slots=True)
class OffloadGradients:
    origin: Origin


@dataclass(frozen=True, slots=True)
class FetchParams:
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


@dataclass(frozen=True, slots=True)
class StatedLine:
    """A `sync` line that shaped a derived step, also where it left no operation behind (`by none`).
    `axis` None: over micro-batches. Only reports read it."""

    axis: str | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one trained weight group in one step, after its backward passes.

    Routing to owners is part of the backward pass: it is no op, and happens before all.
    `stated`: a `step` block replaced everything; else single ops and `lines` tell by their origin."""

    weights: str
    ops: tuple[Op, ...]
    stated: bool
    origin: Origin
    lines: tuple[StatedLine, ...] = ()


@dataclass(frozen=True, slots=True)
class GlobalNorm:
    """Clipping by the global norm. `listed` None: derived, counts each element once.
    Else, per weights: the atoms over which its squares are summed, and where that was said."""

    listed: Mapping[str, tuple[Axes, Origin]] | None
    origin: Origin


# --- the program ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conflict:
    """CC01: one state of one group placed twice along an atom by equally specific statements."""

    weights: str
    state: State
    axis: str
    first: Origin
    second: Origin
    message: str


@dataclass(frozen=True, slots=True)
class Expectation:
    verdict: Literal["proved", "refuted", "vacuous", "error"]
    code: str | None
    weights: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Program:
    """A whole spec, elaborated. Trained weights have one step each, in the order of `weights`."""

    name: str
    mesh: Mesh
    lets: tuple[Let, ...]
    assumptions: tuple[Assumption, ...]
    work: Work
    stages: Stages | None
    weights: tuple[Weights, ...]
    steps: tuple[Step, ...]
    clip: GlobalNorm | None
    conflicts: tuple[Conflict, ...]
    expectations: tuple[Expectation, ...]
    span: Span
    facts: Facts = field(default_factory=dict)
    """How local gradients start: filled when steps are derived. The simulator does not read it."""

    def step(self, weights: str) -> Step | None:
        return next((step for step in self.steps if step.weights == weights), None)

    def group(self, weights: str) -> Weights:
        return next(group for group in self.weights if group.name == weights)
