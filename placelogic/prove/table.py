"""The coefficients at one concrete mesh: what each device applies of each work item."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import Literal

from msgspec import Struct

from placelogic.program.program import Program, Weights
from placelogic.prove.formula import holds, variables
from placelogic.prove.kinds import Kind
from placelogic.prove.ratio import Ratio
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import TURN, Term, members
from placelogic.report.diagnostic import DeviceRow

MAX_ROWS = 8
MAX_ITEMS = 64
MAX_PARTS = 4


class Table(Struct, frozen=True):
    """Coefficients relative to the single device: device -> item -> factor. Coordinates along
    `axes` only (the others do not matter); an item's last coordinate is its micro-batch, from 1,
    where that matters. A factor of None is a value that nobody can name (mixed)."""

    axes: tuple[str, ...]
    turns: bool
    factors: Mapping[tuple[int, ...], Mapping[tuple[int, ...], Fraction | None]]


def tabulate(
    program: Program, weights: Weights, sizes: Sizes, terms: tuple[Term, ...], env: Mapping[str, int]
) -> Table:
    """The coefficients of a gradient at one mesh, as `tabulated`."""
    return tabulated(program.mesh.axes, lambda axis: members(weights, sizes, axis), sizes, terms, env)


def tabulated(
    names: tuple[str, ...],
    members: Callable[[str], Ratio],
    sizes: Sizes,
    terms: tuple[Term, ...],
    env: Mapping[str, int],
) -> Table:
    """The coefficients at one mesh. Long axes and loops are cut short: the first few coordinates show it."""
    count = {axis: int(members(axis).at(env)) for axis in names}
    matter = [
        index
        for index, axis in enumerate(names)
        if count[axis] > 1 and any(_matters(t.kinds[index]) for t in terms)
    ]
    microbatches = int(sizes.microbatches.at(env))
    turns = microbatches > 1 and any(TURN in variables(t.when) for t in terms)
    short = 3 if len(matter) > 1 else MAX_ROWS
    ranges = [range(min(count[names[index]], short)) for index in matter]
    items_ranges = [*ranges, range(1, min(microbatches, MAX_ROWS) + 1)] if turns else ranges
    factors: dict[tuple[int, ...], dict[tuple[int, ...], Fraction | None]] = {}
    for device in islice(product(*ranges), MAX_ROWS):
        factors[device] = {}
        for item in islice(product(*items_ranges), MAX_ITEMS):
            turn = item[-1] if turns else 1
            here = {**env, TURN: turn}
            factors[device][item] = _factor(terms, matter, device, item, here)
    return Table(tuple(names[index] for index in matter), turns, factors)


def _matters(kind: Kind) -> bool:
    return kind.value != "replicated" or kind.mixed or kind.tied


def _factor(
    terms: tuple[Term, ...], matter: list[int], device: tuple[int, ...], item: tuple[int, ...], env: Mapping[str, int]
) -> Fraction | None:
    total = Fraction(0)
    for term in terms:
        if not holds(term.when, env):
            continue
        if holds(term.unknown, env) or any(kind.mixed and holds(kind.ruined, env) for kind in term.kinds):
            return None
        met = True
        for place, index in enumerate(matter):
            kind = term.kinds[index]
            if kind.tied:
                return None
            if kind.value == "partial":
                met = met and device[place] == item[place]
            elif kind.value == "root":
                met = met and item[place] == kind.root
        if met:
            total += term.scale.at(env)
    return total


def fault_of(table: Table) -> Literal["wrong", "scale", "nonuniform"]:
    """Scale only, not uniform over devices, or otherwise wrong."""
    devices = [tuple(items.values()) for items in table.factors.values()]
    if any(None in factors for factors in devices):
        return "wrong"
    if len(set(devices)) > 1:
        return "nonuniform"
    return "scale" if devices and len(set(devices[0])) == 1 and devices[0][0] != 0 else "wrong"


# --- the table in words ---------------------------------------------------------------------


def rows_of(table: Table, symbol: str = "g") -> tuple[DeviceRow, ...]:
    """What each device applies, as a combination of the gradients g of the work items."""
    out = []
    for device, items in table.factors.items():
        coordinates = dict(zip(table.axes, device))
        out.append(
            DeviceRow(
                coordinates,
                _combination(table, items, symbol),
                _combination(table, dict.fromkeys(items, Fraction(1)), symbol),
            )
        )
    return tuple(out)


def _combination(table: Table, items: Mapping[tuple[int, ...], Fraction | None], symbol: str) -> str:
    factors = set(items.values())
    if None in factors:
        return "a mixture of different elements"
    if len(factors) == 1:
        factor = factors.pop()
        # The unsplit gradient g is the sum over all items.
        if factor == 0:
            return "0"
        if not table.axes and not table.turns or factor != 1:
            return _times(factor, symbol)
    parts = [_times(factor, _item(table, item, symbol)) for item, factor in items.items() if factor]
    return summed(parts)


def summed(parts: Sequence[str]) -> str:
    """A sum in words; a long one is cut short, and says so."""
    return " + ".join(parts[:MAX_PARTS]) + (" + ..." if len(parts) > MAX_PARTS else "") or "0"


def _item(table: Table, item: tuple[int, ...], symbol: str) -> str:
    names = [*table.axes, "microbatch"] if table.turns else [*table.axes]
    inner = ", ".join(f"{name}={value}" for name, value in zip(names, item))
    return f"{symbol}[{inner}]" if inner else symbol


def _times(factor: Fraction | None, what: str) -> str:
    if factor == 1:
        return what
    if factor is not None and factor.denominator != 1:
        return f"({factor}) {what}"
    return f"{factor} {what}"
