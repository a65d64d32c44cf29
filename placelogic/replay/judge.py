"""Replays cases, and says whether what happens is what the verdict says."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from placelogic.replay.blocks.model import used
from placelogic.replay.cases import Case, count_by
from placelogic.replay.data import Setup
from placelogic.replay.direct import Run, Task, run
from placelogic.replay.launch import LIMIT, Place, ReplayFailed
from placelogic.replay.rounding import ORDER
from placelogic.simulate import Item

EQUAL = 1e-11
DIFFERENT = 1e-8
"""In float64: below the first equal, above the second different, between them undecided."""
FACTOR = 1e-3
"""How well a factor must be met, relatively."""
TOGETHER = 60
"""Cases that share one set of processes."""

Counts = Callable[[Item], int] | None
Pattern = tuple[Counts, int | None]
"""Token counts by item, and tokens per item."""
Result = Literal["equal", "different", "inconclusive", "cannot run"]


class Choice(Struct, frozen=True):
    """`optimizers`: names, None for the spec's own."""

    optimizers: tuple[str | None, ...] = ("sgd", "adam")
    steps: int = 3
    seed: int = 0
    place: Place = Place()
    limit: float = LIMIT


class Outcome(Struct, frozen=True):
    """What came of a case. `worst`: what -> largest difference over ranks, steps and optimizers.
    `factor`: None where none is named, else named and measured. `reason`: why it cannot run."""

    case: Case
    result: Result
    worst: Mapping[str, float]
    runs: tuple[Run, ...]
    factor: tuple[float, float | None] | None = None
    reason: str | None = None

    @property
    def agrees(self) -> bool:
        """A step that cannot be carried out is wrong, as the verdict says; nothing can be measured then."""
        if self.result == "inconclusive":
            return False
        different = self.result != "equal"
        return different == (self.case.expected == "different") and (self.factor is None or _met(*self.factor))


def _met(named: float, measured: float | None) -> bool:
    return measured is not None and abs(measured - named) <= FACTOR * max(1.0, abs(named))


def replay(cases: Sequence[Case], choice: Choice = Choice()) -> Iterator[Outcome]:
    """Outcomes, in no particular order: cases with equally many devices share processes. Raises ReplayFailed."""
    by_ranks: dict[int, list[Case]] = defaultdict(list)
    for case in cases:
        by_ranks[case.meeting.ranks].append(case)
    for same in by_ranks.values():
        for start in range(0, len(same), TOGETHER):
            yield from _together(same[start : start + TOGETHER], choice)


def _together(cases: list[Case], choice: Choice) -> Iterator[Outcome]:
    """What differs as it should needs no more token counts; what is equal is tried with all of them."""
    first = _run([(case, next(iter(_patterns(case)))) for case in cases], choice)
    again = []
    for case, outcome in first:
        if case.expected == "different" and outcome.agrees and outcome.result == "different":
            yield outcome
        else:
            again += [(case, outcome, pattern) for pattern in list(_patterns(case))[1:]]
            if not again or again[-1][0] is not case:
                yield outcome
    if again:
        more: dict[int, list[Outcome]] = {id(case): [outcome] for case, outcome, _ in again}
        for case, outcome in _run([(case, pattern) for case, _, pattern in again], choice):
            more[id(case)].append(outcome)
        for outcomes in more.values():
            yield settle(outcomes[0].case, outcomes)


def _run(work: list[tuple[Case, Pattern]], choice: Choice) -> list[tuple[Case, Outcome]]:
    tasks = [_task(case, choice, *pattern) for case, pattern in work]
    found = run(tasks, choice.place, choice.limit * len(tasks))
    return [(case, judge(case, runs)) for (case, _), runs in zip(work, found)]


def settle(case: Case, outcomes: list[Outcome]) -> Outcome:
    """Of several token counts: any difference counts."""
    order: dict[Result, int] = {"cannot run": 1, "different": 0, "inconclusive": 2, "equal": 3}
    agreeing = [one for one in outcomes if one.agrees]
    if case.expected == "different" and agreeing:
        return min(agreeing, key=lambda one: order[one.result])
    return min(outcomes, key=lambda one: order[one.result])


def _patterns(case: Case) -> Iterable[Pattern]:
    """Token counts to try, and tokens per item."""
    if case.counts:
        yield count_by(case.counts), case.per_item
    yield None, case.per_item
    if case.expected == "different" and case.per_item is None:
        yield None, 1
    if not case.meeting.program.work.tokens_even:
        yield (lambda item: 2 if _first(item) else 1), None
        yield (lambda item: 1 if _first(item) else 2), None
        yield _drawn, None


