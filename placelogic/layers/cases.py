"""How many layers of a repeated block have to be followed.

Where what enters a layer is worth what leaves it, forward and backward, one layer stands for all. Else the
number of layers matters: one, two, three, and more, where only what does not depend on it is followed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from placelogic.layers.record import Layer
from placelogic.layers.values import Value
from placelogic.layers.walk import Walk
from placelogic.program.block import Block, Layers
from placelogic.program.expr import Compare, Num, number
from placelogic.program.plan import Plan

FOLLOWED = 3
"""Layers of one block that are followed one by one."""


@dataclass(frozen=True, slots=True)
class Case:
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
    walk = nominal if plan == nominal.plan else _walked(plan, layers.blocks, known, nominal)
    moving = [block for block in repeated if not walk.stands_still(block.name)]
    if not moving:
        return (Case(walk, ()),)
    found = []
    for counts in product(*(_counts(block) for block in moving)):
        times = {block.name: count for block, (count, _) in zip(moving, counts)}
        chain = [block for block in layers.blocks for _ in range(min(times.get(block.name, 1), FOLLOWED))]
        walk = _walked(plan, chain, known, nominal)
        when = tuple(
            Compare(op, block.repeat, number(min(count, FOLLOWED + 1)))
            for block, (count, op) in zip(moving, counts)
            if block.repeat is not None
        )
        found.append(Case(walk, when, *_unknown(walk, moving, times)))
    return tuple(found)


def _walked(plan: Plan, chain: Sequence[Block], known: Mapping[str, Layer], nominal: Walk) -> Walk:
    walk = Walk(plan, chain, nominal.axes, nominal.split, known)
    walk.run(nominal.arrives)
    return walk


def _counts(block: Block) -> tuple[tuple[int, str], ...]:
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
