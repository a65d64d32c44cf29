"""From a program with blocks to its plan, its facts, and what has to be proved of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement

from msgspec import Struct
from msgspec.structs import replace

from placelogic.layers.arriving import arriving
from placelogic.layers.cases import Case, cases
from placelogic.layers.deal import dealt
from placelogic.layers.flows import flows, needs
from placelogic.layers.heads import check_heads
from placelogic.layers.losses import losses_of
from placelogic.layers.overrides import overridden
from placelogic.layers.places import same_dim
from placelogic.layers.planning import AxisPlan
from placelogic.layers.record import Gradient, Layer
from placelogic.layers.returning import plan_axis
from placelogic.layers.walk import Walk
from placelogic.layers.wants import stream
from placelogic.problem import Problem, SpecError
from placelogic.program.block import Block, Layers, Override
from placelogic.program.facts import Layering
from placelogic.program.operations import weights_of
from placelogic.program.ops import Origin
from placelogic.program.plan import Boundary, Move, Plan, Work
from placelogic.program.program import Cut, Program, Weights


class Nominal(Struct, frozen=True):
    """The plan without overrides, and the walk through it: one layer of each block."""

    plan: Plan
    walk: Walk

    @property
    def layers(self) -> Mapping[str, Layer]:
        return {layer.block.name: layer for layer in self.walk.layers}


def complete(program: Program) -> Program:
    """The program with what its blocks come to: `layering`, and the activations of weights that see only
    pieces, as a person would place them. Raises SpecError."""
    layers = program.layers
    if layers is None:
        return program
    if layers.overrides and len(program.work.losses) > 1:
        raise SpecError(_several_losses(layers.overrides[0]))
    if not layers.blocks:
        return replace(program, layering=arriving(program, layers))
    _check_order(program)
    found = nominal(program, layers)
    plan, crossings = overridden(layers, found.plan)
    every = cases(layers, plan, found.walk, found.layers)
    deviating, plain = flows(program, every, found.walk)
    weights = tuple(_placed(program, layers, group, found) for group in program.weights)
    usual = found.plan if layers.overrides else None
    layering = Layering(
        plan, crossings, deviating, needs(every, layers.blocks), plain, dealt(program, plan), usual=usual
    )
    work = replace(program.work, losses=losses_of(program, layers, every))
    return replace(program, weights=weights, work=work, layering=layering)


def _several_losses(override: Override) -> Problem:
    return Problem(
        "PL388",
        f"there are several losses, and it is not said which of them come back through `{override.tensor}`",
        override.origin.span,
        "state one loss, or leave this line out",
    )


def nominal(program: Program, layers: Layers) -> Nominal:
    """Derive the plan. Raises SpecError."""
    plans: list[tuple[AxisPlan, ...]] = []
    for axis in program.mesh.axes:
        plans.append(plan_axis(program, layers.blocks, axis, stream(program, layers.blocks, axis)))
    plan = _joined(layers.blocks, plans)
    check_heads(program, layers.blocks, plan)
    first = layers.blocks[0]
    split = frozenset(program.work.split_axes)
    walk = Walk(plan, layers.blocks, program.mesh.axes, split)
    walk.run(plan.shapes.get((first.name, first.input), {}))
    return Nominal(plan, walk)


def _joined(blocks: tuple[Block, ...], plans: list[tuple[AxisPlan, ...]]) -> Plan:
    boundaries: list[Boundary] = []
    shapes: dict[tuple[str, str], dict[str, str]] = {}
    work: dict[tuple[str, int], dict[str, Work]] = {}
    moves: dict[tuple[str, int], dict[str, tuple[Move, Move]]] = {}
    for position, block in enumerate(blocks):
        mine = [each[position] for each in plans]
        # Pieces of one dimension over several axes are put together from the inside, and cut from the outside.
        boundaries += [b for plan in reversed(mine) for b in plan.boundaries if b.forward.kind == "gather"]
        boundaries += [b for plan in mine for b in plan.boundaries if b.forward.kind != "gather"]
        for plan in mine:
            for tensor, lay in plan.lay.items():
                if lay is not None:
                    shapes.setdefault((block.name, tensor), {})[plan.axis] = lay
            for index, where in plan.work.items():
                work.setdefault((block.name, index), {})[plan.axis] = where
            for index, pair in plan.moves.items():
                moves.setdefault((block.name, index), {})[plan.axis] = pair
    return Plan(tuple(boundaries), shapes, work, moves)


def _check_order(program: Program) -> None:
    """Shards of one matrix over several axes nest in one order everywhere, that of the mesh."""
    order = program.mesh.axes.index
    for weights in program.weights:
        cuts = [cut for cut in weights.params.cuts if cut.letter == "S" and cut.dim not in ("layer", "param", "flat")]
        # Each with itself, for products of axes, and with those after it that may cut the same dimension.
        for first, second in combinations_with_replacement(cuts, 2):
            axes = first.axes if first is second else (*first.axes, *second.axes)
            if list(axes) == sorted(axes, key=order) or _apart(first.dim, second.dim):
                continue
            raise SpecError(
                Problem(
                    "PL386",
                    f"`{weights.name}` is cut over {', '.join(axes)}, in another order than the mesh has them",
                    first.origin.span,
                    "with blocks, place the axes that cut one dimension in the order of the mesh",
                )
            )


def _apart(one: str | None, other: str | None) -> bool:
    """Whether two cuts are surely of different dimensions, whatever `in` and `out` are."""
    sides = {"in", "out"}
    return one != other and None not in (one, other) and (one in sides) == (other in sides)


# --- activations ------------------------------------------------------------------------------


def _placed(program: Program, layers: Layers, weights: Weights, found: Nominal) -> Weights:
    """The weights with their activations placed as derived. Raises PL383 where the spec itself states them otherwise,
    PL385 where the operations of one group see different things, PL380 where one sees all of what an axis splits."""
    mine = [g for g in found.walk.gradients if weights_of(_op(layers, g)) == weights.name]
    if not mine:
        return weights
    mine.sort(key=lambda g: (g.layer, g.index))
    cuts = list(weights.activations.cuts)
    for axis in program.mesh.axes:
        if axis in program.work.split_axes:
            _check_split(program, layers, weights, mine, axis, found)
            continue
        if weights.uses is not None and weights.uses.axis == axis:
            continue
        met = axis in weights.routed and any(_meets(found.plan, g, axis) for g in mine)
        seen = {(g.block, g.index): met or _share(g, axis) for g in mine}
        stated = weights.activations.cut(axis)
        if stated is not None and stated.letter == "S" and not met:
            try:
                for gradient in mine:
                    _check_stated(layers, weights, stated, gradient, axis, found)
            except SpecError:
                if stated.origin.library is None or stated.axes != (axis,):
                    raise
                cuts.remove(stated)  # what a strategy says of all weights of a kind does not hold for these
                stated = None
        first = mine[0]
        other = next((g for g in mine if seen[g.block, g.index] != seen[first.block, first.index]), None)
        if other is not None and not weights.frozen:
            raise SpecError(_two_kinds(layers, weights, axis, first, other, seen[first.block, first.index]))
        if seen[first.block, first.index] and stated is None:
            dim = _dim(layers, first, axis, found)
            cuts.append(Cut((axis,), "S", dim, Origin(_op(layers, first).origin.span, stated=False)))
    if tuple(cuts) == weights.activations.cuts:
        return weights
    return replace(weights, activations=replace(weights.activations, cuts=tuple(cuts)))


def _check_split(
    program: Program, layers: Layers, weights: Weights, mine: list[Gradient], axis: str, found: Nominal
) -> None:
    """Along an axis that splits the work a gradient is each device's own share: that is how steps and denominators
    take it. Raises PL380 where that is not so, because pieces were put together before the weights met them."""
    cut = weights.params.cut(axis)
    elsewhere = cut is not None and cut.letter == "S"  # routed, or FW01
    if weights.frozen or elsewhere or any(need.axis == axis for need in found.walk.needs):
        return
    for gradient in mine:
        if all(axis in term.partial for part in gradient.value.parts.values() for term in part.terms):
            continue
        op = _op(layers, gradient)
        dim = next(split.dim for split in program.work.splits if split.axis == axis)
        raise SpecError(
            Problem(
                "PL380",
                f"axis `{axis}` splits the {dim}, and `{op.output}` is made with `{weights.name}` from what was put together "
                "over it: the gradient there is not of a device's own share of the work",
                op.origin.span,
                f"put it together after the operations with weights, or do not split the {dim} over {axis}",
            )
        )


def _op(layers: Layers, gradient: Gradient):  # type: ignore[no-untyped-def]
    return _block(layers, gradient).operations[gradient.index]


def _block(layers: Layers, gradient: Gradient) -> Block:
    return next(block for block in layers.blocks if block.name == gradient.block)


def _share(gradient: Gradient, axis: str) -> bool:
    """Of weights that are cut there, a device's own elements have to get all of their gradient."""
    if axis in gradient.own:
        return False
    return any(axis in term.partial for part in gradient.value.parts.values() for term in part.terms)


