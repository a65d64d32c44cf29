"""How queries, keys and values are brought together for attention."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.layers.crossing import Lay
from placelogic.program import block as bl
from placelogic.program.block import Dims


def attended(op: bl.Attention, keys: Dims, come: Sequence[Lay], trades: bool) -> list[Lay]:
    """How each of the three is to lie along an axis on which they come so. `keys`: the dimensions of the keys;
    `trades`: pieces of the sequence are traded for heads, and back right after."""
    query, key, value = come
    if query == key == value == op.sequence and trades:
        return [op.heads, op.kv_heads, op.kv_heads]
    if query == op.heads and key == value == op.kv_heads:
        return [query, key, value]
    mixing = {op.sequence, keys[-1], op.kv_heads}
    if key == value and key is not None and query == key and key not in mixing:
        return [query, key, value]  # the batch
    # Whole keys and values; queries by heads or by their places in the sequence.
    return [query if query in (op.heads, op.sequence) else None, None, None]
