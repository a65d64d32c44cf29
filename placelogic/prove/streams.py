"""FW08: positions and random numbers inside a layer fit the way a tensor is split."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.program import block as bl
from placelogic.program.program import Program
from placelogic.prove.formula import FALSE, at_least
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes


def stream_obligations(program: Program, sizes: Sizes) -> Iterator[Obligation]:
    """One for each statement and axis. Copies have to draw the same numbers; pieces of a sequence have to be
    counted from where they stand in it. Equal numbers on different pieces are a habit, not a fault."""
    layers = program.layers
    if layers is None or program.layering is None:
        return
    for line in layers.drawn:
        dim = _cut(program, line.block, line.tensor, line.axis)
        staged = program.stages is not None and program.stages.axis == line.axis
        wrong = line.kind == "different" and dim is None and not staged
        odd = line.kind == "same" and dim is not None
        several = at_least(sizes.size(line.axis), 2)
        yield Obligation(
            name=f"random numbers of {line.tensor} in {line.block} over {line.axis}",
            code="FW08",
            weights=None,
            axes=(line.axis,),
            violation=several if wrong or odd else FALSE,
            span=line.origin.span,
            stated=line.origin.stated,
            message=f"devices along {line.axis} have copies of `{line.tensor}`, and draw different random numbers for it"
            if not odd
            else f"devices along {line.axis} draw the same random numbers for different pieces of `{line.tensor}` ({dim})",
            label="must be the same here" if not odd else "usually different",
            help=f"use one stream along {line.axis}" if not odd else f"use a stream per device along {line.axis}",
            fault="nonuniform",
            shown=(f"stream {{i}} for `{line.tensor}`", "one stream") if not odd else None,
            warning=odd,
            drawn=True,
        )
    for place in layers.counted:
        split = _cut(program, place.block, _source(program, place), place.axis) == "sequence"
        yield Obligation(
            name=f"positions of {place.tensor} in {place.block} over {place.axis}",
            code="FW08",
            weights=None,
            axes=(place.axis,),
            violation=at_least(sizes.size(place.axis), 2) if place.kind == "local" and split else FALSE,
            span=place.origin.span,
            stated=place.origin.stated,
            message=f"each device along {place.axis} has its own piece of the sequence, and counts its places from 0 "
            f"for `{place.tensor}`",
            label="every piece begins at position 0",
            help=f"begin at the place where the piece of each device along {place.axis} begins: `global`",
            shown=("positions of piece 0, for piece {i}", "positions of the whole sequence"),
            drawn=True,
        )


def _cut(program: Program, block: str, tensor: str, axis: str) -> str | None:
    """The dimension on which an axis cuts a tensor, as it is made."""
    assert program.layers is not None and program.layering is not None
    dim = program.layering.plan.shapes.get((block, tensor), {}).get(axis)
    found = next(one for one in program.layers.blocks if one.name == block)
    return dim if dim in found.tensors[tensor] else None


def _source(program: Program, place: bl.Counted) -> str:
    """The tensor whose places are counted: the query, where attention turns it by its positions."""
    assert program.layers is not None
    block = next(one for one in program.layers.blocks if one.name == place.block)
    op = next(op for op in block.operations if op.output == place.tensor)
    return op.query if isinstance(op, bl.Attention) else place.tensor
