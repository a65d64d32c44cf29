"""From a program with blocks to its plan, its facts, and what has to be proved of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from placelogic.layers.operations import weights_of
from placelogic.layers.overrides import overridden
from placelogic.layers.planning import AxisPlan, plan_axis
from placelogic.layers.places import split_dim
from placelogic.layers.walk import Layer, Walk
from placelogic.layers.wants import stream
from placelogic.program.block import Block, Layers
from placelogic.program.plan import Boundary, Move, Plan, Work
from placelogic.program.program import Program


@dataclass(frozen=True, slots=True)
class Nominal:
    """The plan without overrides, and the walk through it: one layer of each block."""

    plan: Plan
    walk: Walk

    @property
    def layers(self) -> Mapping[str, Layer]:
        return {layer.block.name: layer for layer in self.walk.layers}


def nominal(program: Program, layers: Layers) -> Nominal:
    """Derive the plan. Raises SpecError."""
    plans: list[tuple[AxisPlan, ...]] = []
    for axis in program.mesh.axes:
        plans.append(plan_axis(program, layers.blocks, axis, stream(program, layers.blocks, axis)))
    plan = _joined(layers.blocks, plans)
    walk = Walk(plan, layers.blocks)
    walk.run(arriving(program, layers.blocks[0]))
    return Nominal(plan, walk)


def arriving(program: Program, block: Block) -> dict[str, str]:
    """How the first block's input lies: cut as the work is split."""
    found = {axis: split_dim(program, axis, block) for axis in program.mesh.axes}
    return {axis: dim for axis, dim in found.items() if dim is not None}


def _joined(blocks: tuple[Block, ...], plans: list[tuple[AxisPlan, ...]]) -> Plan:
    boundaries: list[Boundary] = []
    shapes: dict[tuple[str, str], dict[str, str]] = {}
    work: dict[tuple[str, int], dict[str, Work]] = {}
    moves: dict[tuple[str, int], dict[str, tuple[Move, Move]]] = {}
    for position, block in enumerate(blocks):
        for plan in (each[position] for each in plans):
            boundaries += plan.boundaries
            for tensor, lay in plan.lay.items():
                if lay is not None:
                    shapes.setdefault((block.name, tensor), {})[plan.axis] = lay
            for index, where in plan.work.items():
                work.setdefault((block.name, index), {})[plan.axis] = where
            for index, pair in plan.moves.items():
                moves.setdefault((block.name, index), {})[plan.axis] = pair
    return Plan(tuple(boundaries), shapes, work, moves)


def facts_differ(program: Program) -> Program:
    return replace(program)


__all__ = ["Nominal", "arriving", "nominal", "overridden", "weights_of"]
