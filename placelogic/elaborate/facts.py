"""How a local gradient starts along each axis, read from placements and work splits.

The rules are numbered as in docs/semantics.md, "How a local gradient starts"; the first match holds.
"""

from __future__ import annotations

from placelogic.program.facts import Fact, Facts
from placelogic.program.program import Program, Weights


def facts_of(program: Program) -> Facts:
    """One fact per weight group and atom."""
    return {
        weights.name: {axis: _fact(program, weights, axis) for axis in program.mesh.axes} for weights in program.weights
    }


def _fact(program: Program, weights: Weights, axis: str) -> Fact:
    split = next((split for split in program.work.splits if split.axis == axis), None)
    activation = weights.activations.cut(axis)
    cut = weights.params.cut(axis)
    held_cut = cut if cut is not None and cut.letter == "S" else None

    uses = weights.uses
    if uses is not None and uses.axis == axis:
        if uses.first and uses.last:
            because = f"each end of {axis} computes its own use of these weights"  # rule 0
            return Fact(axis, "partial", "use", False, because, uses.span)
        return Fact(axis, "replicated", "none", False, f"one stage of {axis} holds these weights", uses.span)

    routed = held_cut is not None and axis in weights.routed  # rule 1: as rules 4 to 6, then routed
    if held_cut is not None and not routed:
        if split is not None:
            because = f"{axis} splits the work, but each device holds only a shard of the parameters"  # rule 2
            return Fact(axis, "absent", "none", False, because, held_cut.origin.span)
        if held_cut.dim == "flat":
            because = f"a flat shard over {axis} is no tensor to compute with"  # rule 3
            return Fact(axis, "absent", "none", False, because, held_cut.origin.span)
        because = f"each device along {axis} computes the gradient of its own shard"  # rule 3
        return Fact(axis, "shard", "none", False, because, held_cut.origin.span)
    if split is not None:
        because = f"{axis} splits the {split.dim}: each device has the gradient of its share"  # rule 4
        return Fact(axis, "partial", "item", routed, because, split.span)
    if activation is not None and activation.letter == "S":  # S* is gathered before use: whole
        what = activation.dim or "activations"
        because = f"the {what} of these weights are cut over {axis}: each device has a part"  # rule 5
        return Fact(axis, "partial", "activation", routed, because, activation.origin.span)
    because = f"along {axis} each device already holds the whole gradient"  # rule 6
    return Fact(axis, "replicated", "none", routed, because, weights.span)
