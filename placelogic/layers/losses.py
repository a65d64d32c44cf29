"""Of which tokens each device computes the loss: what it divides by is counted from them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from placelogic.layers.cases import Case
from placelogic.problem import Problem, SpecError
from placelogic.program.block import CrossEntropy, Layers
from placelogic.program.program import LossTerm, Program


def losses_of(program: Program, layers: Layers, every: Sequence[Case]) -> tuple[LossTerm, ...]:
    """The loss terms, with the axes over which their values are in other pieces than the work is. Raises SpecError
    where that depends on the number of layers."""
    last = layers.blocks[-1].operations[-1]
    split = program.work.split_axes
    if not isinstance(last, CrossEntropy):  # the loss is computed somewhere else, of what is left here
        return program.work.losses
    found = set()
    for case in every:
        block = case.walk.layers[-1]
        shape = block.made[last.output].shape
        pieces = tuple(axis for axis in program.mesh.axes if axis in shape and axis not in split)
        found.add((pieces, tuple(axis for axis in split if axis not in shape)))
    if len(found) > 1:
        message = f"how many tokens of `{last.input}` a device computes the loss of depends on the number of layers"
        raise SpecError(Problem("PL380", message, last.origin.span, "let every layer leave its values as it got them"))
    pieces, whole = found.pop()
    terms = [replace(term, pieces=pieces, whole=whole) for term in program.work.losses]
    return tuple(replace(term, over=term.splits(split)) if term.everywhere else term for term in terms)
