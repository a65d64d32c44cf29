"""The syntax tree of a `.place` file: one frozen class per statement, each with its place.

The tree keeps what was written (aliases resolved, order kept) and means nothing yet: `elaborate/` turns it into a
step program. Operations of steps and of layers have the classes of the step program; in the tree their axes are
`AxisRef`s, and their sizes have the names that were written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from placelogic.program.block import Operation
from placelogic.program.expr import Compare, Expr
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


@dataclass(frozen=True, slots=True)
class Target:
    """What a statement is about: names of weights, or kinds, or `("*",)`."""

    names: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Mode:
    """How a state lies: `letter` is R, S, S* or M; `host` adds O. `O` alone is R with host."""

    letter: Literal["R", "S", "S*", "M"]
    dim: str | None
    host: bool
    span: Span


CUT = {"S": "sharded", "S*": "gathered"}
"""The letters of modes that cut a state, and their words."""


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a strategy or model, with the default that makes it optional."""

    name: str
    default: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class Argument:
    """`dp`, `schedule = zbv`: words, axes and products of axes are read as expressions."""

    name: str | None
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class StrategyCall:
    name: str
    arguments: tuple[Argument, ...]
    span: Span


# --- meshes and sizes -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AxisDecl:
    """`tp = 8`, `2 <= pp <= 16` (bounds as comparisons), or open."""

    name: str
    size: Expr | None
    bounds: tuple[Compare, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class MeshStmt:
    axes: tuple[AxisDecl, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AxisStmt:
    name: str
    factors: AxisRef
    span: Span


@dataclass(frozen=True, slots=True)
class LetItem:
    name: str
    value: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class LetStmt:
    items: tuple[LetItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AssumeStmt:
    conditions: tuple[Compare, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ImportStmt:
    path: str
    span: Span


# --- work and objective ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitStmt:
    """`batch over dp`: dim is batch, sequence or tokens."""

    dim: str
    axes: tuple[AxisRef, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class MicrobatchesStmt:
    """`microbatches M` declares the name M unless a `let` already did; or a number, or an expression."""

    count: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class TokensStmt:
    even: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ObjectiveStmt:
    kind: Literal["mean", "sum"]
    span: Span


@dataclass(frozen=True, slots=True)
class FeedStmt:
    kind: Literal["same", "different"]
    axes: tuple[AxisRef, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LossStmt:
    """`scope` is local, global, over (then `axes` and `microbatches` say over what) or sum."""

    name: str | None
    scope: Literal["local", "global", "over", "sum"]
    axes: tuple[AxisRef, ...]
    microbatches: bool
    span: Span


@dataclass(frozen=True, slots=True)
class SyncStmt:
    """`axes` and `microbatches` together say over what; at least one is present."""

    target: Target
    axes: tuple[AxisRef, ...]
    microbatches: bool
    op: Literal["none", "sum", "mean"]
    span: Span


@dataclass(frozen=True, slots=True)
class ScaleStmt:
    target: Target
    factor: Expr
    span: Span


# --- steps ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepStmt:
    target: Target
    body: tuple[Op, ...]
    span: Span


# --- start, clipping, optimizer, random streams, precision ----------------------------------


@dataclass(frozen=True, slots=True)
class InitSame:
    span: Span


@dataclass(frozen=True, slots=True)
class InitDifferent:
    axes: tuple[AxisRef, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class InitBroadcast:
    axis: AxisRef
    root: int
    span: Span


InitOp = InitSame | InitDifferent | InitBroadcast


@dataclass(frozen=True, slots=True)
class InitStmt:
    """`block` tells `init x { ... }` from the one-line form."""

    target: Target
    ops: tuple[InitOp, ...]
    block: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ClipEntry:
    """Over which axes the squares of these weights are summed; none has no axes."""

    target: Target
    axes: tuple[AxisRef, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ClipStmt:
    """`clip global_norm`; `entries` None means derived."""

    norm: str
    entries: tuple[ClipEntry, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class OptimizerStmt:
    name: str
    target: Target | None
    span: Span


@dataclass(frozen=True, slots=True)
class RandomStmt:
    target: Target
    axes: tuple[AxisRef, ...]
    kind: Literal["same", "different"]
    span: Span


@dataclass(frozen=True, slots=True)
class PrecisionEntry:
    state: str
    dtype: str
    span: Span


@dataclass(frozen=True, slots=True)
class PrecisionStmt:
    target: Target | None
    entries: tuple[PrecisionEntry, ...]
    span: Span


# --- weights, models, placements, strategies ------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeProp:
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class LayersProp:
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class DimsProp:
    names: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class KindProp:
    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class UsedOnProp:
    """`used on first and last of pp`; without `of`, of the axis that `stages` names."""

    stages: tuple[Literal["first", "last"], ...]
    axis: AxisRef | None
    span: Span


@dataclass(frozen=True, slots=True)
class RoutedProp:
    axis: AxisRef
    span: Span


WeightsProp = SizeProp | LayersProp | DimsProp | KindProp | UsedOnProp | RoutedProp


@dataclass(frozen=True, slots=True)
class WeightsStmt:
    name: str
    props: tuple[WeightsProp, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FreezeStmt:
    target: Target
    span: Span


@dataclass(frozen=True, slots=True)
class ModelDef:
    """`model llama(layers, hidden) { ... }`: a definition has parentheses."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ModelStmt:
    """`model llama { layers 80, hidden 8192 }`: a use has braces only. Arguments are all named."""

    name: str
    arguments: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PlaceEntry:
    """`state`: params, optimizer, gradients or activations."""

    state: str
    mode: Mode
    span: Span


@dataclass(frozen=True, slots=True)
class PlaceStmt:
    """`axes` empty: `place * { activations materialized }`, a residency without an axis.

    `reshard`: the value of `reshard_after_forward`, where given (a word or a number)."""

    target: Target
    axes: tuple[AxisRef, ...]
    entries: tuple[PlaceEntry, ...]
    reshard: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class StagesStmt:
    """`stages over pp { schedule 1f1b, chunks 1 }`: the axis that pipeline stages lie on."""

    axis: AxisRef
    schedule: Expr | None
    chunks: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class StrategyDef:
    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class UseStmt:
    calls: tuple[StrategyCall, ...]
    span: Span


# --- the operations of a layer ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DimSize:
    """`hidden = 4096`; without a value the dimension may have any size."""

    name: str
    size: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class DimsStmt:
    """`dims batch, sequence, hidden = h`: the dimensions that tensors of blocks have."""

    sizes: tuple[DimSize, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class InputLine:
    """`input x(batch, sequence, hidden)`: how the block calls what arrives."""

    name: str
    dims: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class OperationLine:
    """`y = add x, d`."""

    operator: Operation
    span: Span

    @property
    def output(self) -> str:
        return self.operator.output


@dataclass(frozen=True, slots=True)
class CheckpointLine:
    """`checkpoint { ... }`: operations that run again in the backward pass."""

    lines: tuple[OperationLine, ...]
    span: Span


BlockLine = InputLine | OperationLine | CheckpointLine


@dataclass(frozen=True, slots=True)
class BlockStmt:
    """`block decoder repeat layers { ... }`; what its last line makes is what it leaves."""

    name: str
    repeat: Expr | None
    lines: tuple[BlockLine, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CheckpointStmt:
    """`checkpoint decoder`, `checkpoint decoder every 2`, or `checkpoint first to last of decoder` (`last` None:
    one operation only). `every`: how many layers run again together."""

    block: str
    first: str | None
    last: str | None
    every: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class OverrideStmt:
    """`backward n of decoder over tp by none`: what an implementation does where `tensor` changes how it
    lies. `tensor` may name weights, in a spec without blocks."""

    direction: Literal["forward", "backward"]
    tensor: str
    block: str | None
    axes: tuple[AxisRef, ...]
    by: Literal["none", "sum", "mean", "slice", "zero", "gather"]
    scale: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class AttentionStmt:
    """`attention over cp by ring`: how devices with pieces of each sequence get at the keys and values."""

    axes: tuple[AxisRef, ...]
    by: Literal["gather", "ring", "all_to_all"]
    span: Span


@dataclass(frozen=True, slots=True)
class DrawnStmt:
    """`random d of layer over tp same`: whether devices draw the same numbers where `tensor` is made."""

    tensor: str
    block: str
    axes: tuple[AxisRef, ...]
    kind: Literal["same", "different"]
    span: Span


@dataclass(frozen=True, slots=True)
class PositionsStmt:
    """`positions c of layer over cp local`: from where a device counts the places of its piece of a sequence."""

    tensor: str
    block: str
    axes: tuple[AxisRef, ...]
    kind: Literal["local", "global"]
    span: Span


# --- specs, claims, expectations ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpecDef:
    name: str
    body: tuple[Statement, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class BudgetStmt:
    amount: Expr
    unit: str
    span: Span


@dataclass(frozen=True, slots=True)
class ClaimStmt:
    condition: Compare
    span: Span


@dataclass(frozen=True, slots=True)
class ExpectStmt:
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


@dataclass(frozen=True, slots=True)
class File:
    """`identifiers`: every name in it, in the order of the text."""

    path: str
    statements: tuple[Statement, ...]
    span: Span
    identifiers: tuple[Identifier, ...] = field(default=(), compare=False, repr=False)