def _meets(plan: Plan, gradient: Gradient, axis: str) -> bool:
    """Whether tokens of other devices meet the experts that this one has."""
    return axis in plan.work.get((gradient.block, gradient.index), {})


def _dim(layers: Layers, gradient: Gradient, axis: str, found: Nominal) -> str | None:
    """The dimension whose pieces the operation sees."""
    layer = found.layers[gradient.block]
    read = layer.read[gradient.index, 0].shape.get(axis)
    made = layer.bare[_op(layers, gradient).output].get(axis)
    return read or made


def _check_stated(layers: Layers, weights: Weights, stated: Cut, gradient: Gradient, axis: str, found: Nominal) -> None:
    layer, op = found.layers[gradient.block], _op(layers, gradient)
    read, made = layer.read[gradient.index, 0].shape.get(axis), layer.bare[op.output].get(axis)
    dims = (*layer.block.tensors[op.input], *layer.block.tensors[op.output])
    wanted = {same_dim(stated.dim, dims), stated.dim} if stated.dim is not None else {read, made}
    if (read is None and made is None) or not wanted & {read, made}:
        seen = f"pieces of {read or made}" if read or made else "the whole tensor"
        line = stated.origin.span.line
        raise SpecError(
            Problem(
                "PL383",
                f"the activations of `{weights.name}` are stated as pieces{f' of {stated.dim}' if stated.dim else ''} over "
                f"{axis} (line {line}), and this operation gets {seen} there",
                op.origin.span,
                "leave the statement out: with blocks it is derived; or change what makes its input",
            )
        )


def _two_kinds(layers: Layers, weights: Weights, axis: str, first: Gradient, other: Gradient, share: bool) -> Problem:
    one, two = _op(layers, first), _op(layers, other)
    pieces, whole = (one, two) if share else (two, one)
    return Problem(
        "PL385",
        f"along {axis} `{pieces.output}` sees only a piece of what `{weights.name}` works on, and `{whole.output}` "
        f"(line {whole.origin.span.line}) all of it: their gradients need different reductions",
        pieces.origin.span,
        "give the weights of one of them a group of their own",
    )


__all__ = ["Case", "Nominal", "complete", "nominal"]
