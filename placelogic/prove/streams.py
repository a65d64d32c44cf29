"""FW08: positions and random numbers inside a layer fit the way a tensor is split."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.layers.saved import lay_at
from placelogic.program import block as bl
from placelogic.program.operations import inputs
from placelogic.program.program import Program
from placelogic.prove.formula import TRUE, alike, at_least, both, either, negate
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes


def stream_obligations(program: Program, sizes: Sizes) -> Iterator[Obligation]:
    """One for each statement and axis. Copies have to draw the same numbers; pieces of a sequence have to be
    counted from where they stand in it. Equal numbers on different pieces are a habit, not a fault."""
    layers = program.layers
    if layers is None or program.layering is None:
        return
    for line in layers.drawn:
        dim = _works_on(program, line, line.axis)
        staged = program.stages is not None and program.stages.axis == line.axis  # each has layers of its own
        wrong = both(alike(line.kind, "different"), alike(dim, None), alike(staged, False))
        odd = both(alike(line.kind, "same"), negate(alike(dim, None)))
        several = at_least(sizes.size(line.axis), 2)
        yield Obligation(
            name=f"random numbers of {line.tensor} in {line.block} over {line.axis}",
            code="FW08",
            weights=None,
            axes=(line.axis,),
            violation=both(several, either(wrong, odd)),
            span=line.origin.span,
            stated=line.origin.stated,
            variant="same" if odd == TRUE else "different",
            words={"tensor": f"`{line.tensor}`", "dim": dim or ""},
            warning=odd == TRUE,
            drawn=True,
        )
    for place in layers.counted:
        split = alike(_counts_on(program, place, place.axis), "sequence")
        yield Obligation(
            name=f"positions of {place.tensor} in {place.block} over {place.axis}",
            code="FW08",
            weights=None,
            axes=(place.axis,),
            violation=both(at_least(sizes.size(place.axis), 2), alike(place.kind, "local"), split),
            span=place.origin.span,
            stated=place.origin.stated,
            variant="positions",
            words={"tensor": f"`{place.tensor}`"},
            drawn=True,
        )


def _works_on(program: Program, line: bl.Drawn, axis: str) -> str | None:
    """The dimension of which each device has its own piece where it draws."""
    block, index, _ = _operation(program, line)
    assert program.layering is not None
    lay = lay_at(program.layering.plan, block, (index, 0))
    return _of(block, inputs(block.operations[index])[0], lay.get(axis))


def _counts_on(program: Program, line: bl.Counted, axis: str) -> str | None:
    """The same where it counts places: of the query as it is made, as it is turned by its positions before it goes
    anywhere; of what a table of them is added to, which is taken as it comes."""
    block, _, op = _operation(program, line)
    assert program.layering is not None
    tensor = inputs(op)[0]
    return _of(block, tensor, program.layering.plan.shapes.get((block.name, tensor), {}).get(axis))


def _operation(program: Program, line: bl.Drawn | bl.Counted) -> tuple[bl.Block, int, bl.Operation]:
    assert program.layers is not None
    block = next(one for one in program.layers.blocks if one.name == line.block)
    index = next(i for i, op in enumerate(block.operations) if op.output == line.tensor)
    return block, index, block.operations[index]


def _of(block: bl.Block, tensor: str, dim: str | None) -> str | None:
    return dim if dim in block.tensors[tensor] else None
