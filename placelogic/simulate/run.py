"""The entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from placelogic.program.program import Program
from placelogic.run.work import Counts, Item
from placelogic.simulate.arithmetic import mix
from placelogic.simulate.coefficients import coefficients_of
from placelogic.simulate.machine import Machine
from placelogic.simulate.outcome import Outcome


def simulate(
    program: Program,
    sizes: Mapping[str, int],
    quantities: Mapping[str, int],
    counts: Counts = None,
    per_item: int = 1,
    steps: int = 2,
) -> Outcome:
    """Run `steps` optimizer steps on the mesh `sizes` (atom -> size).

    `quantities`: values of open lets and of the micro-batch name. `counts`: loss tokens of each
    item; None: `per_item` everywhere. Raises SimulationTooLarge."""
    return Machine(program, sizes, quantities, counts, per_item).run(steps)


def simulate_any(
    program: Program,
    sizes: Mapping[str, int],
    quantities: Mapping[str, int],
    per_item: int = 1,
    weights: str | None = None,
    steps: int = 2,
) -> Outcome:
    """With even tokens one simulation; with uneven ones several patterns of counts, until one
    shows something wrong (with these weights, where given). Returns the outcome shown last."""
    outcome = Outcome()
    for counts in _patterns(program, per_item):
        outcome = simulate(program, sizes, quantities, counts, per_item, steps)
        if (not outcome.right) if weights is None else outcome.wrong(weights):
            return outcome
    return outcome


def _patterns(program: Program, per_item: int) -> Iterator[Counts]:
    yield None
    if program.work.tokens_even:
        return

    yield lambda item: per_item * (2 if _first(item) else 1)
    yield lambda item: per_item * (1 if _first(item) else 2)
    for seed, high in ((1, 2), (2, 3), (3, 5)):
        yield _drawn(seed, per_item, high)


def _first(item: Item) -> bool:
    return item.microbatch == 1 and all(c == 0 for _, c in item.shares)


def _drawn(seed: int, low: int, high: int) -> Callable[[Item], int]:
    def count(item: Item) -> int:
        named = 0 if item.term is None else sum(ord(c) * 31**i for i, c in enumerate(item.term)) + 1
        bits = mix(8, seed, named, item.microbatch, *(c for _, c in item.shares))
        return low * (high if bits >> 20 & 1 else 1)

    return count


def coefficients(
    program: Program,
    sizes: Mapping[str, int],
    quantities: Mapping[str, int],
    weights: str,
    counts: Counts = None,
    per_item: int = 1,
) -> dict[tuple[int, ...], dict[Item, Fraction]]:
    """Per device (coordinates in mesh order) that updates these weights: how often each item's
    gradient is in what it feeds the optimizer in step 1, in units of the single device's factor.

    One element per device stands for all: the first whose factors are not all 1. The clip factor
    is left out, since it is no coefficient. Empty where the step of these weights stops.
    Raises SimulationTooLarge."""
    return coefficients_of(program, sizes, quantities, weights, counts, per_item)
