"""What a person says that an implementation does inside layers, beside the operations themselves."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from placelogic.program.expr import Expr
from placelogic.program.ops import Axes, Origin


class Override(Struct, frozen=True):
    """What an implementation really does where a tensor changes how it lies, in one direction.

    `tensor` may name weights in a spec without blocks (backward only): the gradient that reaches those
    weights and all before them. `scale` multiplies what results."""

    direction: Literal["forward", "backward"]
    block: str | None
    tensor: str
    axes: Axes
    by: Literal["none", "sum", "mean", "slice", "zero", "gather"]
    scale: Expr | None
    origin: Origin


class Exchange(Struct, frozen=True):
    """How attention works along an atom that splits the sequence: keys and values are gathered, or go round in
    a `ring` (the same values, in pieces), or an `all_to_all` trades the pieces of the sequence for heads."""

    axis: str
    by: Literal["gather", "ring", "all_to_all"]
    origin: Origin


class Drawn(Struct, frozen=True):
    """Whether devices along an atom draw the same random numbers in the operation that makes a tensor."""

    block: str
    tensor: str
    axis: str
    kind: Literal["same", "different"]
    origin: Origin


class Counted(Struct, frozen=True):
    """From where devices along an atom count the places of a sequence that it splits, in the operation that
    makes a tensor: each from the start of its own piece (`local`), or of the sequence."""

    block: str
    tensor: str
    axis: str
    kind: Literal["local", "global"]
    origin: Origin
