"""The plan of one axis on the way back: what crosses where a tensor changed how it lies, and where shares are added up.

Each crossing has its transpose. What readers leave in shares is added up at the tensor that they read, once for all of them;
unless a collective that a person wrote adds up what comes back anyway, as the transpose of a gather does."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TypeGuard

from msgspec.structs import replace

from placelogic.layers.crossing import Lay, crossing
from placelogic.layers.places import split_dim
from placelogic.layers.planning import AxisPlan, Reader
from placelogic.layers.wants import wants
from placelogic.problem import Problem, SpecError
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import inputs
from placelogic.program.plan import Move, MoveKind
from placelogic.program.program import Program


def plan_axis(
    program: Program, blocks: tuple[Block, ...], axis: str, arriving: tuple[Lay, ...]
) -> tuple[AxisPlan, ...]:
    """The plan of every block along one axis. `arriving`: how each block's input is cut."""
    found = []
    for position, block in enumerate(blocks):
        last = position == len(blocks) - 1
        leaves = arriving[position + 1] if not last else (arriving[position] if block.repeat is not None else None)
        wanted = wants(program, block, axis, leaves if split_dim(program, axis, block) is None else None)
        plan = AxisPlan(program, block, axis, arriving[position], leaves, wanted)
        plan.forward(last and block.repeat is None)
        found.append(plan)
    _plan_backward(found)
    return tuple(found)


def _plan_backward(plans: Sequence[AxisPlan]) -> None:
    """Raises PL389 where the layers of a repeated block would need different plans."""
    after = [False]
    for plan in plans:
        left = plan.block.result in _after(plan, after[-1])
        if plan.block.repeat is not None and left != after[-1]:
            after[-1] = left = False
        after.append(left)
    arrives = False
    for plan, before in zip(reversed(plans), reversed(after[:-1])):
        if plan.block.repeat is None:
            arrives = _backward(plan, arrives, before)
            continue
        other = deepcopy(plan)
        found = _backward(plan, arrives, before)
        _backward(other, not arrives, before)
        if found != arrives and (plan.boundaries, plan.moves) != (other.boundaries, other.moves):
            raise _differs(plan, arrives)
        arrives = found


def _differs(plan: AxisPlan, arrives: bool) -> SpecError:
    """`arrives`: in the last layer what comes back are shares."""
    last, others = ("partial", "whole") if arrives else ("whole", "partial")
    message = (
        f"what comes back to `{plan.block.result}` over {plan.axis} is {last} in the last layer of `{plan.block.name}` and "
        f"{others} in the others, because a collective {'after' if arrives else 'in'} the block leaves it so"
    )
    hint = (
        f"say what comes back: `backward TENSOR over {plan.axis} by gather`, `by slice` or `by none`, at the collective"
    )
    return SpecError(Problem("PL389", message, plan.block.span, hint))


def _backward(plan: AxisPlan, arrives: bool, after: bool) -> bool:
    """`arrives`: what comes back to the result are shares; `after`: the input comes from a collective that adds up
    what comes back. Whether the gradient of the input is left in shares."""
    kept, left = _shares(plan, arrives, after)
    for index, op in enumerate(plan.block.operations):
        if _crosses(plan, op) and op.kind == "reduce" and op.output in kept | left and plan.said(op) is None:
            plan.moves[index] = (plan.moves[index][0], Move(op.op or "sum", op.origin))
    for position, one in enumerate(plan.boundaries):
        if one.consumers is None and one.tensor in left and (back := _ADDING.get(one.forward.kind)) is not None:
            back = Move(back, one.forward.origin, one.forward.dim)
            plan.boundaries[position] = replace(one, backward=back)
    for tensor, groups in plan.read.items():
        for (target, part), readers in _regrouped(plan, tensor, groups, kept, left).items():
            if target != plan.lay[tensor] or part:
                moves = crossing(plan.lay[tensor], target, part, plan.origins[tensor])
                plan.add(tensor, tuple(readers), *moves)
    return plan.block.input in kept | left


_ADDING: dict[str, MoveKind] = {"sum": "sum", "gather": "scatter"}
"""What brings shares back where something crossed forward."""


def _after(plan: AxisPlan, before: bool) -> set[str]:
    """Whole tensors made of what a collective left that a person wrote, and that adds up what comes back: nothing
    else has to. `before`: so is the input."""
    moved = _moved(plan)
    found = {plan.block.input} if before and plan.lay[plan.block.input] is None else set()
    for op in plan.block.operations:
        passed = not _crosses(plan, op) and not found.isdisjoint(inputs(op))
        if plan.lay[op.output] is None and op.output not in moved and (_adds_up(plan, op) or passed):
            found.add(op.output)
    return found


def _shares(plan: AxisPlan, arrives: bool, before: bool) -> tuple[set[str], set[str]]:
    """Whole tensors whose gradient comes back in shares: those that wait for a collective that adds them up, and those
    of which a collective that a person wrote left shares, as a slice does, until something that crossed forward
    brings them back."""
    after, made = _after(plan, before), _moved(plan)
    kept: set[str] = set()
    left: set[str] = set()
    for tensor in (*(op.output for op in reversed(plan.block.operations)), plan.block.input):
        if plan.lay[tensor] is not None:
            continue  # what readers leave of the whole is added up, and cut, before it gets here
        readers = [
            (part, plan.block.operations[index])
            for (target, part), readers in plan.read.get(tensor, {}).items()
            for index, _ in readers
            if target is None
        ]
        through = [op.output for _, op in readers if not _crosses(plan, op)]
        if tensor in after and (any(part for part, _ in readers) or not kept.isdisjoint(through)):
            kept.add(tensor)
        arrived = arrives and tensor == plan.block.result
        if arrived or any(_leaves_shares(plan, op) for _, op in readers) or not (left - made).isdisjoint(through):
            (kept if tensor in after else left).add(tensor)
    return kept, left


def _moved(plan: AxisPlan) -> set[str]:
    """Tensors that change how they lie right where they are made."""
    return {one.tensor for one in plan.boundaries if one.consumers is None}


def _adds_up(plan: AxisPlan, op: bl.Operation) -> bool:
    """What comes back, before it is handed on."""
    if not _crosses(plan, op) or not (op.op == "mean" or op.kind in ("gather", "broadcast")):
        return False
    line = plan.said(op)
    return op.kind == "gather" or line is None or line.by != "none"


def _leaves_shares(plan: AxisPlan, op: bl.Operation) -> bool:
    """Of what it reads, unless a line has it hand back something else."""
    if not _crosses(plan, op):
        return False
    line = plan.said(op)
    return op.kind == "slice" and (line is None or line.by == "none") or op.kind == "broadcast" and line is None


def _crosses(plan: AxisPlan, op: bl.Operation) -> TypeGuard[bl.Collective]:
    return isinstance(op, bl.Collective) and plan.axis in op.axes


def _regrouped(
    plan: AxisPlan, tensor: str, groups: dict[tuple[Lay, bool], list[Reader]], kept: set[str], left: set[str]
) -> dict[tuple[Lay, bool], list[Reader]]:
    """The readers that hand on shares leave them, too."""
    found: dict[tuple[Lay, bool], list[Reader]] = {}
    cut = plan.lay[tensor] is not None
    for (target, part), readers in groups.items():
        for reader in readers:
            op = plan.block.operations[reader[0]]
            through = not _crosses(plan, op) and (op.output in kept or cut and op.output in left)
            adds = (part or through) and not (tensor in kept and target is None)
            found.setdefault((target, part if target is not None else adds), []).append(reader)
    return found
