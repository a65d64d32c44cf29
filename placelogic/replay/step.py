"""One group's step on this rank: its operations in order, stopping where the whole job decides something."""

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
    flat,
)
from placelogic.replay import buffers
from placelogic.replay.buffers import Buffer
from placelogic.replay.data import Data
from placelogic.replay.group import CannotRun
from placelogic.replay.state import State
from placelogic.simulate.ops import running


@dataclass(frozen=True, slots=True)
class Event:
    """Where all groups meet: `clip` by the global norm, or a decision to `skip` the step."""

    kind: Literal["clip", "skip"]


class Runner:
    """The running step of one group. `backward(turn)` gives the fresh gradient of a micro-batch."""

    def __init__(
        self,
        state: State,
        data: Data,
        ops: tuple[Op, ...],
        backward: Callable[[int], Buffer],
        update: Callable[[Buffer], None],
    ) -> None:
        self.state = state
        self.ops = ops
        self._data = data
        self._backward = backward
        self._update = update
        self._order = list(flat(ops))
        self.buffers: dict[str | None, Buffer] = {}
        self.fresh: Buffer | None = None
        # Clip and gather act on the buffer that the next update below reads; a skip sees what the update reads
        # that runs.
        self._running = list(running(ops, data.microbatches))
        self._target: str | None = None
        self._present: Buffer | None = None
        self.skips = 0  # how many it has come to
        # Whether the event it has come to is one that no update comes after.
        self.dead = False

    def content(self) -> Buffer | None:
        """What the group's gradient is at this point."""
        return self._present if self._present is not None else self.buffers.get(self._target)

    def run(self) -> Iterator[Event]:
        """Every operation; yields at clip and skip. Raises CannotRun."""
        self._target = self._feeding(None)
        for op in self.ops:
            if not isinstance(op, Loop):
                yield from self._one(op, None)
                continue
            for turn in turns(op, self._data.microbatches):
                self.fresh = self._backward(turn)
                for position, inner in enumerate(op.body):
                    later = any(isinstance(o, Accumulate) for o in op.body[position + 1 :])
                    yield from self._one(inner, self.fresh if later else None)
                self.fresh = None

    def _one(self, op: Op, fresh: Buffer | None) -> Iterator[Event]:
        """`fresh`: the fresh gradient where this operation stands before an accumulate."""
        match op:
            case Loop():
                raise CannotRun("a loop inside a loop has no fresh gradient of its own")
            case Accumulate(name, replace, _):
                if self.fresh is None:
                    raise CannotRun("there is no fresh gradient outside the micro-batches")
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
                    number = self._number(factor)
                    on.layers = [layer * number for layer in on.layers]
            case ScaleLoss(term, factor, _):
                if self.fresh is None:
                    raise CannotRun("there is no fresh gradient outside the micro-batches")
                index = [loss.name for loss in self._data.terms].index(term)
                self.fresh.layers[index] = self.fresh.layers[index] * self._number(factor, index)
            case Clip() | Skip():
                self._target = self._feeding(op)
                after = self._running[next(i for i, o in enumerate(self._running) if o is op) :]
                if isinstance(op, Skip):
                    self._target = next((o.buffer for o in (*after, *self._running) if isinstance(o, Update)), None)
                self._present = fresh
                self.dead = not any(isinstance(o, Update) for o in after)
                if isinstance(op, Skip):
                    if not self.dead:  # else it decides nothing any more
                        self.skips += 1
                        yield Event("skip")
                else:
                    if fresh is None and self._target in self.buffers:
                        self._cut(self.buffers[self._target])
                    yield Event("clip")
                self._present = None
            case Update(name, _):
                self._target = name
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

    def _number(self, factor: Expr, term: int = 0) -> float:
        try:
            return float(self._data.work.value(factor, term))
        except ZeroDivisionError:
            raise CannotRun("a factor divides by zero") from None

    def _cut(self, buffer: Buffer) -> None:
        """At clip and update a gradient that is placed S is cut where it still is whole."""
        for rule in self.state.group.gradients_rule.values():
            buffers.cut(buffer, rule)

    def _zero(self) -> Buffer:
        """A buffer nothing was added to."""
        empty = self._backward(1)
        empty.layers = [layer * 0 for layer in empty.layers]
        return buffers.accumulate(None, empty, True)

    def _feeding(self, op: Op | None) -> str | None:
        """The buffer that the next update reads (else any update of the step, else the unnamed)."""
        start = next((i for i, o in enumerate(self._order) if o is op), 0)
        updates = [o.buffer for o in (*self._order[start:], *self._order) if isinstance(o, Update)]
        return updates[0] if updates else None


def turns(loop: Loop, count: int) -> range | list[int]:
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
