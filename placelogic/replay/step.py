"""One group's step on this rank: what its operations do to tensors."""

from __future__ import annotations

from collections.abc import Callable

from placelogic.program.expr import Expr
from placelogic.program.ops import Axes, BroadcastParams, FetchParams, GatherParams, Op, Refresh
from placelogic.replay import buffers
from placelogic.replay.buffers import Buffer
from placelogic.replay.data import Data
from placelogic.replay.state import State
from placelogic.run import step
from placelogic.run.stop import GroupStop


class Runner(step.Runner[Buffer]):
    """The running step of one group. `backward(turn)` gives the fresh gradient of a micro-batch."""

    def __init__(
        self,
        state: State,
        data: Data,
        ops: tuple[Op, ...],
        backward: Callable[[int], Buffer],
        update: Callable[[Buffer], None],
    ) -> None:
        super().__init__(ops, data.microbatches, [term.name for term in data.terms])
        self.state = state
        self._data = data
        self._backward = backward
        self._update = update

    def backward(self, turn: int) -> Buffer:
        return self._backward(turn)

    def update(self, on: Buffer) -> None:
        self._update(on)

    def added(self, held: Buffer | None, fresh: Buffer, replace: bool) -> Buffer:
        return buffers.accumulate(held, fresh, replace)

    def reduce(self, on: Buffer, axes: Axes, mean: bool, scattered: bool) -> None:
        buffers.reduce(on, axes, mean, scattered)

    def gather(self, on: Buffer, axes: Axes) -> None:
        buffers.gather(on, axes)

    def scale(self, on: Buffer, factor: Expr, term: int | None) -> None:
        try:
            number = float(self._data.work.value(factor, term or 0))
        except ZeroDivisionError:
            raise GroupStop("a factor divides by zero") from None
        on.layers = [layer * number if term in (None, i) else layer for i, layer in enumerate(on.layers)]

    def cut(self, on: Buffer) -> None:
        for rule in self.state.group.gradients_rule.values():
            if rule.axis not in on.alike:  # what was gathered is whole
                buffers.cut(on, rule)

    def zero(self) -> Buffer:
        empty = self._backward(1)
        empty.layers = [layer * 0 for layer in empty.layers]
        return empty

    def stop(self, reason: str) -> None:
        self.state.group.stop = reason

    def publish(self, op: GatherParams | BroadcastParams | Refresh | FetchParams) -> None:
        match op:
            case GatherParams(axes, _):
                self.state.gather(axes)
            case BroadcastParams(axes, root, _):
                self.state.broadcast(axes, root)
            case Refresh():
                self.state.refresh()
            case FetchParams():
                self.state.fetch()
