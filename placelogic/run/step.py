"""The order in which a step runs: the loop over micro-batches, which buffer an operation reads, where all weights meet.

What an operation does to arrays is said in buffers.py and state.py, and to numbers by the algebra (algebra.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from placelogic.compat import assert_never
from placelogic.program.expr import show
from placelogic.program.ops import (
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
    flat,
)
from placelogic.run import buffers
from placelogic.run.algebra import A, M, line_of
from placelogic.run.buffers import Buffer
from placelogic.run.state import State
from placelogic.run.stop import GroupStop
from placelogic.run.work import Work

R = TypeVar("R", bound="Runner")  # type: ignore[type-arg]


class Event(Struct, frozen=True):
    """Where all weights meet: `clip` by the global norm, or a decision to `skip` the step."""

    kind: Literal["clip", "skip"]
    op: Clip | Skip


class Runner(Generic[A, M]):
    """The running step of one weight group, up to where the whole job decides. `backward(turn)` gives the fresh gradient
    of a micro-batch (from 1), `update` is told what the optimizer is fed."""

    def __init__(
        self,
        state: State[A, M],
        work: Work,
        ops: tuple[Op, ...],
        backward: Callable[[int], Buffer[A]],
        update: Callable[[Buffer[A]], None],
    ) -> None:
        self.state = state
        self.work = work
        self.ops = ops
        self._backward = backward
        self._update = update
        self.buffers: dict[str | None, Buffer[A]] = {}
        self.fresh: Buffer[A] | None = None
        # Clip and gather act on the buffer that the next update below reads; a skip sees what the update reads
        # that runs.
        self._order = list(flat(ops))
        self._running = list(running(ops, work.microbatches))
        self._target: str | None = None
        self._present: Buffer[A] | None = None
        self.skips = 0  # how many it has come to
        self.dead = False  # whether the event it has come to is one that no update comes after

    def content(self) -> Buffer[A] | None:
        """What the group's gradient is at this point."""
        return self._present if self._present is not None else self.buffers.get(self._target)

    def stop(self, reason: str) -> None:
        """It cannot go on."""
        self.state.group.stop = reason

    # --- the order ---------------------------------------------------------------------------

    def run(self) -> Iterator[Event]:
        """Every operation; yields at clip and skip. Raises GroupStop."""
        self._target = self._feeding(None)
        for op in self.ops:
            if isinstance(op, Loop):
                yield from self.loop(op)
            else:
                yield from self.one(op, None)

    def loop(self, loop: Loop) -> Iterator[Event]:
        for turn in turns(loop, self.work.microbatches):
            yield from self.turn(loop, turn)

    def turn(self, loop: Loop, turn: int) -> Iterator[Event]:
        self.fresh = self._backward(turn)
        for position, op in enumerate(loop.body):
            later = any(isinstance(o, Accumulate) for o in loop.body[position + 1 :])
            yield from self.one(op, self.fresh if later else None)
        self.fresh = None

    def one(self, op: Op, fresh: Buffer[A] | None) -> Iterator[Event]:
        """`fresh`: the fresh gradient where this operation stands before an accumulate."""
        match op:
            case Loop():
                raise GroupStop("a loop inside a loop has no fresh gradient of its own")
            case Accumulate():
                self.accumulate(op)
            case Reduce(name, axes, kind, scattered, origin):
                on = self._pick(name, fresh)
                if on is not None and axes:
                    buffers.reduce(on, axes, kind == "mean", scattered, line_of(origin))
            case GatherGradients(axes, _):
                on = fresh or self.buffers.get(self._feeding(op))
                if on is not None:
                    buffers.gather(on, axes)
            case Scale(name, factor, origin):
                on = self._pick(name, fresh)
                if on is not None:
                    buffers.scale(on, self.work.factor(factor), f"scale by {show(factor)}{line_of(origin)}")
            case ScaleLoss():
                self.scale_loss(op)
            case Clip() | Skip():
                event = self._event(op, fresh)
                if isinstance(op, Clip) or not self.dead:
                    yield event
                self._present = None
            case Update(name, _):
                self._target = name
                buffer = self.buffers.get(name)
                if buffer is None:
                    buffer = self.buffers[name] = buffers.accumulate(None, self.zero(), True)
                buffers.cut_as_placed(buffer)
                self._update(buffer)
            case GatherParams() | BroadcastParams() | Refresh() | FetchParams():
                self.state.publish(op, line_of(op.origin))
            case OffloadGradients():
                pass  # the same numbers, elsewhere
            case _:
                assert_never(op)

    def accumulate(self, op: Accumulate) -> None:
        self.buffers[op.buffer] = buffers.accumulate(self.buffers.get(op.buffer), self._fresh(), op.replace)

    def scale_loss(self, op: ScaleLoss) -> None:
        number = [term.name for term in self.work.terms].index(op.term)
        buffers.scale(self._fresh(), self.work.factor(op.factor, number), layer=number)

    def zero(self) -> Buffer[A]:
        """A fresh gradient of zeros."""
        empty = self._backward(1)
        buffers.scale(empty, Fraction(0))
        return empty

    def _event(self, op: Clip | Skip, fresh: Buffer[A] | None) -> Event:
        after = self._running[next(i for i, o in enumerate(self._running) if o is op) :]
        self.dead = not any(isinstance(o, Update) for o in after)
        self._present = fresh
        if isinstance(op, Skip):
            self.skips += not self.dead  # one that no update comes after decides nothing
            self._target = next((o.buffer for o in (*after, *self._running) if isinstance(o, Update)), None)
            return Event("skip", op)
        self._target = self._feeding(op)
        if fresh is None and self._target in self.buffers:
            buffers.cut_as_placed(self.buffers[self._target])
        return Event("clip", op)

    def _fresh(self) -> Buffer[A]:
        if self.fresh is None:
            raise GroupStop("there is no fresh gradient outside the micro-batches")
        return self.fresh

    def _pick(self, name: str | None, fresh: Buffer[A] | None) -> Buffer[A] | None:
        return fresh if name is None and fresh is not None else self.buffers.get(name)

    def _feeding(self, op: Op | None) -> str | None:
        """The buffer that the next update reads (else any update of the step, else the unnamed)."""
        start = next((i for i, o in enumerate(self._order) if o is op), 0)
        updates = [o.buffer for o in (*self._order[start:], *self._order) if isinstance(o, Update)]
        return updates[0] if updates else None


