"""What crosses between devices in the layers, per layer and micro-batch: the traffic that a plan makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from placelogic.layers.saved import needed, region_of, routed, with_regions
from placelogic.layers.stages import stage_of
from placelogic.program import block as bl
from placelogic.program.block import Block, Dims
from placelogic.program.expr import Expr
from placelogic.program.operations import inputs
from placelogic.program.ops import Axes, Origin
from placelogic.program.plan import Boundary, Move, Plan
from placelogic.program.program import Program

Kind = Literal["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "send"]
Pass = Literal["forward", "backward", "again"]
"""`again`: what a backward pass repeats of the forward pass: in regions that are recomputed, and gathers of
what is not kept gathered."""


class Sent(Struct, frozen=True):
    """One collective. `dims`, `cut`: the message, whole along its axes, except in an all-to-all, where it is
    what one device has. A `send` hands it from stage to stage. `ring`: it is passed on in pieces, with the
    same volume."""

    block: str
    tensor: str
    kind: Kind
    axes: Axes
    when: Pass
    dims: Dims
    cut: Mapping[str, str]
    share: Expr | None
    ring: bool
    origin: Origin
    of: object = None
    """What tells apart the collectives of one tensor: who reads it so, and along which dimension."""


KINDS: dict[str, Kind] = {
    "sum": "all-reduce",
    "mean": "all-reduce",
    "scatter": "reduce-scatter",
    "scatter_mean": "reduce-scatter",
    "gather": "all-gather",
    "exchange": "all-to-all",
    "root": "broadcast",
    "reduce": "reduce",
}


def sent(program: Program, plan: Plan) -> tuple[Sent, ...]:
    """Every collective of every block, and what stages hand on. Raises SpecError (PL387)."""
    layers = program.layers
    if layers is None:
        return ()
    rings = {exchange.axis for exchange in layers.attention if exchange.by == "ring"}
    found: list[Sent] = []
    for block in layers.blocks:
        shares = routed(layers, block)
        for one in _together(program, _block(program, plan, with_regions(program, block), rings)):
            found.append(replace(one, share=shares.get(one.tensor)))
    return tuple(found)


def _together(program: Program, found: Iterator[Sent]) -> Iterator[Sent]:
    """What happens to one tensor along several axes alike is one collective over their product."""
    groups: dict[tuple, list[Sent]] = {}
    for one in found:
        dim = [one.cut[axis] for axis in one.axes if axis in one.cut]
        key = (one.block, one.tensor, one.kind, one.when, one.ring, one.origin.stated, tuple(dim), one.of)
        groups.setdefault(key, []).append(one)
    for (first, *rest), kind in ((same, key[2]) for key, same in groups.items()):
        axes = tuple(axis for axis in program.mesh.axes if any(axis in one.axes for one in (first, *rest)))
        cut = {
            axis: dim
            for one in (first, *rest)
            for axis, dim in one.cut.items()
            if kind == "all-to-all" or axis not in axes
        }
        yield replace(first, axes=axes, cut=cut) if rest else first


def _block(program: Program, plan: Plan, block: Block, rings: set[str]) -> Iterator[Sent]:
    made = {op.output: index for index, op in enumerate(block.operations)}
    for boundary in plan.boundaries:
        if boundary.block != block.name:
            continue
        ring = boundary.axis in rings and _attends(block, boundary)
        for one in _pair(plan, block, boundary.tensor, boundary.axis, boundary.forward, boundary.backward):
            yield replace(one, ring=ring, of=(boundary.consumers, one.of))
        if _repeated(program, block, boundary, made):
            for one in _moves(plan, block, boundary.tensor, boundary.axis, boundary.forward, "again"):
                yield replace(one, ring=ring, of=(boundary.consumers, one.of))
    for index, op in enumerate(block.operations):
        for axis, (forward, backward) in plan.moves.get((block.name, index), {}).items():
            assert isinstance(op, bl.Collective)
            moves = list(_pair(plan, block, op.input, axis, forward, backward))
            if region_of(block, index) is not None:
                moves += _moves(plan, block, op.input, axis, forward, "again")
            for one in moves:
                yield replace(one, of=(index, one.of))
    if program.stages is not None and _handed_over(program, block):
        yield from _stages(program, plan, block)


def _pair(plan: Plan, block: Block, tensor: str, axis: str, forward: Move, backward: Move) -> Iterator[Sent]:
    yield from _moves(plan, block, tensor, axis, forward, "forward")
    yield from _moves(plan, block, tensor, axis, backward, "backward")


def _moves(plan: Plan, block: Block, tensor: str, axis: str, move: Move, when: Pass) -> Iterator[Sent]:
    kind = KINDS.get(move.kind)
    if kind is None:
        return
    dims = block.tensors[tensor]
    cut = {a: dim for a, dim in plan.shapes.get((block.name, tensor), {}).items() if a != axis and dim in dims}
    if kind == "all-to-all" and move.dim is not None:
        cut[axis] = move.dim
    yield Sent(
        block.name,
        tensor,
        kind,
        (axis,),
        when,
        block.tensors[tensor],
        cut,
        None,
        False,
        move.origin,
        (move.dim, move.into),
    )


def _repeated(program: Program, block: Block, boundary: Boundary, made: Mapping[str, int]) -> bool:
    """Whether the backward pass needs what the boundary made, and that was not kept."""
    if boundary.consumers is None:
        return boundary.tensor in made and region_of(block, made[boundary.tensor]) is not None
    for index, slot in boundary.consumers:
        op = block.operations[index]
        if region_of(block, index) is not None:
            return True
        if boundary.forward.kind in ("gather", "exchange") and inputs(op)[slot] in needed(program, op):
            return boundary.forward.kind == "gather"
    return False


def _attends(block: Block, boundary: Boundary) -> bool:
    readers = boundary.consumers or ()
    return any(isinstance(block.operations[index], bl.Attention) for index, _ in readers)


def _handed_over(program: Program, block: Block) -> bool:
    """Whether what stages hand on is told at this block: at the first that is repeated, since one stream goes through
    all layers, whatever block they are of; where none is, at the first on the last stage."""
    assert program.layers is not None
    repeated = [other.name for other in program.layers.blocks if other.repeat is not None]
    if repeated:
        return block.name == repeated[0]
    return block.name == next((b.name for b in program.layers.blocks if stage_of(program, b.name) == "last"), None)


def _stages(program: Program, plan: Plan, block: Block) -> Iterator[Sent]:
    """What one stage hands to the next, and the gradient that comes back."""
    stages = program.stages
    assert stages is not None
    dims = block.tensors[block.input]
    cut = {axis: dim for axis, dim in plan.shapes.get((block.name, block.input), {}).items() if dim in dims}
    for when in ("forward", "backward"):
        yield Sent(
            block.name,
            block.input,
            "send",
            (stages.axis,),
            when,
            dims,
            cut,
            None,
            False,
            Origin(stages.span, stated=False),
        )
