"""Where the blocks of a spec lie along the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from placelogic.program.block import Block
from placelogic.program.operations import weights_of
from placelogic.program.program import Program

Place = Literal["first", "last", "shared", "unknown"]
Ends = frozenset[str]
"""Of "first" and "last": the stages that hold some weights."""


def places(blocks: Sequence[Block], ends: Callable[[str], Ends]) -> tuple[Place, ...]:
    """One for each block. The layers of repeated blocks are shared out over the stages; what stands before all of
    them lies on the first stage, what stands after them on the last. Without repeated blocks the first block and
    the last lie on the ends, those between where their weights are: `ends` of weights, none where that is not said.
    """
    repeated = [index for index, block in enumerate(blocks) if block.repeat is not None]
    return tuple(_place(blocks, index, repeated, ends) for index in range(len(blocks)))


def stage_of(program: Program, block: str) -> Place:
    """Where a block of a program with stages lies, by its name."""
    assert program.layers is not None
    ends = {
        weights.name: frozenset(end for end in ("first", "last") if getattr(weights.uses, end))
        for weights in program.weights
        if weights.uses is not None
    }
    blocks = program.layers.blocks
    found = places(blocks, lambda name: ends.get(name, frozenset()))
    return next(place for place, other in zip(found, blocks) if other.name == block)


def _place(blocks: Sequence[Block], index: int, repeated: list[int], ends: Callable[[str], Ends]) -> Place:
    if repeated:
        if blocks[index].repeat is not None:
            return "shared"
        return "first" if index < repeated[0] else "last" if index > repeated[-1] else "unknown"
    if len(blocks) == 1:
        return "unknown"
    if index in (0, len(blocks) - 1):
        return "first" if index == 0 else "last"
    found = {ends(name) for name in used(blocks[index])} - {frozenset(), frozenset(["first", "last"])}
    if len(found) != 1:
        return "unknown"
    return "first" if "first" in next(iter(found)) else "last"


def used(block: Block) -> tuple[str, ...]:
    """The weights of its operations, each once."""
    return tuple(dict.fromkeys(name for op in block.operations if (name := weights_of(op)) is not None))
