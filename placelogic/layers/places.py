"""Where the weights of an operation lie along one axis, and what the work splits do to tensors."""

from __future__ import annotations

from placelogic.layers.operations import tables
from placelogic.problem import Problem, SpecError
from placelogic.program import block as bl
from placelogic.program import operations
from placelogic.program.block import Block, Dims
from placelogic.program.program import Program

WHOLE = ("layer", "param")
"""Cuts that leave every matrix whole: a device that has it computes with all of it."""

ANY = "*"
"""Weights that are cut, on a dimension that nothing states."""


def split_dim(program: Program, axis: str, block: Block) -> str | None:
    """The dimension of the tensors that an axis cuts because it splits the work. Raises PL380."""
    split = next((split for split in program.work.splits if split.axis == axis), None)
    if split is None:
        return None
    dims = block.tensors[block.input]
    dim = "batch" if split.dim == "tokens" else split.dim
    if dim not in dims:
        message = f"axis `{axis}` splits the {split.dim}, and `{block.input}` of block `{block.name}` has no dimension `{dim}`"
        raise SpecError(Problem("PL380", message, block.span, f"say which of {', '.join(dims)} it is: call it `{dim}`"))
    return dim


def stage_axis(program: Program, axis: str) -> bool:
    """Whether whole layers are dealt out along the axis: then every device computes its own layers whole."""
    return program.stages is not None and program.stages.axis == axis


def weights_dim(program: Program, block: Block, op: bl.Operation, axis: str) -> str | None:
    """The dimension on which the weights of an operation are cut while it runs, `ANY` where nothing says
    which, None where it has all of them. Raises PL381."""
    name = operations.weights_of(op)
    if name is None or stage_axis(program, axis):
        return None
    weights = program.group(name)
    cut = weights.params.cut(axis)
    if cut is None or cut.letter != "S" or cut.dim in WHOLE or (weights.uses and weights.uses.axis == axis):
        return None
    splits = axis in program.work.split_axes
    if axis in weights.routed:
        return experts_dim(block, op)
    if splits or cut.dim == "flat":
        return None  # the parameters are not there: FW01 says so
    # A table that is turned round is cut where the embedding cuts it: it is one table.
    turned = isinstance(op, bl.Linear) and _turned(program, op)
    if cut.dim is None:
        return op.produced[0] if turned else ANY
    own, other = sides(block, op)
    if turned:
        own, other = other, own
    if cut.dim == "out":
        return own[0] if own else other[0]
    if cut.dim == "in":
        return other[0] if other else own[0]
    known = (*own, *other)
    if cut.dim not in known:
        raise SpecError(
            Problem(
                "PL381",
                f"`{name}` is cut on {cut.dim} over {axis}, and this operation has no dimension `{cut.dim}`",
                op.origin.span,
                f"cut it on `in` or `out`, or on one of {', '.join(known)}",
            )
        )
    return cut.dim


def sent_whole(program: Program, op: bl.Linear, axis: str, come: str | None) -> bool:
    """Whether every device sends all tokens along the axis: then a device computes as if it had all experts. Where
    each has tokens of its own these meet their experts."""
    return come is None and axis in program.group(op.weights).routed


def _turned(program: Program, op: bl.Linear) -> bool:
    assert program.layers is not None
    return (op.weights, op.contracted, op.produced) in tables(program.layers.blocks)


def sides(block: Block, op: bl.Operation) -> tuple[Dims, Dims]:
    """The dimensions of an operation's weights: those it produces, experts with them, and those it contracts."""
    produced, contracted = operations.sides(op)
    experts = experts_dim(block, op) if isinstance(op, bl.Linear) else None
    return (*produced, *((experts,) if experts else ())), contracted


def check_sides(block: Block, op: bl.Linear | bl.Embedding, cut: str, axis: str) -> None:
    """Raises PL381 where both sides of a matrix have the dimension on which it is cut: tensors are told apart by
    the names of their dimensions, so pieces of what it makes would pass for pieces of what it reads."""
    own, other = sides(block, op)
    if cut in own and cut in other:
        raise SpecError(
            Problem(
                "PL381",
                f"`{op.weights}` is cut on {cut} over {axis}, and this operation has {cut} on both sides: what the pieces "
                "are of cannot be told",
                op.origin.span,
                f"give one side another name, such as `{cut}2` with `dims {cut}2 = {cut}`",
            )
        )


def experts_dim(block: Block, op: bl.Operation) -> str | None:
    """The dimension of the experts, which comes first in what was dispatched."""
    match op:
        case bl.Linear(grouped=True) | bl.Bias() if op.input in block.tensors and _dispatched(block, op.input):
            return block.tensors[op.input][0]
        case _:
            return None


def _dispatched(block: Block, tensor: str) -> bool:
    experts = {block.tensors[op.output][0] for op in block.operations if isinstance(op, bl.Dispatch)}
    return block.tensors[tensor][0] in experts


def stated_dim(program: Program, block: Block, op: bl.Operation, axis: str) -> str | None:
    """The dimension on which `place ... activations` says that an operation with whole weights works."""
    name = operations.weights_of(op)
    if name is None:
        return None
    cut = program.group(name).activations.cut(axis)
    if cut is None or cut.letter != "S" or cut.dim is None or axis in program.work.split_axes:
        return None
    (tensor,) = (op.input,)
    return same_dim(cut.dim, block.tensors[tensor])


def same_dim(dim: str, dims: Dims) -> str | None:
    """The dimension of a tensor that activations call so: heads may be key and value heads."""
    if dim in dims:
        return dim
    if dim == "heads" and "kv_heads" in dims:
        return "kv_heads"
    return None
