"""What a spec without blocks says of the gradient that reaches some weights, done to the gradients it gives.

The backward pass of everything before a point is linear in what arrives there, and all devices along an axis on
which arriving gradients are combined run the same one: so what is done to the gradient that arrives is done to
the gradients of the weights."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from placelogic.program.expr import show
from placelogic.program.program import Axes, Program
from placelogic.run.algebra import line_of
from placelogic.run.buffers import Buffer
from placelogic.run.work import Work

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


def arrive(lines: tuple[Override, ...], buffer: Buffer, work: Work) -> None:  # type: ignore[type-arg]
    """To the fresh gradient of a micro-batch. What is sliced was computed from pieces already. Raises GroupStop."""
    on, held = buffer.on, buffer.local
    for line in lines:
        where = line_of(line.origin)
        for axis in line.axes if line.by in ("sum", "mean") else ():
            why = f"backward over {axis} by {line.by}{where}"
            buffer.layers = [on.sum(a, held, (axis,), line.by == "mean", None, why) for a in buffer.layers]
        if line.by == "zero":
            buffer.layers = [on.scale(a, Fraction(0), f"backward by zero{where}") for a in buffer.layers]
        elif line.scale is not None:
            why = f"backward, scale {show(line.scale)}{where}"
            buffer.layers = [on.scale(a, work.factor(line.scale, t), why) for t, a in enumerate(buffer.layers)]
