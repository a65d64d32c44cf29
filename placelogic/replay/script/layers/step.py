"""The step of weights that layers use, as lines of a script: what each device has of them stays whole in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

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
from placelogic.replay.script.lines import NotShown, times
from placelogic.run.algebra import line_of
from placelogic.run.step import turns

EVERY = "total = sum(found[name] for found in every)"
UPDATE = "held[name] = held[name] - 0.1 * total"


class Lines:
    """Of one weight group, for each of its matrices, which is called `name`."""

    def __init__(
        self, step: Step, count: int, pieces: Pieces, number: Callable[[Expr], Fraction], label: Callable[..., str]
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
        which, body = [turn - 1 for turn in turns(loop, self.count)], loop.body
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
                yield f"{on} = {times(self.number(factor))}{on}  # scale by {show(factor)}{line_of(origin)}"
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


def _plain(lines: Sequence[str]) -> bool:
    """Whether a step adds up, does this and that with the sum, and updates."""
    inner = lines[1:-1]
    return lines[0] == EVERY and lines[-1] == UPDATE and all(re.match(r"total = |# ", line) for line in inner)


def _forward_only(calls: Sequence[str], count: int) -> Iterator[str]:
    yield "    # what the layers leave; nothing is trained"
    if count == 1:
        yield from (f"    {line}" for line in calls)
        yield "    return x, held"
        return
    yield "    left = []"
    yield f"    for turn in range({count}):"
    yield from (f"        {line}" for line in (*calls, "left.append(x)"))
    yield "    return torch.stack(left), held"


def function(
    alike: Mapping[tuple[str, ...], Sequence[str]], every: bool, calls: Sequence[str], count: int
) -> Iterator[str]:
    """`alike`: lines of a step and the weights whose step they are; `every`: all weights are trained; `calls`: of the
    layers; `count`: of micro-batches. The single device goes the same way, without what a step adds to a sum."""
    trained = [name for names in alike.values() for name in names]
    names, asked = ("held", "list(held.values())") if every else ("trained", "[held[name] for name in trained]")
    plain, many = all(_plain(lines) for lines in alike), count > 1
    yield "def step(held, rank):"
    if not trained:
        yield from _forward_only(calls[:-1], count)
        return
    yield "    # what the layers leave, and the weights after an update by the gradients for its own samples"
    yield "    held = {name: values.clone().requires_grad_() for name, values in held.items()}"
    if not every:
        yield f"    trained = [{', '.join(trained)}]"
    found = f"dict(zip({names}, torch.autograd.grad(x, {asked}, arrived, materialize_grads=True)))"
    if not many and plain:
        yield from (f"    {line}" for line in calls)
        yield f"    total = {found}"
    else:
        yield "    left, every = [], []"
        yield f"    for turn in range({count}):"
        yield from (f"        {line}" for line in calls)
        yield "        left.append(x.detach())"
        yield f"        every.append({found})"
        yield "    total = {name: sum(found[name] for found in every) for name in " + names + "}"
    left = "torch.stack(left)" if many else "x.detach()"
    updated = "{name: values.detach() - 0.1 * total" + ("[name]" if every else ".get(name, 0)")
    end = f"return {left}, {updated} for name, values in held.items()}}"
    if not plain:
        yield "    if rank is None:"
        yield f"        {end}"
        yield "    held = {name: values.detach() for name, values in held.items()}"
    for lines, mine in alike.items():
        told = names if len(alike) == 1 else f"[{', '.join(mine)}]"
        if not plain:
            yield f"    for name in {told}:"
            yield from (f"        {line}" for line in lines)
        elif len(lines) > 2:
            yield f"    for name in {told} if rank is not None else ():"
            yield from ("        " + re.sub(r"\btotal\b", "total[name]", line) for line in lines[1:-1])
    yield f"    {end}" if plain else f"    return {left}, held"
