"""Work items, token counts, denominators: which data each device computes and divides by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product

from msgspec import Struct

from placelogic.program.expr import TOKENS, Expr, evaluate
from placelogic.program.program import LossTerm, Program
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop, SimulationTooLarge


class Item(Struct, frozen=True):
    """One work item of one loss term: a share along each split axis, and a micro-batch (from 1).

    In coefficients an item can be finer: `use` is the stage that used the weights, `part` the
    piece of the activations, `foreign` where the data was that no single device ever sees."""

    term: str | None
    microbatch: int
    shares: tuple[tuple[str, int], ...]
    use: str | None = None
    part: tuple[tuple[str, int], ...] = ()
    foreign: tuple[tuple[str, int], ...] = ()


Counts = Callable[[Item], int] | Mapping[Item, int] | None

MAX_TURNS = 400_000
"""Devices times micro-batches; beyond this a simulation takes minutes."""


def check_size(turns: int) -> None:
    """Raises SimulationTooLarge."""
    if turns > MAX_TURNS:
        raise SimulationTooLarge(f"{turns} backward passes in one step are too many to simulate one by one")


class Work:
    """The data of one job on one mesh."""

    def __init__(
        self, program: Program, grid: Grid, quantities: Mapping[str, int], counts: Counts, per_item: int
    ) -> None:
        self.grid = grid
        self.terms = program.work.losses
        self._objective = program.work.objective
        self._counts = counts
        self.even = counts is None
        self._per_item = per_item
        self.env = _environment(program, grid, quantities)
        turns = evaluate(program.work.microbatches, self.env)
        if turns.denominator != 1 or turns < 1:
            raise ValueError(f"{turns} micro-batches")
        self.microbatches = int(turns)
        check_size(grid.count * self.microbatches)
        self.split = program.work.split_axes
        fed = {feed.axis: feed.kind for feed in program.work.feeds}
        own = [a for a in self.split if fed.get(a) != "same"]
        self.extent = grid.extent(self.split)
        # A device fed share 0 along an axis computes what coordinate 0 computes.
        self.share = [0] * grid.count
        for axis in self.split:
            size = grid.size[axis]
            at = grid.coordinate[axis] if axis in own else [0] * grid.count
            self.share = [s * size + c for s, c in zip(self.share, at)]
        # Samples may differ along axes that deal out samples; the parts of one sequence are one sample.
        dealt = {split.axis for split in program.work.splits if split.dim != "sequence"}
        strange = [a for a in grid.axes if a not in dealt and fed.get(a) == "different" and grid.size[a] > 1]
        self.foreign: list[tuple[tuple[str, int], ...]] = [()] * grid.count
        if strange:
            self.foreign = [tuple((a, grid.coordinate[a][x]) for a in strange) for x in range(grid.count)]
        self.total = [self._total(term) for term in self.terms]

    def value(self, expr: Expr, term: int = 0) -> Fraction:
        """`tokens` in it are those of one loss term. Raises ZeroDivisionError and KeyError."""
        return evaluate(expr, {**self.env, TOKENS: Fraction(self.total[term])})

    def factor(self, expr: Expr, term: int = 0) -> Fraction:
        """What a step multiplies by. Raises GroupStop."""
        try:
            return self.value(expr, term)
        except ZeroDivisionError:
            raise GroupStop("a factor divides by zero") from None

    def item(self, term: LossTerm, share: int, turn: int) -> Item:
        at = self.grid.coordinates(share, self.split)
        return Item(term.name, turn, tuple((axis, at[axis]) for axis in self.split))

    def tokens(self, term: LossTerm, share: int, turn: int) -> int:
        if self._counts is None:
            return self._per_item
        item = self.item(term, share, turn)
        return self._counts(item) if callable(self._counts) else self._counts[item]

    def _total(self, term: LossTerm) -> int:
        if self._counts is None:
            return self._per_item * self.extent * self.microbatches
        return sum(self.tokens(term, share, turn) for share, turn in self.pairs())

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Every share and micro-batch of the step."""
        return product(range(self.extent), range(1, self.microbatches + 1))

    def single_counted(self, term: int) -> int:
        """What single-device training divides the summed loss by: the tokens of the step where the objective is a mean."""
        return self.total[term] if self._objective == "mean" else 1

    def _part(self, loss: LossTerm, x: int) -> Fraction:
        """Which part of the tokens of its item a device computes the loss of: uneven ones, that add up to all."""
        part = Fraction(1)
        for axis in loss.pieces:
            size = self.grid.size[axis]
            part *= Fraction(self.grid.coordinate[axis][x] + 1, size * (size + 1) // 2)
        return part

    def counted(self, term: int, turn: int) -> list[Fraction]:
        """Per device, what it divides its item's summed loss by: the tokens that it counts."""
        loss, grid = self.terms[term], self.grid
        if not loss.mean:
            return [Fraction(1)] * grid.count
        turns = range(1, self.microbatches + 1) if loss.microbatches else (turn,)
        if self._counts is None:
            own = Fraction(self._per_item * grid.extent(loss.whole), grid.extent(loss.pieces))
            return [own * grid.extent(loss.over) * len(turns)] * grid.count
        known = {share: sum(self.tokens(loss, share, t) for t in turns) for share in set(self.share)}
        found = [Fraction(0)] * grid.count
        own = [Fraction(0)] * grid.count
        for group in grid.groups(loss.whole):
            for x in group:
                own[x] = sum((known[self.share[y]] for y in group), Fraction(0)) * self._part(loss, x)
        for group in grid.groups(loss.over):
            together = sum((own[x] for x in group), Fraction(0))
            for x in group:
                found[x] = together
        return found


def _environment(program: Program, grid: Grid, quantities: Mapping[str, int]) -> dict[str, Fraction | int]:
    """Every name a person may use in a number: axes, products, lets, the micro-batch count."""
    env: dict[str, Fraction | int] = {**quantities, **grid.size}
    env.update({name: grid.extent(axes) for name, axes in program.mesh.views})
    waiting = [let for let in program.lets if let.value is not None]
    while waiting:
        left = []
        for let in waiting:
            try:
                env[let.name] = evaluate(let.value, env)  # type: ignore[arg-type]
            except KeyError:
                left.append(let)
        if len(left) == len(waiting):
            raise KeyError(f"no value for what `{left[0].name}` is computed from")
        waiting = left
    return env
