"""The step of weights that layers use, as lines of a script: what each device has of them stays whole in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from placelogic.program.expr import Expr, show
from placelogic.program.program import (
    Accumulate,
    BroadcastParams,
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
    Step,
    Update,
)
from placelogic.replay.script.layers.pieces import Pieces
from placelogic.replay.script.lines import NotShown, line_of
from placelogic.replay.script.section import turns

EVERY = "total = sum(found[name] for found in every)"
UPDATE = "held[name] = held[name] - 0.1 * total"


class Lines:
    """Of one weight group, for each of its matrices, which is called `name`."""

    def __init__(
        self, step: Step, count: int, pieces: Pieces, number: Callable[[Expr], float], label: Callable[..., str]
    ) -> None:
        self.step, self.count, self.pieces, self.number, self.label = step, count, pieces, number, label
        self._filled: set[str | None] = set()

    def text(self) -> tuple[str, ...]:
        """Raises NotShown."""
        return tuple(self._lines())

    def _lines(self) -> Iterator[str]:
        ops = list(self.step.ops)
        for place, op in enumerate(ops):
            if isinstance(op, Loop):
                yield from self._loop(op)
            elif isinstance(op, GatherGradients) and place and self._scattered(ops[place - 1], op):
                yield f"# gather over {self.label(op.axes)}: with the reduce-scatter, what an all-reduce does"
            else:
                scattered = isinstance(op, Reduce) and op.scattered
                if scattered and not (place + 1 < len(ops) and self._scattered(op, ops[place + 1])):
                    raise NotShown("its step leaves each device a shard of the gradient")
                yield from self._one(op, self._named(getattr(op, "buffer", None)))

    @staticmethod
    def _scattered(op: Op, then: Op) -> bool:
        """Whether what one scatters the other puts together."""
        return isinstance(op, Reduce) and op.scattered and isinstance(then, GatherGradients) and op.axes == then.axes

    @staticmethod
    def _named(buffer: str | None) -> str:
        return f"total_{buffer}" if buffer else "total"

    def _several(self, axes: tuple[str, ...]) -> list[str]:
        return [axis for axis in axes if self.pieces.grid.size[axis] > 1]

    def _loop(self, loop: Loop) -> Iterator[str]:
        which, body = turns(loop, self.count), loop.body
        if not which:
            return
        first = body[0]
        plain = len(body) == 1 and isinstance(first, Accumulate) and not first.replace
        if self.count == 1 and which == [0] and self._adds(body) and not self._filled:
            self._filled.add(None)
            yield EVERY
            for op in body:
                if not isinstance(op, Accumulate):
                    yield from self._one(op, "total")
            return
        if plain and first.buffer is None and None not in self._filled and len(which) == self.count:  # type: ignore[union-attr]
            self._filled.add(None)
            yield EVERY
            return
        for buffer in {op.buffer for op in body if isinstance(op, Accumulate)} - self._filled:
            self._filled.add(buffer)
            yield f"{self._named(buffer)} = 0"
        yield f"for found in [every[turn] for turn in {which}]:"
        yield "    part = found[name]"
        accumulated = False
        for op in body:
            if isinstance(op, Accumulate):
                accumulated = True
                on = self._named(op.buffer)
                yield f"    {on} = part" if op.replace else f"    {on} = {on} + part"
            elif isinstance(op, Reduce) and op.scattered:
                raise NotShown("its step leaves each device a shard of the gradient")
            else:
                on = self._named(getattr(op, "buffer", None)) if accumulated else "part"
                yield from (f"    {line}" for line in self._one(op, on))

    @staticmethod
    def _adds(body: tuple[Op, ...]) -> bool:
        """Whether all it does is done to the one gradient of a micro-batch, or as well to that."""
        buffers = [getattr(op, "buffer", None) for op in body]
        return sum(isinstance(op, Accumulate) for op in body) == 1 and not any(buffers) and not _scattered(body)

    def _one(self, op: Op, on: str) -> Iterator[str]:
        match op:
            case Reduce(_, axes, kind, _, origin):
                for axis in self._several(axes):
                    self.pieces.axes.add(axis)
                    self.pieces.helpers |= {"sum", "times"} if kind == "mean" else {"sum"}
                    mean = f", times {1 / self.pieces.grid.size[axis]:.17g}" if kind == "mean" else ""
                    why = f"reduce over {self.label(axes)} by {kind}{line_of(origin)}"
                    yield f'{on} = carried({on}, rank, "{axis}", "sum{mean}")  # {why}'
            case GatherGradients(axes) if not self._several(axes):
                pass
            case Scale(_, factor, origin) | ScaleLoss(_, factor, origin):
                yield f"{on} = {self.number(factor):.17g} * {on}  # scale by {show(factor)}{line_of(origin)}"
            case Update(buffer):
                if buffer not in self._filled:
                    raise NotShown("an update reads a buffer that has nothing in it")
                yield f"held[name] = held[name] - 0.1 * {on}"
            case BroadcastParams(axes, _, _) if not self._several(axes):
                pass
            case GatherParams() | Refresh() | FetchParams() | OffloadGradients():
                pass  # everyone has what it needs, in one place
            case _:
                raise NotShown("its step clips, skips, gathers or broadcasts")


def _scattered(ops: tuple[Op, ...]) -> bool:
    return any(isinstance(op, Reduce) and op.scattered for op in ops)
