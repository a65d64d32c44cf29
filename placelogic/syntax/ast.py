"""The syntax tree of a `.place` file: one frozen class per statement, each with its place.

The tree keeps what was written (aliases resolved, order kept) and means nothing yet: `elaborate/` turns it into a
step program. Operations of steps and of layers have the classes of the step program; in the tree their axes are
`AxisRef`s, and their sizes have the names that were written.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

from placelogic.program.block import Operation
from placelogic.program.expr import Compare, Expr, Placed
from placelogic.program.ops import AxisRef, Op
from placelogic.source import Span

# --- names -----------------------------------------------------------------------------------

Role = Literal[
    "size", "weights", "target", "definition", "parameter", "spec", "buffer", "loss", "dimension", "value", "crossing"
]
"""What a name is the name of. Axes are sizes. `parameter`: given by name to a strategy or a model; `value`: a word,
or a parameter that stands for one; `crossing`: a tensor of a block, or weights where there are no blocks."""


class Identifier(NamedTuple):
    """A name that a person chose, and where it stands (from 1). `declares`: here it gets its meaning."""

    text: str
    role: Role
    declares: bool
    line: int
    column: int


# --- pieces ---------------------------------------------------------------------------------


class Target(Struct, frozen=True):
    """What a statement is about: names of weights, or kinds, or `("*",)`."""

    names: tuple[str, ...]
    span: Span


class Mode(Struct, frozen=True):
    """How a state lies: `letter` is R, S, S* or M; `host` adds O. `O` alone is R with host. `buffer`: the name of the
    flat buffer that it is cut in."""

    letter: Literal["R", "S", "S*", "M"]
    dim: str | None
    host: bool
    span: Span
    buffer: str | None = None


CUT = {"S": "sharded", "S*": "gathered"}
"""The letters of modes that cut a state, and their words."""


class Param(Struct, frozen=True):
    """A parameter of a strategy or model, with the default that makes it optional."""

    name: str
    default: Expr | None
    span: Span


class Argument(Struct, frozen=True):
    """`dp`, `schedule = zbv`: words, axes and products of axes are read as expressions."""

    name: str | None
    value: Expr
    span: Span


class StrategyCall(Struct, frozen=True):
    name: str
    arguments: tuple[Argument, ...]
    span: Span


# --- meshes and sizes -----------------------------------------------------------------------


class AxisDecl(Struct, frozen=True):
    """`tp = 8`, `2 <= pp <= 16` (bounds as comparisons), or open."""

    name: str
    size: Expr | None
    bounds: tuple[Compare, ...]
    span: Span


class MeshStmt(Struct, frozen=True):
    axes: tuple[AxisDecl, ...]
    span: Span


class AxisStmt(Struct, frozen=True):
    name: str
    factors: AxisRef
    span: Span


class LetItem(Struct, frozen=True):
    name: str
    value: Expr | None
    span: Span


class LetStmt(Struct, frozen=True):
    items: tuple[LetItem, ...]
    span: Span


class AssumeStmt(Struct, frozen=True):
    conditions: tuple[Compare, ...]
    span: Span


class ImportStmt(Struct, frozen=True):
    path: str
    span: Span


# --- work and objective ---------------------------------------------------------------------


class SplitStmt(Struct, frozen=True):
    """`batch over dp`: dim is batch, sequence or tokens."""

    dim: str
    axes: tuple[AxisRef, ...]
    span: Span


class MicrobatchesStmt(Struct, frozen=True):
    """`microbatches M` declares the name M unless a `let` already did; or a number, or an expression."""

    count: Expr
    span: Span


class TokensStmt(Struct, frozen=True):
    even: bool
    span: Span


class ObjectiveStmt(Struct, frozen=True):
    kind: Literal["mean", "sum"]
    span: Span


class FeedStmt(Struct, frozen=True):
    kind: Literal["same", "different"]
    axes: tuple[AxisRef, ...]
    span: Span


class LossStmt(Struct, frozen=True):
    """`scope` is local, global, over (then `axes` and `microbatches` say over what) or sum."""

    name: str | None
    scope: Literal["local", "global", "over", "sum"]
    axes: tuple[AxisRef, ...]
    microbatches: bool
    span: Span


class SyncStmt(Struct, frozen=True):
    """`axes` and `microbatches` together say over what; at least one is present."""

    target: Target
    axes: tuple[AxisRef, ...]
    microbatches: bool
    op: Literal["none", "sum", "mean"]
    span: Span


class ScaleStmt(Struct, frozen=True):
    target: Target
    factor: Expr
    span: Span


# --- steps ----------------------------------------------------------------------------------


class StepStmt(Struct, frozen=True):
    target: Target
    body: tuple[Op, ...]
    span: Span


# --- start, clipping, optimizer, random streams, precision ----------------------------------


class InitSame(Struct, frozen=True):
    span: Span


class InitDifferent(Struct, frozen=True):
    axes: tuple[AxisRef, ...]
    span: Span


class InitBroadcast(Struct, frozen=True):
    axis: AxisRef
    root: int
    span: Span


InitOp = InitSame | InitDifferent | InitBroadcast


class InitStmt(Struct, frozen=True):
    """`block` tells `init x { ... }` from the one-line form."""

    target: Target
    ops: tuple[InitOp, ...]
    block: bool
    span: Span


class ClipEntry(Struct, frozen=True):
    """Over which axes the squares of these weights are summed; none has no axes."""

    target: Target
    axes: tuple[AxisRef, ...]
    span: Span


class ClipStmt(Struct, frozen=True):
    """`clip global_norm`; `entries` None means derived."""

    norm: str
    entries: tuple[ClipEntry, ...] | None
    span: Span


class Need(Struct, frozen=True):
    """`size`: of blocks, in elements; `along`: the dimensions of a row, where they are said."""

    unit: Literal["nothing", "blocks", "row", "matrix", "whole"]
    size: int | None
    along: tuple[str, ...]
    span: Span


class OptimizerStmt(Struct, frozen=True):
    """`needs`: None where it is a known one. `gathers`: over which axes it does for its update."""

    name: str
    needs: Need | None
    target: Target | None
    gathers: tuple[AxisRef, ...] | None
    span: Span


class RandomStmt(Struct, frozen=True):
    target: Target
    axes: tuple[AxisRef, ...]
    kind: Literal["same", "different"]
    span: Span


class PrecisionEntry(Struct, frozen=True):
    state: str
    dtype: str
    span: Span


class PrecisionStmt(Struct, frozen=True):
    target: Target | None
    entries: tuple[PrecisionEntry, ...]
    span: Span


# --- weights, models, placements, strategies ------------------------------------------------


class SizeProp(Struct, frozen=True):
    value: Expr
    span: Span


class LayersProp(Struct, frozen=True):
    value: Expr
    span: Span


class DimsProp(Struct, frozen=True):
    names: tuple[str, ...]
    span: Span


class KindProp(Struct, frozen=True):
    name: str
    span: Span


class UsedOnProp(Struct, frozen=True):
    """`used on first and last of pp`; without `of`, of the axis that `stages` names."""

    stages: tuple[Literal["first", "last"], ...]
    axis: AxisRef | None
    span: Span


class RoutedProp(Struct, frozen=True):
    axis: AxisRef
    span: Span


WeightsProp = SizeProp | LayersProp | DimsProp | KindProp | UsedOnProp | RoutedProp


class WeightsStmt(Struct, frozen=True):
    name: str
    props: tuple[WeightsProp, ...]
    span: Span


class FreezeStmt(Struct, frozen=True):
    target: Target
    span: Span


class ModelDef(Struct, frozen=True):
    """`model llama(layers, hidden) { ... }`: a definition has parentheses."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    span: Span


