"""One group's step: its operations in order, stopping where the whole job decides something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from placelogic.compat import assert_never
from placelogic.program.expr import Expr
from placelogic.program.program import (
    Accumulate,
    BroadcastParams,
    Clip,
    FetchParams,
    GatherGradients,
    GatherParams,
    Loop,
    OffloadGradients,
    Op,
    Reduce,
    Refresh,
    Scale,
    ScaleLoss,
    Skip,
    Update,
)
from placelogic.simulate import buffers
from placelogic.simulate.arithmetic import residue
from placelogic.simulate.buffers import Buffer
from placelogic.simulate.outcome import GroupStop
from placelogic.simulate.state import State
from placelogic.simulate.work import Work


@dataclass(frozen=True, slots=True)
class Event:
    """Where all groups meet: `clip` by the global norm, or a decision to `skip` the step."""

    kind: Literal["clip", "skip"]


class Runner:
    """The running step of one group."""

    def __init__(
        self,
        state: State,
        work: Work,
        ops: tuple[Op, ...],
        backward: Callable[[int], Buffer],
        update: Callable[[Buffer], None],
    ) -> None:
        self.state = state
        self.work = work
        self.ops = ops
        self._backward = backward
        self._update = update
        self.buffers: dict[str | None, Buffer] = {}
        self.fresh: Buffer | None = None
        self.turn = 0
        # Clip and gather act on the buffer that the next update below reads; a skip sees what the update reads
        # that runs.
        self._order = list(_flat(ops))
        self._running = list(running(ops, work.microbatches))
        self.target: str | None = None
        self._present: Buffer | None = None
        self.skips = 0  # how many it has come to
        # Whether the event it has come to is one that no update comes after.
        self.dead = False

    def content(self) -> Buffer | None:
        """What the group's gradient is at this point."""
        return self._present if self._present is not None else self.buffers.get(self.target)

    def run(self) -> Iterator[Event]:
        """Every operation; yields at clip and skip. Raises GroupStop."""
        self.target = self._feeding(None)
        for op in self.ops:
            if isinstance(op, Loop):
                for turn in _turns(op, self.work.microbatches):
                    self.turn = turn
                    self.fresh = self._backward(turn)
                    yield from self._body(op.body)
                    self.fresh = None
            else:
                yield from self._one(op, None)

    def _body(self, body: tuple[Op, ...]) -> Iterator[Event]:
        for position, op in enumerate(body):
            later = any(isinstance(o, Accumulate) for o in body[position + 1 :])
            yield from self._one(op, self.fresh if later else None)

    def _one(self, op: Op, fresh: Buffer | None) -> Iterator[Event]:
        """`fresh`: the fresh gradient where this operation stands before an accumulate."""
        match op:
            case Loop():
                raise GroupStop("a loop inside a loop has no fresh gradient of its own")
            case Accumulate(name, replace, _):
                if self.fresh is None:
                    raise GroupStop("there is no fresh gradient outside the micro-batches")
                self.buffers[name] = buffers.accumulate(self.buffers.get(name), self.fresh, replace)
            case Reduce(name, axes, kind, scattered, _):
                on = self._pick(name, fresh)
                if on is not None and axes:
                    buffers.reduce(on, axes, kind == "mean", scattered)
            case GatherGradients(axes, _):
                on = fresh or self.buffers.get(self._feeding(op))
                if on is not None:
                    buffers.gather(on, axes)
            case Scale(name, factor, _):
                on = self._pick(name, fresh)
                if on is not None:
                    buffers.scale(on, self._number(factor))
            case ScaleLoss(term, factor, _):
                if self.fresh is None:
                    raise GroupStop("there is no fresh gradient outside the micro-batches")
                number = [loss.name for loss in self.work.terms].index(term)
                buffers.scale(self.fresh, self._number(factor, number), number)
            case Clip() | Skip():
                self.target = self._feeding(op)
                after = self._running[next(i for i, o in enumerate(self._running) if o is op) :]
                if isinstance(op, Skip):
                    self.target = next((o.buffer for o in (*after, *self._running) if isinstance(o, Update)), None)
                self._present = fresh
                self.dead = not any(isinstance(o, Update) for o in after)
                if isinstance(op, Clip):
                    if fresh is None and self.target in self.buffers:
                        self._cut(self.buffers[self.target])
                    yield Event("clip")
                elif not self.dead:  # else it decides nothing any more
                    self.skips += 1
                    yield Event("skip")
                self._present = None
            case Update(name, _):
                self.target = name
                buffer = self.buffers.get(name)
                if buffer is None:
                    buffer = self.buffers[name] = self._zero()
                self._cut(buffer)
                self._update(buffer)
            case GatherParams(axes, _):
                self.state.gather(axes)
            case BroadcastParams(axes, root, _):
                self.state.broadcast(axes, root)
            case Refresh():
                self.state.refresh()
            case FetchParams():
                self.state.fetch()
            case OffloadGradients():
                pass  # the same numbers, elsewhere
            case _:
                assert_never(op)

    def _pick(self, name: str | None, fresh: Buffer | None) -> Buffer | None:
        return fresh if name is None and fresh is not None else self.buffers.get(name)

    def _number(self, factor: Expr, term: int = 0) -> int:
        try:
            return residue(self.work.value(factor, term))
        except ZeroDivisionError:
            raise GroupStop("a factor divides by zero") from None

    def _cut(self, buffer: Buffer) -> None:
        """At clip and update a gradient that is placed S is cut where it still is whole."""
        for rule in self.state.group.gradients_rule.values():
            buffers.cut(buffer, rule)

    def _zero(self) -> Buffer:
        """A buffer nothing was added to."""
        empty = self._backward(1)
        buffers.scale(empty, 0)
        return buffers.accumulate(None, empty, True)

    def _feeding(self, op: Op | None) -> str | None:
        """The buffer that the next update reads (else any update of the step, else the unnamed)."""
        start = next((i for i, o in enumerate(self._order) if o is op), 0)
        updates = [o.buffer for o in (*self._order[start:], *self._order) if isinstance(o, Update)]
        return updates[0] if updates else None


def _flat(ops: tuple[Op, ...]) -> Iterator[Op]:
    for op in ops:
        if isinstance(op, Loop):
            yield from _flat(op.body)
        else:
            yield op


def running(ops: tuple[Op, ...], count: int) -> Iterator[Op]:
    """The operations that run with so many micro-batches, loop bodies included."""
    for op in ops:
        if not isinstance(op, Loop):
            yield op
        elif _turns(op, count):
            yield from running(op.body, count)


def _turns(loop: Loop, count: int) -> range | list[int]:
    match loop.subset:
        case "each":
            return range(1, count + 1)
        case "but_last":
            return range(1, count)
        case "but_first":
            return range(2, count + 1)
        case "first":
            return [1]
        case "last":
            return [count]
        case "index":
            return [loop.index] if loop.index is not None and 1 <= loop.index <= count else []
        case _:
            assert_never(loop.subset)
