"""The step of one weight group, after its backward passes: what each device feeds to the optimizer.

Every device keeps whole what it has: where shards lie is simulated elsewhere; here it is what they are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from placelogic.program.expr import Expr
from placelogic.program.ops import Axes
from placelogic.program.program import Program, Step, Weights
from placelogic.run.events import looking
from placelogic.run.grid import Grid
from placelogic.run.step import Runner
from placelogic.simulate.arithmetic import PRIME, inverse

Key = tuple[Any, ...]
"""The number of a loss term, that of a matrix, and the named place of an element."""
Gradient = dict[Key, int]
Fresh = dict[str, list[Gradient]]
"""weights -> per device."""

CLIP = 7919
"""What clipping multiplies a gradient by: any factor that is not 1 shows what went without it."""


class Buffer(Struct):
    """`arrays`: per device."""

    arrays: list[Gradient]


class LayerStep(Runner[Buffer]):
    """`fresh`: one gradient per micro-batch; `expected`: the gradient of one device; `holders`: devices that have the
    weights. `wrong`, after `decided`: what differs, ("gradient", "clip" or "skip", device)."""

    def __init__(
        self, program: Program, grid: Grid, weights: Weights, step: Step, fresh: Sequence[list[Gradient]],
        expected: Mapping[Key, int], holders: Sequence[int], number: Callable[[Expr, int], int],
    ) -> None:  # fmt: skip
        super().__init__(step.ops, len(fresh), [term.name for term in program.work.losses])
        self.program, self.grid, self.weights, self.turns = program, grid, weights, fresh
        self.expected, self.holders, self.number = expected, holders, number
        self.wrong: list[tuple[str, int]] = []

    def decided(self) -> list[tuple[str, int]]:
        """After the whole step. Raises GroupStop."""
        for event in self.run():
            on = self.content() or self.zero()
            if event.kind == "clip":
                if not self.dead:
                    self._compare("clip", on.arrays, 1)
                on.arrays = [_times(one, CLIP) for one in on.arrays]
            else:
                for axes in looking(self.program, self.weights.name, self.skips - 1, len(self.turns)):
                    self._decide(on.arrays, axes)
        return self.wrong

    # --- what operations do -------------------------------------------------------------------

    def backward(self, turn: int) -> Buffer:
        return Buffer([dict(one) for one in self.turns[turn - 1]])

    def zero(self) -> Buffer:
        return Buffer([dict.fromkeys(one, 0) for one in self.turns[0]])

    def added(self, held: Buffer | None, fresh: Buffer, replace: bool) -> Buffer:
        if held is None or replace:
            return Buffer(list(fresh.arrays))
        return Buffer([_added(pair) for pair in zip(held.arrays, fresh.arrays)])

    def reduce(self, on: Buffer, axes: Axes, mean: bool, scattered: bool) -> None:
        out = list(on.arrays)
        for members in self._groups(axes):
            total = _added([on.arrays[x] for x in members])
            if mean:
                total = _times(total, inverse(len(members)))
            for x in members:
                same = total.keys() == on.arrays[x].keys()
                out[x] = total if same else dict(zip(on.arrays[x], total.values()))
        on.arrays = out

    def gather(self, on: Buffer, axes: Axes) -> None:
        """Each element from the device whose piece of the buffer it lies in."""
        for axis in axes:
            out = list(on.arrays)
            for members in self._groups((axis,)):
                keys = list(on.arrays[members[0]])
                if any(list(on.arrays[x]) != keys for x in members):
                    continue  # shards of their own: everyone has what it needs of them already
                owner = {key: members[i * len(members) // len(keys)] for i, key in enumerate(keys)}
                together = {key: on.arrays[owner[key]][key] for key in keys}
                for x in members:
                    out[x] = together
            on.arrays = out

    def scale(self, on: Buffer, factor: Expr, term: int | None) -> None:
        number = self.number(factor, term or 0)
        on.arrays = [_times(one, number, term) for one in on.arrays]

    def update(self, on: Buffer) -> None:
        self._compare("gradient", on.arrays, CLIP if self.program.clip is not None else 1)

    def cut(self, on: Buffer) -> None:
        pass

    def publish(self, op: object) -> None:
        """What moves parameters and host copies changes no gradient."""

    def stop(self, reason: str) -> None:
        raise AssertionError(reason)

    # --- comparison ---------------------------------------------------------------------------

    def _decide(self, arrays: list[Gradient], axes: Axes) -> None:
        """Devices that look together, over `axes`, must see what all others see."""
        first: set[tuple[Key, int]] | None = None
        for members in self._groups(axes):
            seen = {item for x in members for item in arrays[x].items()}
            if first is not None and seen != first:
                self.wrong.append(("skip", members[0]))
                return
            first = seen

    def _groups(self, axes: Axes) -> Iterator[list[int]]:
        for members in self.grid.groups(axes):
            if kept := [x for x in members if x in self.holders]:
                yield kept

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


def _times(gradient: Gradient, factor: int, term: int | None = None) -> Gradient:
    """All of it, or the part of one loss term."""
    return {key: value * factor % PRIME if term in (None, key[0]) else value for key, value in gradient.items()}
