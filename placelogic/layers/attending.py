"""How queries, keys and values are brought together for attention, and parts of them before."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.layers.crossing import PARTIAL, Lay
from placelogic.program import block as bl
from placelogic.program.block import Block, Dims


def attended(op: bl.Attention, keys: Dims, come: Sequence[Lay], trades: bool) -> list[Lay]:
    """How each of the three is to lie along an axis on which they come so. `keys`: the dimensions of the keys;
    `trades`: pieces of the sequence are traded for heads, and back right after."""
    query, key, value = come
    if query == key == value == op.sequence and trades:
        return [op.heads, op.kv_heads, op.kv_heads]
    if query == op.heads and key == value == op.kv_heads:
        return [query, key, value]
    if query == op.heads == op.kv_heads:
        return [op.heads, op.heads, op.heads]  # each query head has a key head of its own
    mixing = {op.sequence, keys[-1], op.kv_heads}
    if key == value and key is not None and query == key and key not in mixing:
        return [query, key, value]  # the batch
    # Whole keys and values; queries by heads or by their places in the sequence.
    return [query if query in (op.heads, op.sequence) else None, None, None]


def put_together(block: Block, op: bl.Concat, come: Sequence[Lay], want: Lay) -> tuple[Lay, list[tuple[Lay, bool]]]:
    """How the result of a concat lies, and for each part how it is to lie, and whether its gradient comes back as
    shares: where others are cut on a dimension that it does not have."""
    dims = [block.tensors[tensor][:-1] for tensor in op.inputs]
    if PARTIAL in come:
        return PARTIAL, [(lay if lay == PARTIAL else None, False) for lay in come]
    made = want if want in dims[0] else next((lay for lay in come if lay in dims[0]), None)
    return made, [(made, False) if made in its else (None, made is not None) for its in dims]
