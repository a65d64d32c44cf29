"""Heads of queries and of keys that several axes cut: every device needs the key heads of its queries."""

from __future__ import annotations

from placelogic.layers.saved import lay_at
from placelogic.problem import Problem, SpecError
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.plan import Plan
from placelogic.program.program import Axes, Program


def check_heads(program: Program, blocks: tuple[Block, ...], plan: Plan) -> None:
    """Axes that cut the heads of queries alone have to lie inside those that cut key heads too: else a device
    has queries of one part of the heads, and keys of another. Raises PL386."""
    for block in blocks:
        for index, op in enumerate(block.operations):
            if not isinstance(op, bl.Attention):
                continue
            queries = _axes(program, plan, block, (index, 0), op.heads)
            for slot, tensor in ((1, op.key), (2, op.value)):
                keys = _axes(program, plan, block, (index, slot), op.kv_heads)
                if keys != queries[: len(keys)]:
                    message = f"the heads of `{op.query}` are cut over {', '.join(queries)}, and those of `{tensor}` over "
                    message += f"{', '.join(keys)}: devices would have queries of one part of the heads and keys of another"
                    alone = next(axis for axis in queries if axis not in keys)
                    hint = f"cut `{tensor}` over {alone} too, or name {alone} last in the mesh"
                    raise SpecError(Problem("PL386", message, op.origin.span, hint))


def _axes(program: Program, plan: Plan, block: Block, reader: tuple[int, int], dim: str) -> Axes:
    lay = lay_at(plan, block, reader)
    return tuple(axis for axis in program.mesh.axes if lay.get(axis) == dim)
