"""Operations that mix samples: what one sample comes to would depend on those that share its micro-batch."""

from __future__ import annotations

from collections.abc import Mapping

from placelogic.program import block as bl
from placelogic.program.block import Dims

BATCH = "batch"
"""The dimension of the samples of a micro-batch."""


def mixes_samples(op: bl.Operation, tensors: Mapping[str, Dims]) -> str | None:
    """What an operation does along `batch` that is not the same for each sample by itself, as the end of a sentence
    about it; None where it does nothing of the kind. `tensors`: the dimensions of what it reads.

    The loss of a step is a sum over samples only where none sees another: otherwise several micro-batches, or one
    device with the whole batch, compute other functions of the same data (docs/semantics.md)."""
    match op:
        case bl.Norm(over=over) if BATCH in over:
            return "normalises over `batch`"
        case bl.Linear(contracted=contracted) | bl.Router(contracted=contracted) if BATCH in contracted:
            return "adds up over `batch`"
        case bl.CrossEntropy(vocabulary=vocabulary) if vocabulary == BATCH:
            return "takes a softmax over `batch`"
        case bl.Router(experts=experts) if experts == BATCH:
            return "takes a softmax over `batch`"
        case bl.Concat() if BATCH in (op.into, *(tensors[name][-1] for name in op.inputs)):
            return "puts `batch` together with something else"
        case bl.Attention() if tensors[op.query][-1] == BATCH:
            return "adds up over `batch`"
        case bl.Attention(heads=heads, kv_heads=kv_heads) if heads != kv_heads and BATCH in (heads, kv_heads):
            return "shares the keys and values of `batch`"
        case bl.Linear(produced=made) | bl.Embedding(produced=made) | bl.Bias(over=made) if BATCH in made:
            return "has weights with a place for each sample"
        case bl.Embedding(vocabulary=vocabulary) if vocabulary == BATCH:
            return "has weights with a place for each sample"
        case _:
            return None
