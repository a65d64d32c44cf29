"""The operations of a layer: what happens between the placements, on named tensors with named dimensions.

A program without blocks has none of this: then placements alone say how activations lie. A spec's blocks
form a chain in written order: the first reads tokens, each later one what the one before it leaves, and
the last computes the loss. A block with `repeat` is a chain of that many equal layers.

Tensors are in single-device terms: whole, with all their dimensions. How each lies on the mesh is derived
from the weights and the work splits (docs/layers.md), never written here; what a person says about the
implementation are the explicit collectives among the operations, and the overrides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from placelogic.program.catalog import FUNCTIONS, LINEAR_FUNCTIONS
from placelogic.program.expr import Expr
from placelogic.program.habits import Counted, Drawn, Exchange, Override
from placelogic.program.ops import Axes, Origin, WithOrigin
from placelogic.source import Span

Dims = tuple[str, ...]
"""Names of dimensions, outermost first: `("batch", "sequence", "heads", "head")`."""


class Linear(WithOrigin, frozen=True):
    """`output = input @ W`: contracts `contracted`, produces `produced`, in a matrix of the group `weights`.
    `grouped`: one matrix per expert; the tensors then carry the dimension `experts`."""

    output: str
    input: str
    weights: str
    contracted: Dims
    produced: Dims
    grouped: bool
    origin: Origin


class Bias(WithOrigin, frozen=True):
    """`output = input + b`, b a vector over `over` in the group `weights`. Linear, but not without an offset:
    on shares of a sum it is added once for each share.

    `scale`: what an implementation multiplies its vector by, forward (and so the vector's gradient backward);
    one device adds the vector as it is. Learned positions are a bias over `sequence` and more."""

    output: str
    input: str
    weights: str
    over: Dims
    scale: Expr | None
    origin: Origin


class Embedding(WithOrigin, frozen=True):
    """Rows of a table picked by tokens: `input` has [batch, sequence], `output` gains `produced`. `vocabulary`
    is the dimension of the rows; where it is cut, each device has its rows' part and zeros elsewhere: shares."""

    output: str
    input: str
    weights: str
    vocabulary: str
    produced: Dims
    origin: Origin


class Norm(WithOrigin, frozen=True):
    """Normalises over `over`, then multiplies by a vector of the group `weights` (None: no weights).
    Nonlinear, and needs the whole of `over`."""

    output: str
    input: str
    weights: str | None
    over: Dims
    origin: Origin


class Elementwise(WithOrigin, frozen=True):
    """One value in, one out, at each place. `function` is its name for people (gelu, silu, ...). `factor`: of the
    function `scale` only, which belongs to the model: one device multiplies by it too."""

    output: str
    input: str
    function: str
    factor: Expr | None
    origin: Origin

    @property
    def linear(self) -> bool:
        """f(a + b) = f(a) + f(b)."""
        return self.function in LINEAR_FUNCTIONS

    @property
    def saves(self) -> str:
        """For its backward pass: `input`, `output`, `mask` (dropout) or `nothing`."""
        return FUNCTIONS[self.function]

    @property
    def random(self) -> bool:
        return self.function == "dropout"


class Add(WithOrigin, frozen=True):
    output: str
    inputs: tuple[str, ...]
    origin: Origin


class Multiply(WithOrigin, frozen=True):
    """The product of two tensors, place by place: linear in each alone, not in both."""

    output: str
    inputs: tuple[str, str]
    origin: Origin


class Concat(WithOrigin, frozen=True):
    """The last dimensions of several tensors, one after the other, as the dimension `into`. The first has all
    other dimensions of the output; what another one lacks of them, it is the same along."""

    output: str
    inputs: tuple[str, ...]
    into: str
    origin: Origin


class Attention(WithOrigin, frozen=True):
    """Softmax attention of `query` over `key` and `value`: mixes along `sequence`, independent along batch and
    heads. The last dimensions of all three are sequence, heads and the size of a head, in this order. Query
    has `heads`, key and value `kv_heads` (equal names: no grouping); a head of query and key has the size `head`, one
    of values `value_head`. `positions`: rotary or the like, at the
    places in the whole sequence. `fused`: saves its inputs,
    output and row statistics; else also the two sequence x sequence matrices, with dropout one mask more."""

    output: str
    query: str
    key: str
    value: str
    causal: bool
    fused: bool
    dropout: bool
    positions: bool
    origin: Origin
    sequence: str = "sequence"
    heads: str = "heads"
    kv_heads: str = "heads"
    head: str = "head"
    value_head: str = "head"


class Convolve(WithOrigin, frozen=True):
    """A causal convolution along `over`: each place of the output is the sum of `width` places of the input, its own and
    those before it, each times a weight that the group `weights` has for this distance and for each place of `channels`.
    Before the first place stand zeros. `width` is a dimension that only the weights have."""

    output: str
    input: str
    weights: str
    over: str
    width: str
    channels: Dims
    origin: Origin


class Router(WithOrigin, frozen=True):
    """Scores of `experts` for each token (a linear map with `weights`), softmax and the `top` best of them.
    `output` holds the scores kept, dims of the input with `experts` for the contracted ones."""

    output: str
    input: str
    weights: str
    contracted: Dims
    experts: str
    top: Expr
    origin: Origin


class Dispatch(WithOrigin, frozen=True):
    """Copies each token of `input` to its experts; dims of the output: `experts`, tokens, the rest."""

    output: str
    input: str
    router: str
    origin: Origin


class Combine(WithOrigin, frozen=True):
    """The weighted sum over its experts, back at each token."""

    output: str
    input: str
    router: str
    origin: Origin


class CrossEntropy(WithOrigin, frozen=True):
    """The summed loss of each token from logits over `vocabulary`; its softmax needs all of that dimension,
    by a reduction of two numbers per token where it is cut (`parallel`), else gathered before."""

    output: str
    input: str
    vocabulary: str
    parallel: bool
    origin: Origin


class Collective(WithOrigin, frozen=True):
    """A collective that a person wrote. `dim`: of gather, slice and reduce_scatter; all_to_all gathers `dim`
    and cuts `into`. Its backward pass is its transpose unless an override says otherwise."""

    output: str
    input: str
    kind: Literal["reduce", "gather", "slice", "reduce_scatter", "all_to_all", "broadcast"]
    op: Literal["sum", "mean"] | None
    axes: Axes
    dim: str | None
    into: str | None
    origin: Origin


Operation = (
    Linear
    | Bias
    | Embedding
    | Norm
    | Elementwise
    | Add
    | Multiply
    | Concat
    | Attention
    | Convolve
    | Router
    | Dispatch
    | Combine
    | CrossEntropy
    | Collective
)


class Region(Struct, frozen=True):
    """Operations `first` to `last` (indices, inclusive) run again in the backward pass: only what enters
    them is saved. `every`: of a whole block, that many layers run again together, and only what enters the first
    of them is saved."""

    first: int
    last: int
    origin: Origin
    every: Expr | None = None


class Block(Struct, frozen=True):
    """A layer, or the part before or after the layers. `input` is the name under which it reads what arrives,
    `result` the name of what it leaves. `tensors` gives the dimensions of every tensor by name, the input
    included. `repeat` None: once."""

    name: str
    repeat: Expr | None
    input: str
    result: str
    tensors: Mapping[str, Dims]
    operations: tuple[Operation, ...]
    regions: tuple[Region, ...]
    span: Span


class Layers(Struct, frozen=True):
    """All blocks of a spec, the sizes of their dimensions, and what a person says they do. `bytes` of one
    element of an activation come from `precision` (compute)."""

    sizes: Mapping[str, Expr]
    blocks: tuple[Block, ...]
    overrides: tuple[Override, ...]
    attention: tuple[Exchange, ...] = ()
    """Atoms that nothing is said about gather keys and values."""
    drawn: tuple[Drawn, ...] = ()
    counted: tuple[Counted, ...] = ()
    """What is not said is as it has to be: places of the whole sequence, equal numbers on copies."""
