"""The running step of one weight group: what its operations do to the arrays of the group, over the algebra."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from placelogic.program.expr import Expr, show
from placelogic.program.ops import Axes, BroadcastParams, FetchParams, GatherParams, Op, Refresh
from placelogic.run import buffers
from placelogic.run.algebra import A, M
from placelogic.run.buffers import Buffer
from placelogic.run.state import State
from placelogic.run.step import Runner
from placelogic.run.work import Work


class GroupStep(Runner[Buffer[A]]):
    """`backward(turn)` gives the fresh gradient of a micro-batch (from 1); `update` is told what the optimizer is fed."""

    def __init__(
        self,
        state: State[A, M],
        work: Work,
        ops: tuple[Op, ...],
        backward: Callable[[int], Buffer[A]],
        update: Callable[[Buffer[A]], None],
    ) -> None:
        super().__init__(ops, work.microbatches, [term.name for term in work.terms])
        self.state = state
        self.work = work
        self._backward = backward
        self._update = update

    def backward(self, turn: int) -> Buffer[A]:
        return self._backward(turn)

    def zero(self) -> Buffer[A]:
        empty = self._backward(1)
        buffers.scale(empty, Fraction(0))
        return empty

    def added(self, held: Buffer[A] | None, fresh: Buffer[A], replace: bool) -> Buffer[A]:
        return buffers.accumulate(held, fresh, replace)

    def reduce(self, on: Buffer[A], axes: Axes, mean: bool, scattered: bool) -> None:
        buffers.reduce(on, axes, mean, scattered, self.where)

    def gather(self, on: Buffer[A], axes: Axes) -> None:
        buffers.gather(on, axes)

    def scale(self, on: Buffer[A], factor: Expr, term: int | None) -> None:
        buffers.scale(on, self.work.factor(factor, term or 0), f"scale by {show(factor)}{self.where}", term)

    def cut(self, on: Buffer[A]) -> None:
        for rule in self.state.group.gradients_rule.values():
            if rule.axis not in on.alike:  # what was gathered is whole
                buffers.cut(on, rule)

    def update(self, on: Buffer[A]) -> None:
        self._update(on)

    def publish(self, op: GatherParams | BroadcastParams | Refresh | FetchParams) -> None:
        self.state.publish(op, self.where)

    def stop(self, reason: str) -> None:
        self.state.group.stop = reason
