"""How many layers of a repeated block have to be followed.

Where what enters a layer is worth what leaves it, forward and backward, one layer stands for all. Else the
number of layers matters: one, two, three, and more, where only what does not depend on it is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct, field

from placelogic.layers.record import Layer
from placelogic.layers.values import Value
from placelogic.layers.walk import Walk
from placelogic.program.block import Block, Layers
from placelogic.program.expr import Compare, Num, number
from placelogic.program.plan import Plan

FOLLOWED = 3
"""Layers of one block that are followed one by one."""


class Case(Struct, frozen=True):
    """`when`: on the number of layers. `unknown`: for layers (by number in the chain) whose gradients depend on
    layers that are not followed, what one such layer makes of a gradient. `unseen`: the same for values, where
    what is left at the end depends on them."""

    walk: Walk
    when: tuple[Compare, ...]
    unknown: Mapping[int, Value] = field(default_factory=dict)
    unseen: tuple[Value, ...] = ()


def cases(layers: Layers, plan: Plan, nominal: Walk, known: Mapping[str, Layer]) -> tuple[Case, ...]:
    """Every case that can be told apart."""
    repeated = [block for block in layers.blocks if block.repeat is not None and block.repeat != number(1)]
    moving: list[Block] = []
    while True:
        found = tuple(_case(layers, plan, nominal, known, moving, counts) for counts in _each(moving))
        # What one block does for several numbers of layers may set another one moving.
        more = [
            block
            for block in repeated
            if block not in moving and any(not case.walk.stands_still(block.name) for case in found)
        ]
        if not more:
            return found
        moving += more


Counts = tuple[tuple[int, str], ...]
"""For each block that moves: a number of layers, and how the real one compares with it."""


def _each(moving: Sequence[Block]) -> Iterator[Counts]:
    yield from product(*(_counts(block) for block in moving))


def _case(
    layers: Layers, plan: Plan, nominal: Walk, known: Mapping[str, Layer], moving: Sequence[Block], counts: Counts
) -> Case:
    times = {block.name: count for block, (count, _) in zip(moving, counts)}
    chain = [block for block in layers.blocks for _ in range(min(times.get(block.name, 1), FOLLOWED))]
    walk = nominal if plan == nominal.plan and not moving else _walked(plan, chain, known, nominal)
    when = tuple(
        Compare(op, block.repeat, number(count))
        for block, (count, op) in zip(moving, counts)
        if block.repeat is not None
    )
    return Case(walk, when, *_unknown(walk, moving, times))


def _walked(plan: Plan, chain: Sequence[Block], known: Mapping[str, Layer], nominal: Walk) -> Walk:
    walk = Walk(plan, chain, nominal.axes, nominal.split, known)
    walk.run(nominal.arrives)
    return walk


def _counts(block: Block) -> Counts:
    """The numbers of layers to tell apart: exact ones, and one more for all above."""
    if isinstance(block.repeat, Num):
        exact = int(block.repeat.value)
        return ((exact, "=="),) if exact <= FOLLOWED else ((FOLLOWED + 1, ">="),)
    return (*((count, "==") for count in range(1, FOLLOWED + 1)), (FOLLOWED + 1, ">="))


def _unknown(
    walk: Walk, moving: Sequence[Block], times: Mapping[str, int]
) -> tuple[dict[int, Value], tuple[Value, ...]]:
    """With more layers than are followed, the last ones are right as they are; what comes before a block
    that still changes from layer to layer is not known. Forward it is the other way round."""
    found: dict[int, Value] = {}
    unseen: list[Value] = []
    for block in moving:
        if times[block.name] <= FOLLOWED:
            continue
        forward, backward = walk.settled(block.name)
        left, came = walk.after_one(block.name)
        if not forward:
            unseen.append(left)
        if not backward:
            first = next(layer.number for layer in walk.layers if layer.block.name == block.name)
            found.update({layer.number: came for layer in walk.layers if layer.number < first})
    return found, tuple(unseen)
