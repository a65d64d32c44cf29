"""The samples of a job: what each device is fed, and what it divides its loss by."""

from __future__ import annotations

import zlib
from fractions import Fraction
from math import isnan, prod

import torch
from msgspec import Struct

from placelogic.program.program import Program
from placelogic.run.grid import Grid
from placelogic.run.work import Counts, Work

WIDTH = 8
"""Of the model; the columns that heads, hidden and vocabulary are cut in."""
CLASSES = 5

Who = tuple[int, int, tuple[tuple[str, int], ...]]
"""A share, a micro-batch (from 1), and where the data was that no single device sees."""


def generator(*what: object) -> torch.Generator:
    """Random numbers that depend on nothing but `what`."""
    made = torch.Generator("cpu")
    made.manual_seed(zlib.crc32(repr(what).encode()))
    return made


def normal(what: tuple[object, ...], *shape: int) -> torch.Tensor:
    """Drawn on the CPU, so that every kind of device gets the same numbers."""
    drawn = torch.randn(*shape, generator=generator(*what), dtype=torch.float64, device="cpu")
    return drawn.to(torch.get_default_device(), torch.get_default_dtype())


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """How far numbers are from what is expected, relative to these where they are larger than one; infinite
    where one is no number."""
    if not len(found):
        return 0.0
    difference = float((found - expected).abs().max() / expected.abs().max().clamp(min=1))
    return float("inf") if isnan(difference) else difference


class Setup(Struct, frozen=True):
    """Sizes and counts of one replay. `counts`: loss tokens of an item, in units of `per_item`."""

    sizes: dict[str, int]
    quantities: dict[str, int]
    counts: Counts = None
    seed: int = 0
    steps: int = 3
    per_item: int | None = None


class Data:
    """Items, rows, targets and denominators."""

    def __init__(self, program: Program, grid: Grid, setup: Setup) -> None:
        cut = [
            prod(grid.size[a] for c in w.activations.cuts if c.letter == "S" for a in c.axes) for w in program.weights
        ]
        self.per_item = setup.per_item or max([5, *cut])
        scaled = setup.counts
        if scaled is not None:
            told = scaled
            scaled = lambda item: self.per_item * (told(item) if callable(told) else told[item])  # noqa: E731
        self.work = Work(program, grid, setup.quantities, scaled, self.per_item)
        self.grid = grid
        self.seed = setup.seed
        self.terms = self.work.terms
        self.microbatches = self.work.microbatches

    def device(self, x: int, turn: int) -> Who:
        return self.work.share[x], turn, self.work.foreign[x]

    def items(self) -> list[Who]:
        """Every item of the step, as one device sees them."""
        return [(share, turn, ()) for share, turn in self.work.pairs()]

    def tokens(self, who: Who, term: int) -> int:
        return self.work.tokens(self.terms[term], who[0], who[1])

    def rows(self, who: Who) -> int:
        return max(self.tokens(who, term) for term in range(len(self.terms)))

    def inputs(self, step: int, who: Who) -> torch.Tensor:
        return normal((self.seed, "inputs", step, who), self.rows(who), WIDTH)

    def targets(self, step: int, who: Who, term: int) -> torch.Tensor:
        """Soft targets: a distribution over the classes, for each row."""
        return normal((self.seed, "targets", step, who, term), self.rows(who), CLASSES).softmax(1)

    def counted(self, who: Who, term: int) -> torch.Tensor:
        """1 for rows that are tokens of this loss term, else 0."""
        mask = torch.zeros(self.rows(who))
        mask[: self.tokens(who, term)] = 1
        return mask

    def divisor(self, x: int, term: int, turn: int) -> Fraction:
        """What device x divides the summed loss of its item by: the tokens that it counts."""
        return Fraction(self.work.counted(term, turn)[x])

    def single_divisor(self, term: int) -> Fraction:
        """What single-device training divides by."""
        return Fraction(self.work.single_counted(term))