def drive(
    runners: Sequence[R], decide: Callable[[R, Event], None], clip: Callable[[Sequence[R], Event], None]
) -> None:
    """Run all groups, from one common event to the next."""
    going = {place: runner.run() for place, runner in enumerate(runners)}
    waiting: dict[int, Event] = {}
    while True:
        for place in [place for place in going if place not in waiting]:
            try:
                waiting[place] = next(going[place])
            except StopIteration:
                del going[place]
            except GroupStop as stop:
                runners[place].stop(str(stop))
                del going[place]
        if not waiting:
            return
        # Clipping is one event: it waits until every group that clips has come to it.
        deciding = [place for place, event in waiting.items() if event.kind != "clip"]
        for place in deciding:
            decide(runners[place], waiting.pop(place))
        if not deciding:
            clip([runners[place] for place in waiting], next(iter(waiting.values())))
            waiting.clear()


def running(ops: tuple[Op, ...], count: int) -> Iterator[Op]:
    """The operations that run with so many micro-batches, loop bodies included."""
    for op in ops:
        if not isinstance(op, Loop):
            yield op
        elif turns(op, count):
            yield from running(op.body, count)


def turns(loop: Loop, count: int) -> Sequence[int]:
    """Which micro-batches of so many, from 1."""
    every = range(1, count + 1)
    match loop.subset:
        case "each":
            return every
        case "but_last":
            return every[:-1]
        case "but_first":
            return every[1:]
        case "first":
            return every[:1]
        case "last":
            return every[-1:]
        case "index":
            return [turn for turn in every if turn == loop.index]
        case _:
            assert_never(loop.subset)
