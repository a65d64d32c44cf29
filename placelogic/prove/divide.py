"""FW07: what is dealt out evenly has to come out even."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd, lcm

from msgspec.structs import replace

from placelogic.program.expr import Binary, Compare, Expr, Name, holds, number, show
from placelogic.program.plan import Dealt
from placelogic.program.program import Axes, Program
from placelogic.prove.formula import FALSE, TRUE, Formula, both
from placelogic.prove.obligations import Obligation
from placelogic.prove.ratio import ONE_POLY, Ratio, const
from placelogic.prove.sizes import Sizes
from placelogic.prove.solver import Solver

MANY = 12
"""Sizes that are listed one by one."""


def division_obligations(program: Program, sizes: Sizes) -> Iterator[Obligation]:
    """One for each dimension and product of axes. Decided at once where nothing is open in how many fit into a
    device. Else sizes stand for those that divide, and some allowed ones have to: all of them at once."""
    every = _dealt(program)
    somewhere = _at_some_sizes(program, sizes, every)
    for one in every:
        size = _size(program, sizes, one)
        each = size / _parts(sizes, one)
        violation: Formula = FALSE
        possible: Formula | None = None
        if _never_whole(each):
            violation = TRUE
        elif not somewhere and not _whole(each):
            possible = sizes.whole_number(each)
        label = program.mesh.label(one.axes)
        yield Obligation(
            name=f"{one.dim} dealt out over {label}",
            code="FW07",
            weights=None,
            axes=one.axes,
            violation=violation,
            span=next(atom.span for atom in program.mesh.atoms if atom.name == one.axes[-1]),
            stated=False,
            message=f"{_counted(size, one.dim)} cannot be dealt out evenly over {label}{_how(one)}",
            label=f"{label} cuts `{one.tensor}` on {one.dim}{_fitting(size, one)}",
            help=_help(size, one, label, _shared(program, sizes, one.axes)),
            fault=None,
            possible=possible,
        )


def settle(obligations: Iterable[Obligation], solver: Solver) -> tuple[tuple[Obligation, ...], str | None]:
    """Conditions that some allowed mesh has to meet, all of them at once, as obligations about every mesh: the
    first that no mesh meets together with those before it is violated everywhere. And what the solver gave up on."""
    met: list[Formula] = []
    found: list[Obligation] = []
    doubtful: str | None = None
    for one in obligations:
        if one.possible is not None:
            answer = solver.check(both(*met, one.possible))
            if answer.status == "sat":
                met.append(one.possible)
            elif answer.status == "unknown":
                doubtful = doubtful or f"whether any allowed size fits {one.name}: {answer.reason}"
            one = replace(one, violation=TRUE if answer.status == "unsat" else FALSE, possible=None)
        found.append(one)
    return tuple(found), doubtful


def division_assumptions(program: Program, sizes: Sizes, denied: frozenset[Axes] = frozenset()) -> Iterator[str]:
    """What a verdict takes for granted: a product of axes divides the dimensions that it cuts, where a dimension is
    not itself an open size (or a multiple of one), which stands for those that fit.
    `denied`: axes of which it was found that they cannot."""
    limits: dict[tuple[str, ...], dict[str, str]] = {}
    assumed = {(a.condition.op, a.condition.left, a.condition.right) for a in program.assumptions}
    for one in _dealt(program):
        size, parts = _size(program, sizes, one), _parts(sizes, one)
        divides = _divides(program, one)
        known = (divides.op, divides.left, divides.right) in assumed
        if known or _whole(size / parts) or _never_whole(size / parts) or _free(size, sizes):
            continue
        assert program.layers is not None
        room = _room(size, one)
        limits.setdefault(one.axes, {})[one.dim] = str(room) if room else show(program.layers.sizes[one.dim])
    for axes, dims in limits.items():
        if axes in denied:
            continue
        yield f"{program.mesh.label(axes)} divides {_either([f'{dim} ({count})' for dim, count in dims.items()], 'and')}"


def divisors(count: int) -> list[int]:
    """All of them, in order."""
    found = [n for n in range(1, min(count, 100_000) + 1) if n * n <= count and count % n == 0]
    return sorted({*found, *(count // n for n in found)})


# --- sizes ------------------------------------------------------------------------------------


def _dealt(program: Program) -> tuple[Dealt, ...]:
    return program.layering.dealt if program.layering is not None else ()


def _size(program: Program, sizes: Sizes, one: Dealt) -> Ratio:
    assert program.layers is not None
    return sizes.ratio(program.layers.sizes[one.dim])


def _parts(sizes: Sizes, one: Dealt) -> Ratio:
    return sizes.product(one.axes) * const(2 if one.twice else 1)


def _divides(program: Program, one: Dealt) -> Compare:
    assert program.layers is not None
    parts: Expr = Name(one.axes[0])
    for axis in one.axes[1:]:
        parts = Binary("*", parts, Name(axis))
    if one.twice:
        parts = Binary("*", number(2), parts)
    return Compare("==", Binary("%", program.layers.sizes[one.dim], parts), number(0))


def _whole(value: Ratio) -> bool:
    """Whether it is a polynomial, and so a whole number at every size."""
    return value.den == ONE_POLY


def _never_whole(value: Ratio) -> bool:
    """Whether it is seen at once that it is no whole number at any size: a constant numerator, and a divisor of
    every denominator that has nothing in common with it."""
    if not value.num or value.num[0][0] or len(value.num) > 1:
        return False
    content = gcd(*(coefficient for _, coefficient in value.den))
    return value.num[0][1] % content != 0


def _free(size: Ratio, sizes: Sizes) -> bool:
    """Whether it is a multiple of an open size that is not one of the mesh."""
    if not size.monomial:
        return False
    return any(name in sizes.open and name not in sizes.axis_names for name, _ in size.num[0][0])


def _at_some_sizes(program: Program, sizes: Sizes, every: Iterable[Dealt]) -> bool:
    """Whether everything divides at some sizes that are easily found: one device along open axes, and open
    quantities that are multiples of all that is given. False: that is not known."""
    env = dict.fromkeys(sizes.open, 1)
    try:
        large = lcm(*(int(_parts(sizes, one).at(env)) for one in every))
        env = {name: 1 if name in sizes.axis_names else large for name in sizes.open}
        values = {name: value.at(env) for name, value in sizes.values.items()}
        for assumption in program.assumptions:
            if not holds(assumption.condition, values):
                return False
        return all((_size(program, sizes, one) / _parts(sizes, one)).at(env).denominator == 1 for one in every)
    except (KeyError, ZeroDivisionError):  # a count that has to come out whole is no open size
        return False


def _counted(size: Ratio, dim: str) -> str:
    return f"{dim} ({size.constant})" if size.constant is not None else dim


def _how(one: Dealt) -> str:
    return ": a ring of causal attention gives each device a piece from either end" if one.twice else ""


def _shared(program: Program, sizes: Sizes, axes: tuple[str, ...]) -> int:
    """What every dimension that these axes cut is a multiple of, as far as their sizes are known; 0: of anything."""
    return gcd(*(_room(_size(program, sizes, one), one) for one in _dealt(program) if one.axes == axes))


def _room(size: Ratio, one: Dealt) -> int:
    """A multiple of the sizes that fit; 0 where the dimension is open."""
    if size.constant is None or size.constant.denominator != 1:
        return 0
    count = int(size.constant)
    return count // 2 if one.twice and count % 2 == 0 else 1 if one.twice else count


def _fitting(size: Ratio, one: Dealt) -> str:
    count = _room(size, one)
    return f": {_listed(divisors(count))} would divide it" if count else ""


def _help(size: Ratio, one: Dealt, label: str, shared: int) -> str:
    count = _room(size, one)
    if not count:
        return f"let {label} divide {one.dim}"
    if one.twice and count == 1:
        return f"make {one.dim} even"
    return f"sizes of {label} that divide all that it cuts: {_listed(divisors(shared or count))}"


def _listed(found: list[int]) -> str:
    if len(found) > MANY:
        return f"{', '.join(map(str, found[:MANY]))}, ..."
    return _either([str(n) for n in found], "or")


def _either(parts: list[str], word: str) -> str:
    *most, last = parts
    return f"{', '.join(most)} {word} {last}" if most else last