class ModelStmt(Struct, frozen=True):
    """`model llama { layers 80, hidden 8192 }`: a use has braces only. Arguments are all named."""

    name: str
    arguments: tuple[Argument, ...]
    span: Span


class PlaceEntry(Struct, frozen=True):
    """`state`: params, optimizer, gradients or activations."""

    state: str
    mode: Mode
    span: Span


class PlaceStmt(Struct, frozen=True):
    """`axes` empty: `place * { activations materialized }`, a residency without an axis.

    `reshard`: the value of `reshard_after_forward`, where given (a word or a number)."""

    target: Target
    axes: tuple[AxisRef, ...]
    entries: tuple[PlaceEntry, ...]
    reshard: Expr | None
    span: Span


class StagesStmt(Struct, frozen=True):
    """`stages over pp { schedule 1f1b, chunks 1 }`: the axis that pipeline stages lie on."""

    axis: AxisRef
    schedule: Expr | None
    chunks: Expr | None
    span: Span


class StrategyDef(Struct, frozen=True):
    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    span: Span


class UseStmt(Struct, frozen=True):
    calls: tuple[StrategyCall, ...]
    span: Span


# --- the operations of a layer ---------------------------------------------------------------


class DimSize(Struct, frozen=True):
    """`hidden = 4096`; without a value the dimension may have any size."""

    name: str
    size: Expr | None
    span: Span


