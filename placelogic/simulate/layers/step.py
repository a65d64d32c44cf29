"""The step of one weight group, after its backward passes: what each device feeds to the optimizer.

Every device keeps whole what it has: where shards lie is simulated elsewhere; here it is what they are worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placelogic.program.program import (
    Accumulate,
    Clip,
    GatherGradients,
    Loop,
    Op,
    Reduce,
    Scale,
    ScaleLoss,
    Skip,
    Step,
    Update,
    Weights,
    flat,
)
from placelogic.run.events import looking
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, inverse

Key = tuple[Any, ...]
Gradient = dict[Key, int]
Fresh = dict[str, list[Gradient]]
"""weights -> per device."""

CLIP = 7919
"""What clipping multiplies a gradient by: any factor that is not 1 shows what went without it."""


def run_step(
    job: Any, weights: Weights, step: Step, fresh: Sequence[list[Gradient]], expected: Mapping[Any, int]
) -> list[tuple[str, int]]:
    """What differs: ("gradient", "clip" or "skip", device). `fresh`: one gradient per micro-batch. Raises GroupStop."""
    return _Step(job, weights, step, fresh, expected).run()


class _Step:
    def __init__(
        self, job: Any, weights: Weights, step: Step, fresh: Sequence[list[Gradient]], expected: Mapping[Any, int]
    ) -> None:
        self.job, self.weights, self.step, self.fresh, self.expected = job, weights, step, fresh, expected
        self.holders = job.holders(weights)
        self.routed = [a for cut in weights.params.cuts if cut.letter == "S" for a in cut.axes if a in weights.routed]
        self.buffers: dict[str | None, list[Gradient]] = {}
        self.skips = 0
        self.running = [
            op for one in step.ops if not isinstance(one, Loop) or _turns(one, len(fresh)) for op in flat((one,))
        ]
        self.wrong: list[tuple[str, int]] = []

    def run(self) -> list[tuple[str, int]]:
        for op in self.step.ops:
            if isinstance(op, Loop):
                for turn in _turns(op, len(self.fresh)):
                    self._body(op.body, [dict(one) for one in self.fresh[turn - 1]])
            else:
                self._one(op, None)
        return self.wrong

    def _body(self, body: tuple[Op, ...], fresh: list[Gradient]) -> None:
        accumulated = not any(isinstance(op, Accumulate) for op in body)
        for op in body:
            if isinstance(op, Accumulate):
                accumulated = True
                held = self.buffers.get(op.buffer)
                if held is None or op.replace:
                    self.buffers[op.buffer] = [dict(one) for one in fresh]
                else:
                    self.buffers[op.buffer] = [_added([a, b]) for a, b in zip(held, fresh)]
            else:
                fresh = self._one(op, None if accumulated else fresh)

    def _one(self, op: Op, fresh: list[Gradient] | None) -> Any:
        match op:
            case Reduce():
                return self._put(op.buffer, fresh, self._reduced(self._get(op.buffer, fresh), op))
            case Scale():
                factor = self.job._number(op.factor)
                return self._put(op.buffer, fresh, [_times(one, factor) for one in self._get(op.buffer, fresh)])
            case ScaleLoss():
                factor = self.job._number(op.factor)
                if fresh is None:
                    raise GroupStop("there is no fresh gradient outside the micro-batches")
                return [_times(one, factor) for one in fresh]
            case GatherGradients():
                target = self._target(op)
                arrays = self._get(target, fresh)
                for axis in op.axes:
                    arrays = self._gathered(arrays, axis)
                return self._put(target, fresh, arrays)
            case Clip():
                target = self._target(op)
                arrays = self._get(target, fresh)
                if any(isinstance(one, Update) for one in self._after(op)):
                    self._compare("clip", arrays, 1)
                return self._put(target, fresh, [_times(one, CLIP) for one in arrays])
            case Skip():
                target = next((one.buffer for one in self._after(op) if isinstance(one, Update)), None)
                if any(isinstance(one, Update) for one in self._after(op)):  # else it decides nothing any more
                    self.skips += 1
                    for axes in looking(self.job.program, self.weights.name, self.skips - 1, len(self.fresh)):
                        self._decide(self._get(target, fresh), axes)
            case Update():
                self._compare("gradient", self._get(op.buffer, None), CLIP if self.job.program.clip is not None else 1)
            case _:
                pass  # what moves parameters and host copies changes no gradient
        return fresh

    def _get(self, name: str | None, fresh: list[Gradient] | None) -> list[Gradient]:
        if fresh is not None:
            return fresh
        return self.buffers.get(name) or [_times(one, 0) for one in self.fresh[0]]

    def _put(self, name: str | None, fresh: list[Gradient] | None, arrays: list[Gradient]) -> Any:
        if fresh is not None:
            return arrays
        self.buffers[name] = arrays
        return fresh

    def _target(self, op: Op) -> str | None:
        """What the next update below reads."""
        ops = list(flat(self.step.ops))
        after = ops[next(i for i, one in enumerate(ops) if one is op) :]
        return next((one.buffer for one in (*after, *ops) if isinstance(one, Update)), None)

    def _after(self, op: Op) -> list[Op]:
        return self.running[next(i for i, one in enumerate(self.running) if one is op) :]

    def _decide(self, arrays: list[Gradient], axes: tuple[str, ...]) -> None:
        """Devices that look together, over `axes`, must see what all others see."""
        first: set[tuple[Key, int]] | None = None
        for members in self._groups(axes):
            seen = {item for x in members for item in arrays[x].items()}
            if first is not None and seen != first:
                self.wrong.append(("skip", members[0]))
                return
            first = seen

    def _groups(self, axes: tuple[str, ...]) -> Iterator[list[int]]:
        for members in self.job.grid.groups(axes):
            if kept := [x for x in members if x in self.holders]:
                yield kept

    def _reduced(self, arrays: list[Gradient], op: Reduce) -> list[Gradient]:
        out = list(arrays)
        for members in self._groups(op.axes):
            total = _added([arrays[x] for x in members])
            if op.op == "mean":
                total = _times(total, inverse(len(members)))
            for x in members:
                out[x] = total if total.keys() == arrays[x].keys() else dict(zip(arrays[x], total.values()))
        return out

    def _gathered(self, arrays: list[Gradient], axis: str) -> list[Gradient]:
        """Each element from the device whose piece of the buffer it lies in."""
        out = list(arrays)
        for members in self._groups((axis,)):
            keys = list(arrays[members[0]])
            if any(list(arrays[x]) != keys for x in members):
                continue  # shards of their own: everyone has what it needs of them already
            owner = {key: members[i * len(members) // len(keys)] for i, key in enumerate(keys)}
            together = {key: arrays[owner[key]][key] for key in keys}
            for x in members:
                out[x] = together
        return out

    def _compare(self, what: str, arrays: list[Gradient], factor: int) -> None:
        right = {key: value * factor % PRIME for key, value in self.expected.items()}
        for x in self.holders:
            if any(value != right.get(key) for key, value in arrays[x].items()):
                self.wrong.append((what, x))
                return


def _added(several: Sequence[Gradient]) -> Gradient:
    """By position, where the elements differ."""
    keys = list(several[0])
    if all(list(one) == keys for one in several):
        return {key: sum(one[key] for one in several) % PRIME for key in keys}
    if any(set(one) == set(keys) for one in several[1:]):
        several = [{key: one[key] for key in keys} if set(one) == set(keys) else one for one in several]
    columns = [list(one.values()) for one in several]
    if any(len(column) != len(keys) for column in columns):
        longest = max(columns, key=len)
        keys = list(several[columns.index(longest)])
        columns = [column + [0] * (len(longest) - len(column)) for column in columns]
    return dict(zip(keys, (sum(column) % PRIME for column in zip(*columns))))


def _times(gradient: Gradient, factor: int) -> Gradient:
    return {key: value * factor % PRIME for key, value in gradient.items()}


def _turns(loop: Loop, count: int) -> Sequence[int]:
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
        case _:
            return [loop.index] if loop.index is not None and 1 <= loop.index <= count else []
