"""What a spec without blocks says of the gradient that reaches some weights, done to the gradients it gives.

The backward pass of everything before a point is linear in what arrives there, and all devices along an axis on
which arriving gradients are combined run the same one: so what is done to the gradient that arrives is done to
the gradients of the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placelogic.program.program import Axes, Program
from placelogic.run.work import Work
from placelogic.simulate.arithmetic import PRIME, inverse, residue
from placelogic.simulate.group import Group

if TYPE_CHECKING:
    from placelogic.program.habits import Override


def lines_of(program: Program, weights: str) -> tuple[Override, ...]:
    """The lines that name these weights, in written order; over no axis nothing happens."""
    layers = program.layers
    if layers is None or layers.blocks:
        return ()
    return tuple(line for line in layers.overrides if line.tensor == weights and line.axes)


def kept_along(lines: tuple[Override, ...]) -> Axes:
    """The axes along which each device goes on with its own piece of what arrives."""
    return tuple(axis for line in lines if line.by == "slice" for axis in line.axes)


def arrive(
    lines: tuple[Override, ...], group: Group, work: Work, term: int, arrays: list[list[int]]
) -> list[list[int]]:
    """The gradients of one group on every device, as they are after these lines."""
    for line in lines:
        for axis in line.axes if line.by in ("sum", "mean") else ():
            out = list(arrays)
            for members in group.groups((axis,)):
                total = [sum(column) % PRIME for column in zip(*(arrays[x] for x in members))]
                if line.by == "mean":
                    total = _times(total, inverse(len(members)))
                for x in members:
                    out[x] = total
            arrays = out
        factor = 0 if line.by == "zero" else 1 if line.scale is None else residue(work.value(line.scale, term))
        if factor != 1:
            arrays = [_times(array, factor) for array in arrays]
    return arrays


def _times(array: list[int], factor: int) -> list[int]:
    return [value * factor % PRIME for value in array]
