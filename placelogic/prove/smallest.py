"""The smallest sizes at which a violation holds: fewest devices, then micro-batches, tokens, other sizes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from time import process_time

from msgspec import Struct

from placelogic.prove.confirm import Confirmation
from placelogic.prove.formula import Formula, equal, test
from placelogic.prove.ratio import const, var
from placelogic.prove.sizes import PER_ITEM, Sizes
from placelogic.prove.solver import Solver

MAX_MESHES = 300
"""Meshes tried, smallest first, before the solver's own model is taken as it is."""
PATIENCE_S = 5.0
"""CPU time of that search, all its queries together: then the counterexample is told as it is."""
MAX_REJECTED = 8
"""Models that the simulation may contradict before the search stops."""


class Found(Struct, frozen=True):
    """`sizes`: every variable of the model, coordinates included, and what the simulation says."""

    sizes: Mapping[str, int]
    confirmation: Confirmation


class GaveUp(Struct, frozen=True):
    reason: str


def smallest(
    solver: Solver, sizes: Sizes, violation: Formula, confirm: Callable[[Mapping[str, int]], Confirmation]
) -> Found | GaveUp | None:
    """None: the violation cannot hold. GaveUp: the solver did. Else the smallest model that the
    simulation confirms, or an unconfirmed one where none is."""
    answer = solver.check(violation, model=True)
    if answer.status == "unsat":
        return None
    if answer.status == "unknown" or answer.model is None:
        return GaveUp(answer.reason)
    first: Found | None = None
    rejected = 0
    end = process_time() + PATIENCE_S
    for mesh in _meshes(solver, sizes, violation, answer.model, end):
        model = _shrink(solver, sizes, violation, mesh, end)
        if model is None:
            continue
        confirmation = confirm(model)
        if confirmation.wrong:
            return Found(model, confirmation)
        first = first or Found(model, confirmation)
        rejected += 1
        if rejected >= MAX_REJECTED:
            break
    if first is None:
        model = dict(answer.model)
        return Found(model, confirm(model))
    return first


def _meshes(solver: Solver, sizes: Sizes, violation: Formula, model: Mapping[str, int], end: float):
    """Sizes of the open axes, by number of devices; each is a lower bound plus a little."""
    axes = [axis for axis in sizes.axis_names if axis in sizes.open]
    start = tuple(_least(solver, violation, axis, model.get(axis, 1), end) for axis in axes)
    heap = [(_product(start), start)]
    seen = {start}
    for _ in range(MAX_MESHES):
        if not heap or process_time() > end:
            return
        _, point = heapq.heappop(heap)
        yield dict(zip(axes, point))
        for index in range(len(axes)):
            bigger = (*point[:index], point[index] + 1, *point[index + 1 :])
            if bigger not in seen:
                seen.add(bigger)
                heapq.heappush(heap, (_product(bigger), bigger))


def _least(solver: Solver, violation: Formula, name: str, known: int, end: float) -> int:
    """The smallest value of one size at which the violation can hold, by bisection below a known one."""
    low, high = 1, known
    while low < high:
        middle = (low + high) // 2
        if process_time() > end:
            return known
        answer = solver.check(violation, test("<=", var(name), const(middle)), model=True, quick=True)
        if answer.status == "sat" and answer.model is not None:
            high = min(middle, answer.model.get(name, middle))
        else:
            low = middle + 1
    return low


def _shrink(
    solver: Solver, sizes: Sizes, violation: Formula, mesh: Mapping[str, int], end: float
) -> Mapping[str, int] | None:
    """With these axis sizes: the least M, then token counts, then other sizes, one after the other."""
    fixed = [equal(axis, size) for axis, size in mesh.items()]
    answer = solver.check(violation, *fixed, model=True, quick=True)
    if answer.status != "sat" or answer.model is None:
        return None
    rest = [name for name in sizes.open if name not in mesh and name not in sizes.axis_names]
    count = sizes.microbatches.num[0][0][0][0] if sizes.microbatches.constant is None else None
    order = sorted(rest, key=lambda name: (name != count, name != PER_ITEM))
    model = dict(answer.model)
    for name in order:
        value = 1
        while value < min(model.get(name, 1), 64) and process_time() < end:
            smaller = solver.check(violation, *fixed, equal(name, value), model=True, quick=True)
            if smaller.status == "sat" and smaller.model is not None:
                model = dict(smaller.model)
                break
            value += 1
        fixed.append(equal(name, model.get(name, 1)))
        model.setdefault(name, 1)
    return {**model, **mesh}


def _product(point: tuple[int, ...]) -> int:
    out = 1
    for size in point:
        out *= size
    return out