def _first(item: Item) -> bool:
    return item.microbatch == 1 and all(c == 0 for _, c in item.shares)


def _drawn(item: Item) -> int:
    return 1 + zlib.crc32(repr((item.term, item.microbatch, item.shares)).encode()) % 3


def _task(case: Case, choice: Choice, counts: Counts, per_item: int | None) -> Task:
    meeting = case.meeting
    setup = Setup(dict(meeting.sizes), dict(meeting.quantities), counts, choice.seed, choice.steps, per_item)
    return Task(meeting.program, setup, choice.optimizers)


def judge(case: Case, runs: Sequence[Run]) -> Outcome:
    """One replay against the verdict on it."""
    names = set((case.weights or "").split(", ")) - {""}
    worst: dict[str, float] = {}
    concerned = rounding = 0.0
    for one in runs:
        for gap in (gap for rank in one.gaps for gap in rank):
            if gap.what == ORDER:
                rounding = max(rounding, gap.difference)
                continue
            worst[gap.what] = max(worst.get(gap.what, 0.0), gap.difference)
            if not names or gap.weights is None or gap.weights in names:
                concerned = max(concerned, gap.difference)
    stops = [(name, reason) for name, reason in runs[0].stops if not names or name in names]
    result: Result = "equal"
    if case.expected == "equal":
        concerned, stops = max(worst.values(), default=0.0), list(runs[0].stops)
    equal, different = bounds(rounding)
    if concerned > different:
        result = "different"
    elif stops:
        result = "cannot run"
    elif concerned > equal:
        result = "inconclusive"
    reason = f"{stops[0][0]}: {stops[0][1]}" if stops else None
    outcome = Outcome(case, result, worst, tuple(runs), None, reason)
    # A gradient of other values is no multiple of the right one.
    first = [gap.difference for rank in runs[0].gaps for gap in rank if (gap.what, gap.step) == ("forward", 1)]
    measurable = result == "different" and max(first, default=0.0) <= different
    return replace(outcome, factor=_factor(case, runs[0], names)) if measurable else outcome


def bounds(rounding: float) -> tuple[float, float]:
    """Below the first equal, above the second different. `rounding`: what another order of the same sums does;
    0 in float64, where fixed bounds do."""
    return max(EQUAL, 100 * rounding), max(DIFFERENT, 1000 * rounding)


def _factor(case: Case, one: Run, names: set[str]) -> tuple[float, float | None] | None:
    """What the counterexample names and what was measured: of the loss term that shows it, if any does; the
    first pair that is not met, if none."""
    terms = range(len(case.meeting.program.work.losses))
    by_term = [list(_pairs(case, one, names, term)) for term in terms]
    met = next((pairs for pairs in by_term if pairs and all(_met(*pair) for pair in pairs)), None)
    if met is not None:
        return max(met, key=lambda pair: abs(pair[0] - 1))
    return next((pair for pairs in by_term for pair in pairs if not _met(*pair)), None)


def _pairs(case: Case, one: Run, names: set[str], term: int) -> Iterator[tuple[float, float | None]]:
    axes, inside = case.meeting.program.mesh.axes, used(case.meeting.program)
    sizes = [case.meeting.sizes[axis] for axis in axes]
    for rank, factors in enumerate(one.factors):
        at, rest = {}, rank
        for axis, size in zip(reversed(axes), reversed(sizes)):
            rest, at[axis] = divmod(rest, size)
        for device, factor in case.factors:
            if all(at[axis] == coordinate for axis, coordinate in device.items() if axis in at):
                for name in sorted(names & factors.keys() - inside):
                    yield from ((float(factor), found) for found in factors[name][term])
                matrices = [found for name in sorted(names & inside & factors.keys()) for found in factors[name][term]]
                yield from _measured(float(factor), matrices)


def _measured(named: float, found: Sequence[float | None]) -> Iterator[tuple[float, float | None]]:
    """Of the matrices that operations use one has to show the factor, unless some have a gradient that comes by
    other ways as well: what is named is what came by one of them, and some may have it in other layers only."""
    met = next((factor for factor in found if _met(named, factor)), None)
    if met is not None:
        yield named, met
    elif found and None not in found:
        yield named, found[0]


__all__ = ["Choice", "Outcome", "ReplayFailed", "judge", "replay", "settle"]
