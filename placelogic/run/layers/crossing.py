"""What crosses between devices at a move of a plan, forward and backward, in steps that whoever computes carries out.

Which places each device has before and after follows from the plan, so all of it is checked here, without numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from placelogic.program.expr import Expr
from placelogic.program.plan import Move
from placelogic.run.grid import Grid
from placelogic.run.layers.lay import Lay, has_all, joined, piece, same_shapes
from placelogic.run.stop import GroupStop

SUMS = ("sum", "mean", "scatter", "scatter_mean")
MEANS = ("mean", "scatter_mean")


class Step(Struct, frozen=True):
    """One thing that happens along an axis. `lays`: what each device has afterwards. `sum` and `scatter` (`mean`: divided
    by the number of devices), `gather`, `exchange`, `root` and `reduce` are collectives, `dim` and `into` as in `Move`. Without
    any: `fit` keeps the places of `lays`, with zeros for those that are missing; `zero`; `times` a factor."""

    kind: Literal["sum", "mean", "scatter", "scatter_mean", "gather", "exchange", "root", "reduce", "fit", "zero", "times"]
    lays: tuple[Lay, ...]
    dim: str = ""
    into: str = ""
    factor: Expr | None = None


class Ragged(Struct, frozen=True):
    """Of tensors that start with experts each device has rows for as many tokens as were sent to them: which token
    a row is of differs between devices that have other experts, or other tokens. `tokens`: the dimensions of both."""

    experts: frozenset[str] = frozenset()
    tokens: frozenset[str] = frozenset()

    def check(self, lays: Sequence[Lay]) -> None:
        """Raises GroupStop where rows of different tokens would be added up."""
        first = lays[0]
        if not first.dims or first.dims[0] not in self.experts:
            return
        for dim in self.tokens.intersection(first.dims):
            if any(lay.along(dim) != first.along(dim) for lay in lays):
                raise GroupStop("rows of different tokens, sent to different experts, are added up")


class Crossing(Struct, frozen=True):
    """What becomes of a tensor along an axis, and of its gradient on the way back: the `moves` of the plan, and their
    steps. `before`, `after`: what each device has of the tensor; `key`: the place, the same in every plan of a spec;
    `written`: by a person, as an operation of the block."""

    key: tuple[object, ...]
    axis: str
    before: tuple[Lay, ...]
    after: tuple[Lay, ...]
    moves: tuple[Move, Move]
    there: Sequence[Step]
    back: Sequence[Step]
    ragged: Ragged
    written: bool


def forward(
    lays: Sequence[Lay], move: Move, axis: str, grid: Grid, ragged: Ragged
) -> tuple[tuple[Lay, ...], list[Step]]:
    """How the tensor lies then, and what is done to it. Raises GroupStop where the local tensors are no such pieces."""
    out, dim = list(lays), move.dim or ""
    for members in grid.groups((axis,)):
        for x, lay in zip(members, _after([lays[x] for x in members], move, ragged)):
            out[x] = lay
    steps: list[Step] = []
    if move.kind in ("slice", "pad"):
        steps = _fit(lays, out)
    elif move.kind == "zero":
        steps = [Step("zero", tuple(out))]
    elif move.kind != "none" and grid.size[axis] > 1:
        steps = [Step(move.kind, tuple(out), dim, move.into or "")]  # type: ignore[arg-type]
    return tuple(out), steps + _times(out, move)


def _after(lays: Sequence[Lay], move: Move, ragged: Ragged) -> list[Lay]:
    """How the devices of one group have the tensor afterwards."""
    count, dim = len(lays), move.dim or ""
    match move.kind:
        case "none" | "zero":
            return list(lays)
        case "root":
            return [lays[0]] * count
        case "gather":
            return [joined(lays, dim)] * count
        case "slice" | "pad":
            return [piece(lay, dim, count, i) for i, lay in enumerate(lays)]
        case "exchange":
            return [joined([piece(lay, move.into or "", count, i) for lay in lays], dim) for i in range(count)]
        case _:
            _added(lays, ragged)
            return list(lays) if move.kind in ("sum", "mean") else [piece(lays[0], dim, count, i) for i in range(count)]


def _added(lays: Sequence[Lay], ragged: Ragged) -> None:
    ragged.check(lays)
    same_shapes(lays)


def backward(
    came: Sequence[Lay], move: Move, before: Sequence[Lay], axis: str, grid: Grid, ragged: Ragged, by_position: bool
) -> list[Step]:
    """To the gradient of what the tensor was `before` the move forward, from that of what it was afterwards, which lies
    as it `came`. Raises GroupStop where it cannot become that."""
    have, dim = list(came), move.dim or ""
    for members in grid.groups((axis,)):
        mine, like = [came[x] for x in members], [before[x] for x in members]
        for x, lay in zip(members, _back(mine, move, like, ragged, by_position)):
            have[x] = lay
    steps: list[Step] = []
    if grid.size[axis] > 1:
        kind = {"scatter": "sum", "scatter_mean": "mean", "exchange": "gather"}.get(move.kind, move.kind)
        if kind in ("sum", "mean", "gather", "reduce"):
            steps = [Step(kind, tuple(have), dim)]  # type: ignore[arg-type]
    if move.kind not in ("none", "reduce"):
        steps += _fit(have, before)
    if move.kind == "zero":
        steps.append(Step("zero", tuple(before)))
    return steps + _times(before, move)


def _back(came: Sequence[Lay], move: Move, before: Sequence[Lay], ragged: Ragged, by_position: bool) -> list[Lay]:
    """How the devices of one group have the gradient before each keeps what it had of the tensor."""
    dim = move.dim or ""
    match move.kind:
        case "none" | "reduce":
            if any(a.shape != b.shape or not by_position and a != b for a, b in zip(came, before)):
                raise GroupStop("a gradient does not lie as its tensor does")
        case "slice":
            if not by_position and len(came) > 1 and came[0].along(dim) == before[0].along(dim):
                raise GroupStop("a gradient that is a piece already is cut once more")
        case "gather" | "exchange":
            together = joined(came, dim)
            for like in before if move.kind == "gather" else ():
                has_all(together, like)
            return [together] * len(came)
        case kind if kind in SUMS:
            _added(came, ragged)
            for lay, like in zip(came, before):
                has_all(lay, like)
    return list(came)


def _fit(have: Sequence[Lay], like: Sequence[Lay]) -> list[Step]:
    return [Step("fit", tuple(like))] if list(have) != list(like) else []


def _times(lays: Sequence[Lay], move: Move) -> list[Step]:
    return [] if move.scale is None else [Step("times", tuple(lays), factor=move.scale)]
