"""How often the derived step moves a weight group over an axis, in units of one pass over what is held there.

A reduce-scatter and an all-gather are one pass each, an all-reduce is two: the limits for many devices of
docs/semantics.md. Gathered parameters are moved twice in every micro-batch: before the forward pass, and again
before the backward pass where they are dropped in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placelogic.program.expr import Name
from placelogic.program.program import GatherGradients, GatherParams, Loop, Op, Program, Reduce, Weights


@dataclass(frozen=True, slots=True)
class Passes:
    """`once` passes in a step, and `each` more in every micro-batch."""

    once: int
    each: int

    def times(self, count: str) -> str:
        """How many times as much a step with `count` micro-batches moves as a step with one."""
        if not self.once:
            return count if self.each else "1"
        total = self.once + self.each
        each = f"{self.each}*{count}" if self.each > 1 else count
        return f"({each} + {self.once})/{total}"


def passes(program: Program, weights: Weights, axis: str) -> Passes | None:
    """What moves over this axis in a step; None where the number of passes is not known: stated
    loops over some micro-batches, and parameters that stay gathered on groups of devices."""
    once = each = 0
    step = program.step(weights.name)
    for op, looped in _ops(step.ops if step is not None else ()):
        amount = _amount(op, weights, axis)
        if amount and looped not in ("", "each"):
            return None
        once, each = (once, each + amount) if looped else (once + amount, each)
    cut = weights.params.cut(axis)
    if cut is not None and cut.letter == "S*":
        kept = weights.params.reshard
        if kept is not None and not (isinstance(kept, Name) and kept.name in ("true", "false")):
            return None
        each += 1 if isinstance(kept, Name) and kept.name == "false" else 2
    return Passes(once, each)


def _ops(ops: tuple[Op, ...], inside: str = "") -> Iterator[tuple[Op, str]]:
    for op in ops:
        if isinstance(op, Loop):
            yield from _ops(op.body, op.subset)
        else:
            yield op, inside


def _amount(op: Op, weights: Weights, axis: str) -> int:
    match op:
        case Reduce() if axis in op.axes:
            return 1 if op.scattered or weights.gradients.cut(axis) is not None else 2
        case GatherParams() | GatherGradients() if axis in op.axes:
            return 1
        case _:
            return 0
