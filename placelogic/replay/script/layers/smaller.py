"""The part of a spec's layers in which something goes wrong, so that a script need not have all of them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from placelogic.layers.derive import nominal
from placelogic.program.block import Block
from placelogic.program.program import Program
from placelogic.replay.cases import Case
from placelogic.simulate import Outcome, simulate_layers


def smallest(program: Program, case: Case, per_item: int, whole: Outcome) -> Program:
    """The program with the fewest of its blocks, each once if that is enough, that goes wrong as the `whole` does, and
    would be right if nothing were said of its boundaries, random numbers and positions: by the exact simulator, both."""
    layers, layering = program.layers, program.layering
    assert layers is not None and layering is not None
    usual = replace(layers, overrides=(), drawn=(), counted=())
    derived = replace(layering, plan=nominal(program, usual).plan)
    for blocks in _parts(layers.blocks):
        wrong = replace(program, layers=replace(layers, blocks=blocks))
        right = replace(program, layers=replace(usual, blocks=blocks), layering=derived)
        if _alike(_simulated(wrong, case, per_item), whole, case) and _simulated(right, case, per_item).right:
            return wrong
    return program


def goes_wrong(outcome: Outcome) -> bool:
    """Whether it goes on to the end, and a script sees the difference."""
    return not outcome.stops and any(one.what in ("forward", "gradient") for one in outcome.differences)


def _alike(outcome: Outcome, whole: Outcome, case: Case) -> bool:
    """Whether what leaves the layers is wrong if it was, and some of the weights that the finding names."""
    told = [name for name in (case.weights or "").split(", ") if whole.wrong(name)]
    forward = [any(one.what == "forward" for one in each.differences) for each in (outcome, whole)]
    wrong = {one.weights for one in outcome.differences}
    return goes_wrong(outcome) and forward[0] == forward[1] and (forward[0] or not told or not wrong.isdisjoint(told))


def _simulated(program: Program, case: Case, per_item: int) -> Outcome:
    return simulate_layers(program, case.meeting.sizes, case.meeting.quantities, per_item)


def _parts(blocks: tuple[Block, ...]) -> Iterator[tuple[Block, ...]]:
    for count in range(1, len(blocks) + 1):
        for first in range(len(blocks) - count + 1):
            some = blocks[first : first + count]
            once = tuple(replace(block, repeat=None) for block in some)
            if once != some:
                yield once
            if count < len(blocks):
                yield some
