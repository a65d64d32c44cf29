"""What a person says an implementation does, put into the plan: one move at one boundary each.

An override replaces what is derived at that boundary in that direction, and nothing else: the rest of the
plan stays, so that nothing heals a boundary that is wrong.
"""

from __future__ import annotations

from msgspec.structs import replace

from placelogic.problem import Problem, SpecError
from placelogic.program.block import Block, Layers, Override
from placelogic.program.expr import Binary, Name, number
from placelogic.program.facts import Crossing
from placelogic.program.plan import Boundary, Move, Plan

Moves = tuple[Move, Move]
"""Forward and backward."""


def overridden(layers: Layers, plan: Plan) -> tuple[Plan, tuple[Crossing, ...]]:
    """The plan with every override in it, and what each of them replaced. Raises PL384."""
    crossings: list[Crossing] = []
    # What happens forward first: it decides what can happen backward.
    for line in sorted(layers.overrides, key=lambda override: override.direction != "forward"):
        for axis in line.axes:
            # The factor multiplies what results, once.
            override = line if axis == line.axes[0] else replace(line, scale=None)
            block = next(block for block in layers.blocks if block.name == override.block)
            plan, new, (forward, back) = _put(plan, block, override, axis)
            made, derived = (new[0], forward) if override.direction == "forward" else (new[1], back)
            crossings.append(
                Crossing(
                    block.name,
                    override.tensor,
                    axis,
                    override.direction,
                    _DONE[forward.kind],
                    _BY.get(derived.kind),
                    (made.kind, made.scale) != (derived.kind, derived.scale),
                    override.origin,
                )
            )
    return plan, tuple(crossings)


def _put(plan: Plan, block: Block, override: Override, axis: str) -> tuple[Plan, Moves, Moves]:
    """The new plan, the moves that stand there now, forward and backward, and those that stood there."""
    index = next((i for i, op in enumerate(block.operations) if op.output == override.tensor), None)
    written = plan.moves.get((block.name, index), {}).get(axis) if index is not None else None
    ahead = override.direction == "forward"
    here = [b for b in plan.boundaries if (b.block, b.tensor, b.axis) == (block.name, override.tensor, axis)]
    active = [b for b in here if not (b.forward if ahead else b.backward).idle]
    readers = [b for b in active if b.consumers is not None]
    made = [b for b in active if b.consumers is None]
    moves = written is not None and not (written[0] if ahead else written[1]).idle
    if len(readers) + bool(made) + moves > 1 and (ahead or not moves):
        raise _problem(
            override,
            f"`{override.tensor}` changes how it lies over {axis} in several places, and this does not say where",
            "give one of them a name of its own with a line such as `y = scale x by 1`",
        )
    if written is not None and (moves or ahead or not active):
        return _written(plan, block, index, override, axis, written)  # type: ignore[arg-type]
    if not active:
        forward = Move("none", override.origin)
        made = [b for b in here if b.consumers is None]
        boundary = made[0] if made else Boundary(block.name, override.tensor, None, axis, forward, forward)
        rest = tuple(b for b in plan.boundaries if b is not boundary)
        # Where a tensor is made comes before its readers, and after what is there already.
        lies = plan.shapes.get((block.name, override.tensor), {}).get(axis)
        if override.direction == "forward" and override.by == "gather" and lies in block.tensors[override.tensor]:
            changed = _gathered(boundary, override, lies)
        else:
            changed = _changed(boundary, override)
        plan = replace(plan, boundaries=(*rest, changed))
        return plan, (changed.forward, changed.backward), (boundary.forward, boundary.backward)
    (boundary,) = active
    changed = _changed(boundary, override)
    boundaries = tuple(changed if b is boundary else b for b in plan.boundaries)
    both = (changed.forward, changed.backward), (boundary.forward, boundary.backward)
    return replace(plan, boundaries=boundaries), *both


def _gathered(boundary: Boundary, override: Override, dim: str | None) -> Boundary:
    """A tensor that is cut, put together where that is not derived; what comes back is cut again."""
    back = boundary.backward if not boundary.backward.idle else Move("slice", boundary.backward.origin, dim)
    forward = Move("gather", override.origin, dim, scale=override.scale)
    return replace(boundary, forward=forward, backward=replace(back, origin=replace(back.origin, stated=False)))


