"""What is told of a budget, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placelogic.cost.budget import Fit
    from placelogic.cost.totals import Cost


def ways(names: str, of_repository: bool) -> str:
    """How to fix sizes: the gate, which has the budgets of a repository, takes none from its command line."""
    if of_repository:
        return f"fix {names} in the spec; or take the budget out here, and write it into the specs that have sizes"
    return f"fix {names} in the spec, or with `placelogic check --at`"


def be(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"


def where(found: Fit) -> str:
    """`for N >= 13`; or the fewest devices."""
    if found.ranges:
        (name,) = found.open
        parts = [
            f"{name} >= {first}"
            if last is None
            else f"{name} = {first}"
            if first == last
            else f"{first} <= {name} <= {last}"
            for first, last in found.ranges[:6]
        ]
        rest = " and others" if len(found.ranges) > 6 else ""
        tried = "" if found.everywhere or found.ranges[-1][1] is not None else ", as far as was tried (2**20)"
        return f"for {', '.join(parts)}{rest}{tried}"
    options = [", ".join(f"{name} = {size}" for name, size in one.items()) for one in found.fewest]
    return f"at {' or '.join(options)}: the fewest devices of those tried"


def largest(cost: Cost) -> str | None:
    """The largest states of the worst device, where that is known."""
    from placelogic.cost.tables import worst_place
    from placelogic.cost.text import human

    place = worst_place(cost)
    if place is None:
        return None
    sums = [
        (state, cost.known(cost.sum(lambda h, state=state: h.place == place and not h.host and h.state == state)))
        for state in dict.fromkeys(h.state for h in cost.held)
    ]
    sums.append(("transient", cost.known(cost.transient_on(place))))
    known = sorted(((value, state) for state, value in sums if value), reverse=True)
    return ", ".join(f"{state} {human(value, 'bytes')}" for value, state in known[:3]) or None
