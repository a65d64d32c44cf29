"""Operations that mix samples: what one sample comes to would depend on those that share its micro-batch."""

from __future__ import annotations

from collections.abc import Mapping

from placelogic.program import block as bl
from placelogic.program.block import Dims

BATCH = "batch"
"""The dimension of the samples of a micro-batch."""


OTHERS = "the others of its micro-batch"
PLACE = "its place in a micro-batch"


def mixes_samples(op: bl.Operation, tensors: Mapping[str, Dims]) -> tuple[str, str] | None:
    """What an operation does along `batch` that is not the same for each sample by itself, as the end of a sentence
    about it, and what a sample then depends on; None where it does nothing of the kind. `tensors`: the dimensions of
    what it reads.

    The loss of a step is a sum over samples only where none sees another: otherwise several micro-batches, or one
    device with the whole batch, compute other functions of the same data (docs/semantics.md). What has the dimension
    keeps it through all other operations."""
    match op:
        case bl.Norm(over=over) if BATCH in over:
            return "normalises over `batch`", OTHERS
        case bl.Linear(contracted=contracted) | bl.Router(contracted=contracted) if BATCH in contracted:
            return "adds up over `batch`", OTHERS
        case bl.CrossEntropy(vocabulary=chosen) | bl.Router(experts=chosen) if chosen == BATCH:
            return "takes a softmax over `batch`", OTHERS
        case bl.Concat(into=into) if into == BATCH:
            return "puts `batch` together of other dimensions", OTHERS
        case bl.Attention() if tensors[op.query][-1] == BATCH:
            return "adds up over `batch`", OTHERS
        case bl.Linear(produced=made) | bl.Embedding(produced=made) | bl.Bias(over=made) if BATCH in made:
            return "has weights with a place for each sample (`batch`)", PLACE
        case bl.Embedding(vocabulary=rows) if rows == BATCH:
            return "has weights with a place for each sample (`batch`)", PLACE
        case _:
            return None