def _written(
    plan: Plan, block: Block, index: int, override: Override, axis: str, written: tuple[Move, Move]
) -> tuple[Plan, Moves, Moves]:
    if override.direction == "forward":
        raise _problem(
            override, f"what happens forward at `{override.tensor}` is written out in its block", "change it there"
        )
    stands = Boundary(block.name, override.tensor, None, axis, *written)
    changed = _changed(stands, override)
    moves = {**plan.moves[block.name, index], axis: (changed.forward, changed.backward)}
    moved = replace(plan, moves={**plan.moves, (block.name, index): moves})
    return moved, (changed.forward, changed.backward), written


def _changed(boundary: Boundary, override: Override) -> Boundary:
    if override.direction == "forward":
        return replace(boundary, forward=_forward(boundary.forward, override, boundary.axis))
    return replace(boundary, backward=handed_back(boundary.forward, boundary.backward, override, boundary.axis))


def _forward(move: Move, override: Override, axis: str) -> Move:
    origin, by = override.origin, override.by
    match by:
        case "none":
            return Move(by, origin, scale=override.scale)
        case "zero":
            if move.kind not in ("none", "sum", "mean"):
                raise _misfit(override, move, axis)
            return Move(by, origin, scale=override.scale)
        case "sum" | "mean":
            if move.kind in ("scatter", "scatter_mean"):
                return Move("scatter" if by == "sum" else "scatter_mean", origin, move.dim, scale=override.scale)
            if move.kind not in ("none", "sum", "mean"):
                raise _misfit(override, move, axis)
            return Move(by, origin, scale=override.scale)
        case "slice" | "gather":
            if move.kind != by:
                raise _misfit(override, move, axis)
            return Move(by, origin, move.dim, scale=override.scale)


def handed_back(forward: Move, derived: Move, override: Override, axis: str) -> Move:
    """The move that `by` means, given what happens forward: a tensor that was gathered is cut on the way
    back, one that was cut is put together, or padded."""
    origin, by, scale = override.origin, override.by, override.scale
    if by == "zero":
        return Move("zero", origin, derived.dim, derived.into, scale)
    match forward.kind:
        case "none" | "sum" | "mean" | "root" | "zero":
            if by in ("none", "sum", "mean"):
                return Move(by, origin, scale=scale)
        case "gather":
            kinds = {"sum": "scatter", "mean": "scatter_mean", "slice": "slice", "none": "slice"}
            if by in kinds:
                return Move(kinds[by], origin, forward.dim, scale=scale)  # type: ignore[arg-type]
        case "slice" | "scatter" | "scatter_mean":
            if by in ("sum", "gather"):
                return Move("gather", origin, forward.dim, scale=scale)
            if by == "mean":
                share = Binary("/", number(1), Name(axis))
                return Move("gather", origin, forward.dim, scale=share if scale is None else Binary("*", share, scale))
            if by == "none":
                return Move("pad", origin, forward.dim, scale=scale)
        case "exchange":
            if by == "none" and scale is not None:
                return replace(derived, origin=origin, scale=scale)
    raise _misfit(override, forward, axis)


_BY = {
    "none": "none",
    "sum": "sum",
    "mean": "mean",
    "scatter": "sum",
    "scatter_mean": "mean",
    "gather": "gather",
    "slice": "slice",
}
"""How a person says what is derived."""

_DONE = {
    "none": "nothing crosses between devices",
    "sum": "partial values are added up",
    "mean": "partial values are averaged",
    "scatter": "partial values are added up and cut",
    "scatter_mean": "partial values are averaged and cut",
    "gather": "pieces are gathered",
    "slice": "the tensor is cut",
    "exchange": "pieces are exchanged",
    "root": "one device's value is sent to all",
    "reduce": "one device has the sum",
    "zero": "the value is dropped",
    "pad": "the pieces of others are zeros",
}


def _misfit(override: Override, forward: Move, axis: str) -> SpecError:
    what = f"at `{override.tensor}` {_DONE[forward.kind]} over {axis}"
    return _problem(
        override,
        f"{what} on the way forward, and `{override.direction} ... by {override.by}` does not go with that",
        "say `none`, `sum`, `mean` or `zero`, or write the collective out in the block",
    )


def _problem(override: Override, message: str, hint: str) -> SpecError:
    return SpecError(Problem("PL384", message, override.origin.span, hint))
