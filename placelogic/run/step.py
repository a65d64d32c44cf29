"""The order in which a step runs: the loop over micro-batches, which buffer an operation reads, where all weights meet.

What an operation does to numbers is the subclass's: exact ones, tensors, or lines of a script."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from placelogic.compat import assert_never
from placelogic.program.expr import Expr
from placelogic.program.ops import (
    Accumulate,
    Axes,
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
from placelogic.run.algebra import line_of
from placelogic.run.stop import GroupStop

B = TypeVar("B")
R = TypeVar("R", bound="Runner")  # type: ignore[type-arg]


class Event(Struct, frozen=True):
    """Where all weights meet: `clip` by the global norm, or a decision to `skip` the step."""

    kind: Literal["clip", "skip"]
    op: Clip | Skip


class Runner(Generic[B]):
    """The running step of one weight group; `B` is a gradient buffer, changed in place. It stops where the whole
    job decides. `terms`: the names of the loss terms."""

    def __init__(self, ops: tuple[Op, ...], microbatches: int, terms: Sequence[str | None]) -> None:
        self.ops = ops
        self.microbatches = microbatches
        self._terms = list(terms)
        self.where = ""  # where a person wrote the operation that runs now (algebra.line_of)
        self.buffers: dict[str | None, B] = {}
        self.fresh: B | None = None
        # Clip and gather act on the buffer that the next update below reads; a skip sees what the update reads
        # that runs.
        self._order = list(flat(ops))
        self._running = list(running(ops, microbatches))
        self._target: str | None = None
        self._present: B | None = None
        self.skips = 0  # how many it has come to
        self.dead = False  # whether the event it has come to is one that no update comes after

    def content(self) -> B | None:
        """What the group's gradient is at this point."""
        return self._present if self._present is not None else self.buffers.get(self._target)

    # --- what the numbers say ----------------------------------------------------------------

    @abstractmethod
    def backward(self, turn: int) -> B:
        """The fresh gradient of a micro-batch (from 1)."""

    @abstractmethod
    def added(self, held: B | None, fresh: B, replace: bool) -> B: ...

    @abstractmethod
    def reduce(self, on: B, axes: Axes, mean: bool, scattered: bool) -> None: ...

    @abstractmethod
    def gather(self, on: B, axes: Axes) -> None: ...

    @abstractmethod
    def scale(self, on: B, factor: Expr, term: int | None) -> None:
        """`term`: the number of the one loss term whose part it is about; None: all of it."""

    @abstractmethod
    def cut(self, on: B) -> None:
        """At clip and update a gradient that is placed S is cut where it still is whole."""

    @abstractmethod
    def zero(self) -> B:
        """A fresh gradient of zeros."""

    @abstractmethod
    def update(self, on: B) -> None: ...

    @abstractmethod
    def stop(self, reason: str) -> None:
        """It cannot go on."""

    @abstractmethod
    def publish(self, op: GatherParams | BroadcastParams | Refresh | FetchParams) -> None: ...

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
        for turn in turns(loop, self.microbatches):
            yield from self.turn(loop, turn)

    def turn(self, loop: Loop, turn: int) -> Iterator[Event]:
        self.fresh = self.backward(turn)
        for position, op in enumerate(loop.body):
            later = any(isinstance(o, Accumulate) for o in loop.body[position + 1 :])
            yield from self.one(op, self.fresh if later else None)
        self.fresh = None

    def one(self, op: Op, fresh: B | None) -> Iterator[Event]:
        """`fresh`: the fresh gradient where this operation stands before an accumulate."""
        self.where = line_of(op.origin)
        match op:
            case Loop():
                raise GroupStop("a loop inside a loop has no fresh gradient of its own")
            case Accumulate():
                self.accumulate(op)
            case Reduce(name, axes, kind, scattered, _):
                on = self._pick(name, fresh)
                if on is not None and axes:
                    self.reduce(on, axes, kind == "mean", scattered)
            case GatherGradients(axes, _):
                on = fresh or self.buffers.get(self._feeding(op))
                if on is not None:
                    self.gather(on, axes)
            case Scale(name, factor, _):
                on = self._pick(name, fresh)
                if on is not None:
                    self.scale(on, factor, None)
            case ScaleLoss(term, factor, _):
                self.scale(self._fresh(), factor, self._terms.index(term))
            case Clip() | Skip():
                event = self._event(op, fresh)
                if isinstance(op, Clip) or not self.dead:
                    yield event
                self._present = None
            case Update(name, _):
                self._target = name
                if name not in self.buffers:
                    self.buffers[name] = self.added(None, self.zero(), True)
                self.cut(self.buffers[name])
                self.update(self.buffers[name])
            case GatherParams() | BroadcastParams() | Refresh() | FetchParams():
                self.publish(op)
            case OffloadGradients():
                pass  # the same numbers, elsewhere
            case _:
                assert_never(op)

    def accumulate(self, op: Accumulate) -> None:
        self.buffers[op.buffer] = self.added(self.buffers.get(op.buffer), self._fresh(), op.replace)

    def _event(self, op: Clip | Skip, fresh: B | None) -> Event:
        after = self._running[next(i for i, o in enumerate(self._running) if o is op) :]
        self.dead = not any(isinstance(o, Update) for o in after)
        self._present = fresh
        if isinstance(op, Skip):
            self.skips += not self.dead  # one that no update comes after decides nothing
            self._target = next((o.buffer for o in (*after, *self._running) if isinstance(o, Update)), None)
            return Event("skip", op)
        self._target = self._feeding(op)
        if fresh is None and self._target in self.buffers:
            self.cut(self.buffers[self._target])
        return Event("clip", op)

    def _fresh(self) -> B:
        if self.fresh is None:
            raise GroupStop("there is no fresh gradient outside the micro-batches")
        return self.fresh

    def _pick(self, name: str | None, fresh: B | None) -> B | None:
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
