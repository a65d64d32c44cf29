"""How often a backward pass comes by the same elements."""

from __future__ import annotations

from placelogic.program import block as bl


def passes(layers: bl.Layers, weights: str) -> int:
    """The most operations that compute with one matrix of these weights. Each has a matrix of its own, except those
    that read the rows of a table or multiply by it turned round."""
    most = 1
    mine = [op for block in layers.blocks for op in block.operations if getattr(op, "weights", None) == weights]
    for table in mine:
        if isinstance(table, bl.Embedding):
            rows, columns = (table.vocabulary,), table.produced
            turned = [
                op for op in mine if isinstance(op, bl.Linear) and (op.contracted, op.produced) == (columns, rows)
            ]
            most = max(most, 1 + len(turned))
    return most
