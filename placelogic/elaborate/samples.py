"""Operations that mix samples: what one sample comes to would depend on those that share its micro-batch."""

from __future__ import annotations

from placelogic.program import block as bl
from placelogic.program.operations import mixing, sides

BATCH = "batch"
"""The dimension of the samples of a micro-batch."""


OTHERS = "the others of its micro-batch"
PLACE = "its place in a micro-batch"


def mixes_samples(op: bl.Operation) -> tuple[str, str] | None:
    """What an operation does along `batch` that is not the same for each sample by itself, as the end of a sentence
    about it, and what a sample then depends on; None where it does nothing of the kind.

    The loss of a step is a sum over samples only where none sees another: otherwise several micro-batches, or one
    device with the whole batch, compute other functions of the same data (docs/semantics.md). What has the dimension
    keeps it through all other operations."""
    does = mixing(op, BATCH)
    if does is not None:
        return does.format(f"`{BATCH}`"), OTHERS
    if any(BATCH in side for side in sides(op)):
        return f"has weights with a place for each sample (`{BATCH}`)", PLACE
    return None
