"""The program: what a whole spec means. Its steps are in ops.py, its weight groups in weights.py; all
names can be had from here.

Everything is in *atoms*: the axes the mesh declares. A product axis (`dp = edp * ep`) is the
tuple of its atoms, first factor slowest (row-major index). An empty tuple of axes means none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

from placelogic.program.expr import Compare, Expr
from placelogic.program.facts import Facts, Layering
from placelogic.program.ops import (
    Accumulate,
    Axes,
    BroadcastParams,
    Clip,
    FetchParams,
    GatherGradients,
    GatherParams,
    GlobalNorm,
    Loop,
    OffloadGradients,
    Op,
    Origin,
    Reduce,
    Refresh,
    Scale,
    ScaleLoss,
    Skip,
    StatedLine,
    Step,
    Subset,
    Update,
    flat,
)
from placelogic.program.weights import (
    Cut,
    InitOp,
    Layout,
    Letter,
    Optimizer,
    RandomStreams,
    Uses,
    Weights,
)
from placelogic.source import Span

if TYPE_CHECKING:
    from placelogic.program.block import Layers

__all__ = [
    "Accumulate",
    "Assumption",
    "Atom",
    "Axes",
    "BroadcastParams",
    "Budget",
    "Claim",
    "Clip",
    "Conflict",
    "Cut",
    "Expectation",
    "Feed",
    "FetchParams",
    "GatherGradients",
    "GatherParams",
    "GlobalNorm",
    "InitOp",
    "Layout",
    "Let",
    "Letter",
    "Loop",
    "LossTerm",
    "Mesh",
    "OffloadGradients",
    "Op",
    "Optimizer",
    "Origin",
    "Program",
    "RandomStreams",
    "Reduce",
    "Refresh",
    "Scale",
    "ScaleLoss",
    "Skip",
    "Split",
    "Stages",
    "State",
    "StatedLine",
    "Step",
    "Subset",
    "Update",
    "Uses",
    "Weights",
    "Work",
    "flat",
]

State = Literal["params", "optimizer", "gradients", "activations"]


# --- mesh and sizes -------------------------------------------------------------------------


class Atom(Struct, frozen=True):
    """One mesh axis: `size` is None when open, else an expression over lets (or a number)."""

    name: str
    size: Expr | None
    span: Span


class Let(Struct, frozen=True):
    """A named size; `value` None means any positive integer."""

    name: str
    value: Expr | None
    span: Span


class Assumption(Struct, frozen=True):
    """A condition on sizes. `text` is what reports print."""

    condition: Compare
    text: str
    span: Span


class Mesh(Struct, frozen=True):
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


class Split(Struct, frozen=True):
    """What one atom splits: batch, sequence or tokens."""

    axis: str
    dim: str
    span: Span


class Feed(Struct, frozen=True):
    """What the loader does along one atom when it differs: `same` or `different`."""

    axis: str
    kind: Literal["same", "different"]
    span: Span


class LossTerm(Struct, frozen=True):
    """One summed loss. `mean`: each item's loss is divided by the tokens of its device and
    micro-batch, summed over the atoms in `over` (X of the semantics), and over micro-batches
    when `microbatches`. Not `mean`: no division. `name` is None for the unnamed term.

    `everywhere`: `over` is all that splits the tokens. `pieces`: atoms that split no work, and over which each device
    computes the loss of its own piece all the same; `whole`: atoms that split the work, over which each computes the
    loss of all of it. Both follow from the operations of blocks, when steps are derived."""

    name: str | None
    mean: bool
    over: Axes
    microbatches: bool
    span: Span
    everywhere: bool = False
    pieces: Axes = ()
    whole: Axes = ()

    def splits(self, work: Axes) -> Axes:
        """What splits the tokens whose loss a device computes, where `work` is split over these."""
        return (*(axis for axis in work if axis not in self.whole), *self.pieces)


class Work(Struct, frozen=True):
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


class Stages(Struct, frozen=True):
    """The axis pipeline stages lie on; `vee`: first and last stage on one device (index 0)."""

    axis: str
    schedule: str
    chunks: Expr
    vee: bool
    span: Span


# --- the program ----------------------------------------------------------------------------


class Conflict(Struct, frozen=True):
    """CC01: one state of one group placed twice along an atom by equally specific statements; `how`, in words."""

    weights: str
    state: State
    axis: str
    first: Origin
    second: Origin
    how: str

    @property
    def words(self) -> dict[str, str]:
        """What is told of it."""
        return {"states": "optimizer states" if self.state == "optimizer" else self.state, "how": self.how}


class Expectation(Struct, frozen=True):
    verdict: Literal["proved", "refuted", "vacuous", "error"]
    code: str | None
    weights: str | None
    span: Span


class Claim(Struct, frozen=True):
    """A comparison of costs of specs, such as `memory(a) * N == memory(b)`: names are resolved, and it is
    judged, where the costs of all specs of the file are known."""

    condition: Compare
    span: Span


class Budget(Struct, frozen=True):
    """What the peak of a device may be: `amount` of a unit (catalog.py, BYTES)."""

    amount: Expr
    unit: str
    span: Span


class Unheeded(Struct, frozen=True):
    """A `place` that speaks of `target` without effect: a kind that no weights have, or weights that are frozen."""

    target: str
    why: Literal["kind", "frozen"]
    span: Span


class Program(Struct, frozen=True):
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
    claims: tuple[Claim, ...] = ()
    budgets: tuple[Budget, ...] = ()
    unheeded: tuple[Unheeded, ...] = ()
    facts: Facts = field(default_factory=dict)
    """How local gradients start: filled when steps are derived. The simulator does not read it."""
    layers: Layers | None = None
    """The operations between placements, in a spec that has blocks or says what a boundary does."""
    layering: Layering | None = None
    """What these operations come to on the mesh: filled when steps are derived."""

    def step(self, weights: str) -> Step | None:
        return next((step for step in self.steps if step.weights == weights), None)

    def group(self, weights: str) -> Weights:
        return next(group for group in self.weights if group.name == weights)