class DimsStmt(Struct, frozen=True):
    """`dims batch, sequence, hidden = h`: the dimensions that tensors of blocks have."""

    sizes: tuple[DimSize, ...]
    span: Span


class InputLine(Struct, frozen=True):
    """`input x(batch, sequence, hidden)`: how the block calls what arrives."""

    name: str
    dims: tuple[str, ...]
    span: Span


class OperationLine(Struct, frozen=True):
    """`y = add x, d`."""

    operator: Operation
    span: Span

    @property
    def output(self) -> str:
        return self.operator.output


class CheckpointLine(Struct, frozen=True):
    """`checkpoint { ... }`: operations that run again in the backward pass."""

    lines: tuple[OperationLine, ...]
    span: Span


BlockLine = InputLine | OperationLine | CheckpointLine


class BlockStmt(Struct, frozen=True):
    """`block decoder repeat layers { ... }`; what its last line makes is what it leaves."""

    name: str
    repeat: Expr | None
    lines: tuple[BlockLine, ...]
    span: Span


class CheckpointStmt(Struct, frozen=True):
    """`checkpoint decoder`, `checkpoint decoder every 2`, or `checkpoint first to last of decoder` (`last` None:
    one operation only). `every`: how many layers run again together."""

    block: str
    first: str | None
    last: str | None
    every: Expr | None
    span: Span


class OverrideStmt(Struct, frozen=True):
    """`backward n of decoder over tp by none`: what an implementation does where `tensor` changes how it
    lies. `tensor` may name weights, in a spec without blocks."""

    direction: Literal["forward", "backward"]
    tensor: str
    block: str | None
    axes: tuple[AxisRef, ...]
    by: Literal["none", "sum", "mean", "slice", "zero", "gather"]
    scale: Expr | None
    span: Span


class AttentionStmt(Struct, frozen=True):
    """`attention over cp by ring`: how devices with pieces of each sequence get at the keys and values."""

    axes: tuple[AxisRef, ...]
    by: Literal["gather", "ring", "all_to_all"]
    span: Span


class DrawnStmt(Struct, frozen=True):
    """`random d of layer over tp same`: whether devices draw the same numbers where `tensor` is made."""

    tensor: str
    block: str
    axes: tuple[AxisRef, ...]
    kind: Literal["same", "different"]
    span: Span


class PositionsStmt(Struct, frozen=True):
    """`positions c of layer over cp local`: from where a device counts the places of its piece of a sequence."""

    tensor: str
    block: str
    axes: tuple[AxisRef, ...]
    kind: Literal["local", "global"]
    span: Span


# --- specs, claims, expectations ------------------------------------------------------------


class SpecDef(Struct, frozen=True):
    name: str
    body: tuple[Statement, ...]
    span: Span


class BudgetStmt(Struct, frozen=True):
    amount: Expr
    unit: str
    span: Span


class ClaimStmt(Struct, frozen=True):
    condition: Compare
    span: Span


class ExpectStmt(Struct, frozen=True):
    """`expect refuted GI01 norm`: `code` and `weights` are optional."""

    verdict: Literal["proved", "refuted", "vacuous", "error"]
    code: str | None
    weights: str | None
    span: Span


Statement = (
    MeshStmt
    | AxisStmt
    | LetStmt
    | AssumeStmt
    | ImportStmt
    | SplitStmt
    | MicrobatchesStmt
    | TokensStmt
    | ObjectiveStmt
    | FeedStmt
    | LossStmt
    | SyncStmt
    | ScaleStmt
    | StepStmt
    | InitStmt
    | ClipStmt
    | OptimizerStmt
    | RandomStmt
    | PrecisionStmt
    | WeightsStmt
    | FreezeStmt
    | ModelDef
    | ModelStmt
    | PlaceStmt
    | StagesStmt
    | StrategyDef
    | UseStmt
    | DimsStmt
    | BlockStmt
    | CheckpointStmt
    | OverrideStmt
    | AttentionStmt
    | DrawnStmt
    | PositionsStmt
    | SpecDef
    | BudgetStmt
    | ClaimStmt
    | ExpectStmt
)


class File(Placed, frozen=True):
    """`identifiers`: every name in it, in the order of the text."""

    path: str
    statements: tuple[Statement, ...]
    span: Span
    identifiers: tuple[Identifier, ...] = ()
