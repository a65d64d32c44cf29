"""From a wrong coefficient to its name: which code, which axis, which sentence, which table.

The whole product over axes was decided at once; only here, at one concrete mesh, is an axis blamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import Literal

from placelogic.program.program import Program, Weights
from placelogic.prove.formula import holds
from placelogic.prove.ratio import const
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import TURN, Term, members
from placelogic.report.diagnostic import DeviceRow

MAX_ROWS = 8
MAX_ITEMS = 64


@dataclass(frozen=True, slots=True)
class Blame:
    code: str
    axes: tuple[str, ...]
    message: str
    label: str
    help: str
    fault: Literal["wrong", "scale", "nonuniform"]
    rows: tuple[DeviceRow, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Coefficients relative to the single device: device -> item -> factor. Coordinates along
    `axes` only (the others do not matter); an item's last coordinate is its micro-batch, from 1,
    where that matters. A factor of None is a value that nobody can name (mixed)."""

    axes: tuple[str, ...]
    turns: bool
    factors: Mapping[tuple[int, ...], Mapping[tuple[int, ...], Fraction | None]]


def tabulate(program: Program, weights: Weights, sizes: Sizes, terms: tuple[Term, ...], env: Mapping[str, int]) -> Table:
    """The coefficients at one mesh. Long axes and loops are cut short: the first few coordinates show it."""
    names = program.mesh.axes
    count = {axis: int(members(weights, sizes, axis).at(env)) for axis in names}
    matter = [
        index
        for index, axis in enumerate(names)
        if count[axis] > 1 and any(t.kinds[index].value != "copy" or t.kinds[index].mixed for t in terms)
    ]
    microbatches = int(sizes.microbatches.at(env))
    turns = microbatches > 1 and any("m." in repr(t.when) for t in terms)
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


def _factor(
    terms: tuple[Term, ...], matter: list[int], device: tuple[int, ...], item: tuple[int, ...], env: Mapping[str, int]
) -> Fraction | None:
    total = Fraction(0)
    for term in terms:
        if not holds(term.when, env):
            continue
        if any(kind.mixed and holds(kind.ruined, env) for kind in term.kinds):
            return None
        met = True
        for place, index in enumerate(matter):
            kind = term.kinds[index]
            if kind.value == "share":
                met = met and device[place] == item[place]
            elif kind.value == "root":
                met = met and item[place] == kind.root
        if met:
            total += term.scale.at(env)
    return total


def blame(
    program: Program, weights: Weights, sizes: Sizes, terms: tuple[Term, ...], env: Mapping[str, int], term: str | None
) -> Blame:
    """The finding for a coefficient that is not the single device's."""
    table = tabulate(program, weights, sizes, terms, env)
    what = f"the gradient of `{weights.name}`" + (f" (loss `{term}`)" if term else "")
    rows = _rows(table)
    fault = fault_of(table)
    names = program.mesh.axes

    for t in terms:
        for index, kind in enumerate(t.kinds):
            if kind.mixed and holds(kind.ruined, {**env, TURN: 1}):
                axis = names[index]
                if kind.fault.startswith("is transformed"):
                    continue
                return Blame(
                    "GI06", (axis,), f"a collective over {axis} {kind.fault}: {what} is no longer a gradient",
                    f"over {axis} the devices hold values that cannot be combined",
                    f"leave {axis} out for `{weights.name}`", "wrong", rows,
                )  # fmt: skip
    every = [f for items in table.factors.values() for f in items.values()]
    by_turn = _by_turn(table)
    left = [
        axis
        for place, axis in enumerate(table.axes)
        if any(t.kinds[names.index(axis)].value == "share" and _live(t, env) for t in terms)
    ]
    if by_turn is not None and len(set(by_turn.values())) > 1:
        lost = [turn for turn, fs in by_turn.items() if set(fs) == {Fraction(0)}]
        if lost:
            which = ", ".join(map(str, lost))
            return Blame(
                "GI05", (), f"{what} loses micro-batch {which}", "not every micro-batch is added up",
                "accumulate every micro-batch before the update", fault, rows,
            )  # fmt: skip
        if left:
            return Blame(
                "GI05", tuple(left), f"{what} is used before all its micro-batches are summed over {', '.join(left)}",
                "some micro-batches come after the reduction",
                "reduce after the last micro-batch, or in every one", fault, rows,
            )  # fmt: skip
        counted = tuple(dict.fromkeys(a for t in terms for a in t.counted))
        if counted and any(t.repeats for t in terms):
            axes = ", ".join(counted)
            return Blame(
                "GI02", counted, f"{what} sums what was already summed over {axes} again in every micro-batch",
                "the running buffer is reduced again",
                "reduce the fresh gradient (before `accumulate`), or once after the loop", fault, rows,
            )  # fmt: skip
        return Blame(
            "GI04", (), f"{what} weighs micro-batches differently", "the running buffer is scaled in every micro-batch",
            "scale once, after the loop", fault, rows,
        )  # fmt: skip
    if not any(every):
        return Blame(
            "GI05", (), f"{what} is empty: nothing was accumulated into what the update reads",
            "reads a buffer without a gradient", "accumulate into the buffer that the update reads", "wrong", rows,
        )  # fmt: skip
    if left:
        axes = ", ".join(left)
        return Blame(
            "GI01", tuple(left), f"{what} is never summed over {axes}: contributions are missing",
            f"along {axes} each device has only its own share", f"sum or average it over {axes}", fault, rows,
        )  # fmt: skip
    rooted = tuple(
        axis for axis in table.axes if any(t.kinds[names.index(axis)].value == "root" and _live(t, env) for t in terms)
    )
    if rooted:
        axes = ", ".join(rooted)
        return Blame(
            "GI01", rooted, f"{what} has the contribution of one share along {axes} only: the others are never computed",
            f"every device along {axes} is fed the same share", f"feed each device along {axes} its own share", fault, rows,
        )  # fmt: skip
    if len(set(every)) == 1 and every[0] is not None:
        return _constant(sizes, terms, env, every[0], what, rows, weights)
    return Blame(
        "GI04", table.axes, f"{what} weighs work items differently", "the factor depends on the work item",
        "let every item count alike", fault, rows,
    )  # fmt: skip


