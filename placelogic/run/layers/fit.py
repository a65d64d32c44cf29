"""Sizes of dimensions, as small as the mesh allows: every cut leaves at least one place to each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm

from placelogic.program import block as bl
from placelogic.program.block import Layers
from placelogic.program.operations import sides
from placelogic.program.plan import Move, Plan
from placelogic.program.program import Program

LEAST = 2
"""Places along a dimension that nothing cuts: enough for two numbers to be unlike."""


def sizes_of(program: Program, layers: Layers, plan: Plan, mesh: Mapping[str, int], each: int = 1) -> dict[str, int]:
    """dimension -> how many places it has. `each`: places of a piece, where something is cut."""
    cuts = cut_by(program, layers, plan)
    found: dict[str, int] = {}
    for block in layers.blocks:
        for dims in block.tensors.values():
            for dim in dims:
                found.setdefault(dim, _product(mesh, cuts.get(dim, [])))
        for op in block.operations:
            for dim in (dim for side in sides(op) for dim in side):
                found.setdefault(dim, _product(mesh, cuts.get(dim, [])))
    for dim, size in found.items():
        found[dim] = max(size * each if size > 1 else size, LEAST)
    _rows(layers, found)
    _joined(layers, found, {dim: _product(mesh, axes) for dim, axes in cuts.items()})
    for block in layers.blocks:
        for op in block.operations:
            if isinstance(op, bl.Attention) and op.heads != op.kv_heads:
                if not any(mesh[axis] > 1 for axis in cuts.get(op.kv_heads, [])):
                    found[op.kv_heads] = 1
                found[op.heads] = lcm(found[op.heads], found[op.kv_heads])
    return found


def _rows(layers: Layers, found: dict[str, int]) -> None:
    """As many rows of a table as there are tokens: equal tokens would hide what is wrong."""
    first = layers.blocks[0]
    tokens = 1
    for dim in first.tensors[first.input]:
        tokens *= found[dim]
    for op in first.operations:
        if isinstance(op, bl.Embedding):
            found[op.vocabulary] *= -(-tokens // found[op.vocabulary])


def _joined(layers: Layers, found: dict[str, int], cuts: Mapping[str, int]) -> None:
    """A dimension that is put together has the places of its parts, and comes out even where it is cut."""
    for block in layers.blocks:
        for op in block.operations:
            if isinstance(op, bl.Concat):
                parts = [block.tensors[tensor][-1] for tensor in op.inputs]
                if sum(found[dim] for dim in parts) % cuts.get(op.into, 1):
                    found.update({dim: lcm(found[dim], cuts[op.into]) for dim in parts})
                found[op.into] = sum(found[dim] for dim in parts)


def cut_by(program: Program, layers: Layers, plan: Plan) -> dict[str, list[str]]:
    """dimension -> every axis that ever cuts it."""
    found: dict[str, list[str]] = {}

    def note(dim: str | None, axis: str) -> None:
        if dim is not None and axis not in found.setdefault(dim, []):
            found[dim].append(axis)

    for split in program.work.splits:
        note(split.dim, split.axis)
        if split.dim == "tokens":
            note("batch", split.axis)
    for shape in plan.shapes.values():
        for axis, dim in shape.items():
            if dim in layers.sizes:
                note(dim, axis)
    for by_axis in plan.work.values():
        for axis, work in by_axis.items():
            note(work.weights, axis)
            note(work.pieces, axis)
    for axis, move in _moves(plan):
        note(move.dim, axis)
        note(move.into, axis)
    return found


def _moves(plan: Plan) -> Sequence[tuple[str, Move]]:
    found = [(b.axis, move) for b in plan.boundaries for move in (b.forward, b.backward)]
    return found + [(axis, move) for by in plan.moves.values() for axis, pair in by.items() for move in pair]


def _product(mesh: Mapping[str, int], axes: Sequence[str]) -> int:
    size = 1
    for axis in axes:
        size *= mesh[axis]
    return size
