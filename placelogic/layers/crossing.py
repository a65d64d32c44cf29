"""How a tensor gets from one layout to another along one axis, and what comes back."""

from __future__ import annotations

from placelogic.compat import assert_never
from placelogic.layers.wants import PARTIAL
from placelogic.program import block as bl
from placelogic.program.ops import Origin
from placelogic.program.plan import Move

Lay = str | None
"""None: whole on every device; a dimension: cut on it; `PARTIAL`."""


def crossing(come: Lay, target: Lay, part: bool, origin: Origin) -> tuple[Move, Move]:
    """The cheapest way from one layout to another, and its transpose for a gradient that comes back whole,
    or in shares (`part`)."""
    if come == target:
        return Move("none", origin), Move("sum" if part else "none", origin)
    if come == PARTIAL:
        if target is None:
            return Move("sum", origin), Move("sum" if part else "none", origin)
        return Move("scatter", origin, target), Move("gather", origin, target)
    if come is None:
        return Move("slice", origin, target), Move("gather", origin, target)
    if target is None:
        return Move("gather", origin, come), Move("scatter" if part else "slice", origin, come)
    return Move("exchange", origin, come, target), Move("exchange", origin, target, come)


def written(op: bl.Collective) -> tuple[tuple[Move, Move], Lay]:
    """The moves of a collective that a person wrote, and how its output lies.

    What comes back is its transpose, as automatic differentiation has it: each device hands back what it did with what
    it got, and these are added up (docs/semantics.md, "Derived and stated"). A sum alone hands a whole gradient on; where
    readers leave shares of it, these are added up before (`crossing`)."""
    origin = op.origin
    match op.kind:
        case "reduce":
            assert op.op is not None
            return (Move(op.op, origin), Move("none", origin)), None
        case "gather":
            return (Move("gather", origin, op.dim), Move("scatter", origin, op.dim)), None
        case "slice":
            return (Move("slice", origin, op.dim), Move("pad", origin, op.dim)), op.dim
        case "reduce_scatter":
            return (Move("scatter", origin, op.dim), Move("gather", origin, op.dim)), op.dim
        case "all_to_all":
            there = Move("exchange", origin, op.dim, op.into)
            return (there, Move("exchange", origin, op.into, op.dim)), op.into
        case "broadcast":
            return (Move("root", origin), Move("reduce", origin)), None
        case _:
            assert_never(op.kind)
