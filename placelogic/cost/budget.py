"""Whether a device has room: the peak against a budget, and the sizes at which it fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, product

import sympy
from msgspec import Struct

from placelogic.cost.symbols import at
from placelogic.cost.totals import Cost
from placelogic.program.expr import Compare, holds, names

EVERY = 4096
"""Sizes of a single open axis up to here are all tried, beyond it powers of two only."""
MOST = 2**20
"""The largest size, and the largest number of devices, that is tried."""
POINTS = 50_000
"""Of several open axes, how many combinations of sizes are tried."""

MOST_ASKED = 500
"""For how many numbers of devices it is asked whether assumptions about other sizes allow them."""

Box = Mapping[str, tuple[int, int | None]]
"""Sizes from and to; without an end where that is None."""


class Unclear(Exception):
    """Whether assumptions allow some sizes could not be told."""


class Fit(Struct, frozen=True):
    """`peak`: where all sizes are fixed. `open`: sizes left open that the peak depends on, axes only.
    `unknown`: other open sizes, without which there is nothing to compare. `ranges`: of the one open
    axis, where it fits; the last one open-ended (None), which holds for all larger sizes where `everywhere`,
    and else for those that were tried. `fewest`: of several axes, sizes with the fewest devices of those that were
    tried. `never`: no allowed size is enough, also of those that were not tried."""

    peak: Fraction | None = None
    open: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int | None], ...] = ()
    everywhere: bool = False
    fewest: tuple[dict[str, int], ...] = ()
    never: bool = False


def fit(
    cost: Cost,
    limit: sympy.Expr,
    assumptions: Sequence[Compare],
    bounded: Callable[[Sequence[str], int], bool],
    possible: Callable[[Box], bool],
) -> Fit:
    """The peak, shards rounded up, against `limit` in bytes. `bounded`: whether the assumptions allow these sizes no
    more than so many devices each. `possible`: whether they allow any sizes from there to there, asked where they
    are about other open sizes too; it may raise Unclear."""
    peak = cost.memory.peak_padded
    gap = at(limit - peak, dict(cost.values))
    free = sorted(one.name for one in gap.free_symbols)
    if not free:
        return Fit(peak=cost.known(peak))
    unknown = tuple(name for name in free if name not in cost.axes)
    if unknown:
        return Fit(unknown=unknown)
    allowed = [one for one in assumptions if {name.name for name in names(one)} <= {*free, *cost.values}]
    linked = len(allowed) < len(assumptions)
    room = sympy.lambdify([sympy.Symbol(name) for name in free], gap, modules="math")

    def fits(*point: int) -> bool:
        env = {**cost.values, **dict(zip(free, point, strict=True))}
        if not all(holds(condition, env) for condition in allowed):
            return False
        guess = room(*point)
        if abs(guess) > 1:  # bytes: floats are far better than that
            return bool(guess > 0)
        return bool(at(gap, dict(zip(free, point, strict=True))) >= 0)

    left = at(peak, dict(cost.values))
    ruled_out = bool(least(left) > at(limit, dict(cost.values)))
    if len(free) == 1:
        ranges = tuple(one for one in _ranges(fits) if not linked or possible({free[0]: one}))
        everywhere = not allowed and falls(left, sympy.Symbol(free[0]))
        never = not ranges and (ruled_out or bounded(free, EVERY))
        return Fit(open=tuple(free), ranges=ranges, everywhere=everywhere, never=never)

    def allows(point: dict[str, int]) -> bool:
        return not linked or possible({name: (size, size) for name, size in point.items()})

    fewest = tuple(_fewest(free, fits, allows)) or tuple(_small(free, fits, allows))
    never = not fewest and (ruled_out or bounded(free, _each(free)))
    return Fit(open=tuple(free), fewest=fewest, never=never)


def least(expr: sympy.Expr) -> sympy.Expr:
    """What the expression is at least, whatever its sizes, all of them 1 or more; minus infinity where that is not
    plain."""
    if expr.is_number:
        return expr
    if expr.is_Symbol:
        return sympy.Integer(1)
    if isinstance(expr, sympy.Piecewise):
        return sympy.Min(*(least(value) for value, _ in expr.args))
    if expr.is_Pow and expr.exp.is_Integer:
        below = least(expr.base)
        if below < 0:
            return -sympy.oo
        return sympy.Integer(0) if expr.exp < 0 else below**expr.exp
    parts = [least(part) for part in expr.args]
    if isinstance(expr, sympy.Add | sympy.Max | sympy.Min | sympy.ceiling | sympy.floor):
        return -sympy.oo if isinstance(expr, sympy.Add) and -sympy.oo in parts else expr.func(*parts)
    if expr.is_Mul and all(part >= 0 for part in parts):
        return sympy.Mul(*parts)
    return -sympy.oo


def _each(free: Sequence[str]) -> int:
    """Up to which size of each axis all are tried, of several."""
    return int(POINTS ** (1 / len(free)))


def _small(free: Sequence[str], fits, allows) -> Iterator[dict[str, int]]:
    """All sizes up to a small one, by the number of devices: for assumptions that powers of two do not meet."""
    points = [point for point in product(range(1, _each(free) + 1), repeat=len(free)) if fits(*point)]
    points.sort(key=math.prod)
    for index, (_, same) in enumerate(groupby(points, math.prod)):
        if index == MOST_ASKED:
            raise Unclear
        found = [point for one in same if allows(point := dict(zip(free, one, strict=True)))]
        if found:
            yield from found[:3]
            return


def falls(expr: sympy.Expr, size: sympy.Symbol) -> bool:
    """Whether it plainly never grows with a size: sums and products of what divides by it."""
    if size not in expr.free_symbols:
        return True
    if expr.is_Add or isinstance(expr, sympy.Max | sympy.Min | sympy.ceiling | sympy.floor):
        return all(falls(part, size) for part in expr.args)
    if expr.is_Mul:
        return all(falls(part, size) and not part.could_extract_minus_sign() for part in expr.args)
    return expr.is_Pow and expr.base == size and bool(expr.exp.is_negative)


def _ranges(fits) -> Iterator[tuple[int, int | None]]:
    tried = [*range(1, EVERY + 1), *(2**power for power in range(13, MOST.bit_length()))]
    start: int | None = None
    last = 0
    for size in tried:
        good = fits(size)
        if good and start is None:
            start = size
        if not good and start is not None:
            yield start, last
            start = None
        last = size
    if start is not None:
        yield start, None


def _fewest(free: Sequence[str], fits, allows) -> Iterator[dict[str, int]]:
    """Powers of two, by the number of devices."""
    for power in range(MOST.bit_length()):
        found = [
            point
            for split in product(range(power + 1), repeat=len(free))
            if sum(split) == power and fits(*(2**one for one in split))
            if allows(point := dict(zip(free, (2**one for one in split), strict=True)))
        ]
        if found:
            yield from found[:3]
            return
