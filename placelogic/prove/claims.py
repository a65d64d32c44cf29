"""Claims about costs: decided for every allowed size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from placelogic.program.expr import Compare, show
from placelogic.prove.formula import TRUE, Formula, both, either, equal, negate, test
from placelogic.prove.ratio import const, var
from placelogic.prove.sizes import Sizes
from placelogic.prove.solver import Limits, Named, Solver

Case = tuple[tuple[Compare, ...], Compare]
"""A claim under conditions: it has to hold wherever they do."""


class Decision(Struct, frozen=True):
    """`holds` for every allowed size; `fails` at `sizes`, the smallest one by one; `empty`: no size is
    allowed; `unknown`: the solver gave up, for this `reason`."""

    status: Literal["holds", "fails", "empty", "unknown"]
    sizes: Mapping[str, int] | None = None
    reason: str = ""


def decide(
    cases: Iterable[Case],
    assumptions: Iterable[Compare],
    names: Sequence[str],
    fixed: Mapping[str, int],
    limits: Limits = Limits(),
) -> Decision:
    """Whether all cases hold for all positive whole sizes `names` that meet the assumptions. Raises
    SpecError for arithmetic without meaning."""
    sizes = Sizes()
    for name in names:
        sizes.values[name] = const(fixed[name]) if name in fixed else sizes.declare(name)
    named = [Named(show(condition), sizes.condition(condition)) for condition in assumptions]
    violations: list[Formula] = []
    for conditions, claim in cases:
        here = [sizes.condition(condition) for condition in conditions]
        violations.append(both(*here, negate(sizes.condition(claim))))
    solver = Solver(sizes.background, named, limits)
    if solver.check(TRUE).status == "unsat":
        return Decision("empty")
    violation = either(*violations)
    answer = solver.check(violation, model=True)
    if answer.status == "unsat":
        return Decision("holds")
    if answer.status == "unknown" or answer.model is None:
        return Decision("unknown", reason=answer.reason)
    return Decision("fails", {**_smallest(solver, violation, sizes.open, answer.model), **fixed})


def _smallest(solver: Solver, violation: Formula, names: Sequence[str], model: Mapping[str, int]) -> dict[str, int]:
    """Each size as small as it can be, those before it fixed."""
    found = {name: model.get(name, 1) for name in names}
    known: list[Formula] = []
    for name in names:
        low = 1
        while low < found[name]:
            middle = (low + found[name]) // 2
            answer = solver.check(violation, *known, test("<=", var(name), const(middle)), model=True)
            if answer.status == "sat" and answer.model is not None:
                found = {one: answer.model.get(one, found[one]) for one in names}
            else:
                low = middle + 1
        known.append(equal(name, found[name]))
    return found
