"""Operations of several blocks that belong together, and those that do nothing."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.program import block as bl
from placelogic.program.expr import number


def tables(blocks: Sequence[bl.Block]) -> frozenset[tuple[str, bl.Dims, bl.Dims]]:
    """The tables of embeddings, as a linear that uses them turned round would name them."""
    return frozenset(
        (op.weights, op.produced, (op.vocabulary,))
        for block in blocks
        for op in block.operations
        if isinstance(op, bl.Embedding)
    )


def tied(blocks: Sequence[bl.Block]) -> frozenset[str]:
    """Weights whose table is used twice in a pass: by an embedding, and turned round by a linear. All other
    operations have a matrix or vector of their own in their group."""
    known = tables(blocks)
    linears = (op for block in blocks for op in block.operations if isinstance(op, bl.Linear))
    return frozenset(op.weights for op in linears if (op.weights, op.contracted, op.produced) in known)


def is_name_only(op: bl.Operation) -> bool:
    """`y = scale x by 1`: the same tensor, by a name of its own."""
    return isinstance(op, bl.Elementwise) and op.function == "scale" and op.factor == number(1)