def _constant(
    sizes: Sizes, terms: tuple[Term, ...], env: Mapping[str, int], factor: Fraction, what: str,
    rows: tuple[DeviceRow, ...], weights: Weights,
) -> Blame:  # fmt: skip
    counted = tuple(dict.fromkeys(a for t in terms if _live(t, env) for a in t.counted))
    counted = tuple(axis for axis in counted if members(weights, sizes, axis).at(env) > 1)
    if counted:
        axes = ", ".join(counted)
        times = f"{'*'.join(counted)} times" if factor > 1 else "several times"
        return Blame(
            "GI02", counted, f"{what} counts every contribution {times}",
            f"along {axes} each device already holds the whole gradient, and they are summed",
            f"leave {axes} out, or average instead of summing", "scale", rows,
        )  # fmt: skip
    name = _named_factor(terms, sizes)
    return Blame(
        "GI03", (), f"{what} is wrong by the constant factor {name or factor}",
        f"every contribution is multiplied by {factor} at this mesh", "divide by what the loss did not divide by, or drop a division",
        "scale", rows,
    )  # fmt: skip


def _named_factor(terms: tuple[Term, ...], sizes: Sizes) -> str | None:
    """The factor in sizes (`ep`, `1/M`), where one term says it all."""
    scales = {t.scale for t in terms}
    if len(scales) != 1:
        return None
    scale = scales.pop()
    if not scale.monomial or scale.constant is not None:
        return None

    def side(poly: tuple) -> str:
        monomial, coefficient = poly[0]
        factors = [name.rstrip(".") for name, power in monomial for _ in range(power)]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(coefficient))
        return "*".join(factors)

    num, den = side(scale.num), side(scale.den)
    return num if den == "1" else f"{num}/{den}" if "*" not in den else f"{num}/({den})"


def _live(term: Term, env: Mapping[str, int]) -> bool:
    """Whether the term is there for some micro-batch at these sizes."""
    if term.scale == const(0):
        return False
    turns = max(env.get(name, 1) for name in (*env,)) if env else 1
    return any(holds(term.when, {**env, TURN: turn}) for turn in range(1, min(turns, 64) + 1))


def _by_turn(table: Table) -> Mapping[int, tuple[Fraction | None, ...]] | None:
    if not table.turns:
        return None
    out: dict[int, list[Fraction | None]] = {}
    for items in table.factors.values():
        for item, factor in items.items():
            out.setdefault(item[-1], []).append(factor)
    return {turn: tuple(factors) for turn, factors in out.items()}


def fault_of(table: Table) -> Literal["wrong", "scale", "nonuniform"]:
    """Scale only, not uniform over devices, or otherwise wrong."""
    devices = [tuple(items.values()) for items in table.factors.values()]
    if any(None in factors for factors in devices):
        return "wrong"
    if len(set(devices)) > 1:
        return "nonuniform"
    return "scale" if devices and len(set(devices[0])) == 1 and devices[0][0] != 0 else "wrong"


# --- the table in words ---------------------------------------------------------------------


def _rows(table: Table) -> tuple[DeviceRow, ...]:
    """What each device applies, as a combination of the gradients g of the work items."""
    out = []
    for device, items in table.factors.items():
        coordinates = dict(zip(table.axes, device))
        out.append(DeviceRow(coordinates, _combination(table, items), _combination(table, dict.fromkeys(items, Fraction(1)))))
    return tuple(out)


def _combination(table: Table, items: Mapping[tuple[int, ...], Fraction | None]) -> str:
    factors = set(items.values())
    if None in factors:
        return "a mixture of different elements"
    if len(factors) == 1:
        factor = factors.pop()
        # The unsplit gradient g is the sum over all items.
        if factor == 0:
            return "0"
        if not table.axes and not table.turns or factor != 1:
            return _times(factor, "g")
    parts = [_times(factor, _item(table, item)) for item, factor in items.items() if factor]
    text = " + ".join(parts[:4]) + (" + ..." if len(parts) > 4 else "")
    return text or "0"


def _item(table: Table, item: tuple[int, ...]) -> str:
    names = [*table.axes, "microbatch"] if table.turns else [*table.axes]
    inner = ", ".join(f"{name}={value}" for name, value in zip(names, item))
    return f"g[{inner}]" if inner else "g"


def _times(factor: Fraction | None, what: str) -> str:
    if factor == 1:
        return what
    if factor is not None and factor.denominator != 1:
        return f"({factor}) {what}"
    return f"{factor} {what}"
