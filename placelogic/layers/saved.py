"""What the backward pass of each operation needs, and so what is kept from the forward pass.

Tensors are kept as they lie right after they are made; what a reader had gathered is gathered again. Inside
a region that is recomputed only what enters it is kept; the rest exists while the region runs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from placelogic.problem import Problem, SpecError
from placelogic.program import block as bl
from placelogic.program import operations
from placelogic.program.block import Block, Dims, Layers, Region
from placelogic.program.expr import Binary, Expr
from placelogic.program.operations import inputs, name_of, weights_of
from placelogic.program.ops import Origin
from placelogic.program.plan import Plan
from placelogic.program.program import Program
from placelogic.program.table import Width, facts


class Saved(Struct, frozen=True):
    """One array, per layer of the block and micro-batch: a tensor (`of`), or what is kept beside it. `cut`: axis -> the dimension that it divides. `share`: of tokens that are sent to experts, the part of
    experts that each visits. `region`: it exists only while this region of the block is recomputed. `every`: where so
    many layers run again together, it is kept once for them, or there is one of each but the first (`inner`)."""

    block: str
    of: str
    what: str
    operation: str
    dims: Dims
    cut: Mapping[str, str]
    width: Width
    share: Expr | None
    region: int | None
    origin: Origin
    every: Expr | None = None
    inner: bool = False


def saved(program: Program, plan: Plan) -> tuple[Saved, ...]:
    """Everything that is kept, and what regions make again. Raises SpecError (PL387)."""
    layers = program.layers
    if layers is None:
        return ()
    found: list[Saved] = []
    for block in layers.blocks:
        shares = routed(layers, block)
        for one in _block(program, plan, with_regions(program, block)):
            tensor = one.of
            found.append(replace(one, share=shares.get(tensor)))
    return tuple(found)


def spanning(block: Block) -> Expr | None:
    """How many layers of the block run again together; None where each runs by itself."""
    return next((region.every for region in block.regions if region.every is not None), None)


def with_regions(program: Program, block: Block) -> Block:
    """The block, one region where its activations are placed `materialized`. Raises SpecError (PL387)."""
    origin = _alike(program, block, "recomputed")
    if origin is None:
        return block
    if block.regions:
        message = f"the activations of block `{block.name}` are materialized, and it has checkpoints of its own"
        raise SpecError(Problem("PL387", message, origin.span, "leave one of the two out"))
    return replace(block, regions=(Region(0, len(block.operations) - 1, origin),))


def hosted(program: Program, block: Block) -> bool:
    """Whether what a block keeps lies on the host. Raises SpecError (PL387)."""
    return _alike(program, block, "on the host") is not None


def _alike(program: Program, block: Block, what: Literal["recomputed", "on the host"]) -> Origin | None:
    """Where it is said of the activations of a block: of those of all its weights, or of none."""
    names = dict.fromkeys(name for op in block.operations if (name := weights_of(op)) is not None)
    layouts = {name: program.group(name).activations for name in names}
    said = {name: a.materialized if what == "recomputed" else a.host for name, a in layouts.items()}
    origin = next((origin for origin in said.values() if origin is not None), None)
    other = next((name for name, one in said.items() if one is None), None)
    if origin is not None and other is not None:
        name = next(name for name, one in said.items() if one is not None)
        message = f"the activations of `{name}` are {what} in block `{block.name}`, and those of `{other}` are not"
        hint = "say it of all weights of the block"
        if what == "recomputed":
            hint += f", or which operations run again: `checkpoint {block.operations[0].output} of {block.name}`"
        raise SpecError(Problem("PL387", message, origin.span, hint))
    return origin


def region_of(block: Block, index: int) -> int | None:
    """The region of the block that an operation belongs to."""
    return next((n for n, region in enumerate(block.regions) if region.first <= index <= region.last), None)


# --- one block --------------------------------------------------------------------------------


def _block(program: Program, plan: Plan, block: Block) -> Iterator[Saved]:
    made = {op.output: index for index, op in enumerate(block.operations)}
    kept: dict[str, bl.Operation] = {}
    again: dict[str, tuple[bl.Operation, int]] = {}
    for index, op in enumerate(block.operations):
        region = region_of(block, index)
        if region is None:
            for tensor in needed(program, op):
                kept.setdefault(tensor, op)
            continue
        for tensor in inputs(op):
            if tensor not in made or region_of(block, made[tensor]) != region:
                kept.setdefault(tensor, op)
        for tensor in needed(program, op):
            again.setdefault(tensor, (op, region))
    every = spanning(block)
    for tensor, op in kept.items():
        yield replace(_tensor(plan, block, tensor, op, None), every=every)
        if every is not None and tensor in again:
            yield replace(_tensor(plan, block, tensor, op, again[tensor][1]), every=every, inner=True)
    for tensor, (op, region) in again.items():
        if tensor not in kept:
            yield replace(_tensor(plan, block, tensor, op, region), every=every)
    for index, op in enumerate(block.operations):
        for one in _beside(plan, block, index, op, region_of(block, index)):
            yield replace(one, every=every)


def needed(program: Program, op: bl.Operation) -> tuple[str, ...]:
    """The tensors that the backward pass of an operation reads."""
    name = weights_of(op)
    return operations.needed(op, frozen=name is not None and program.group(name).frozen)


def _tensor(plan: Plan, block: Block, tensor: str, op: bl.Operation, region: int | None) -> Saved:
    dims = block.tensors[tensor]
    cut = {axis: dim for axis, dim in plan.shapes.get((block.name, tensor), {}).items() if dim in dims}
    return Saved(block.name, tensor, tensor, name_of(op), dims, cut, "compute", None, region, op.origin)


def _beside(plan: Plan, block: Block, index: int, op: bl.Operation, region: int | None) -> Iterator[Saved]:
    """What an operation keeps that is no tensor of the block."""

    for what, dims, width in facts(op).beside(op, block.tensors):
        lay = lay_at(plan, block, (index, 0))
        cut = {axis: dim for axis, dim in lay.items() if dim in dims}
        yield Saved(block.name, op.output, what, name_of(op), dims, cut, width, None, region, op.origin)


def lay_at(plan: Plan, block: Block, reader: tuple[int, int]) -> dict[str, str]:
    """axis -> dimension: how an operation gets one of its inputs."""
    tensor = inputs(block.operations[reader[0]])[reader[1]]
    lay = dict(plan.shapes.get((block.name, tensor), {}))
    for boundary in plan.at(block.name, tensor, reader):
        move = boundary.forward
        if move.kind == "gather":
            lay.pop(boundary.axis, None)
        elif move.kind in ("slice", "scatter", "scatter_mean") and move.dim is not None:
            lay[boundary.axis] = move.dim
        elif move.kind == "exchange" and move.into is not None:
            lay[boundary.axis] = move.into
    return lay


def routed(layers: Layers, block: Block) -> dict[str, Expr]:
    """For every tensor that lies with experts, the part of it that there is: each token visits `top` of them,
    and the experts are visited evenly."""
    tops: dict[str, bl.Router] = {}
    found: dict[str, Expr] = {}
    for op in block.operations:
        if isinstance(op, bl.Router):
            tops[op.output] = op
        elif isinstance(op, bl.Dispatch):
            router = tops[op.router]
            found[op.output] = Binary("/", router.top, layers.sizes[router.experts])
        elif not isinstance(op, bl.Combine) and inputs(op)[0] in found:
            found[op.output] = found[inputs(op)[0]]
    return found
