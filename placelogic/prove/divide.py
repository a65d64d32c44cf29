"""FW07: what is dealt out evenly has to come out even."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import gcd, isqrt, lcm
from typing import Any

from msgspec.structs import replace

from placelogic.program.expr import Binary, Compare, Expr, Name, holds, number, show
from placelogic.program.plan import Dealt
from placelogic.program.program import Axes, Program
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either, made, test
from placelogic.prove.obligations import Fits, Obligation
from placelogic.prove.ratio import ONE, ONE_POLY, Ratio, const
from placelogic.prove.sizes import Sizes
from placelogic.prove.solver import Named, Solver
from placelogic.prove.written import Written

MANY = 12
"""Sizes that are listed one by one."""


def division_obligations(program: Program, sizes: Sizes) -> Iterator[Obligation]:
    """One for each dimension and product of axes. Decided at once where nothing is open in how many fit into a
    device. Else sizes stand for those that divide, and some allowed ones have to: all of them at once."""
    every = _dealt(program)
    somewhere = _some_sizes(program, sizes, every)
    for one in every:
        size = _size(program, sizes, one)
        each = size / _parts(sizes, one)
        violation: Formula = FALSE
        possible: Formula | None = None
        if _never_whole(each):
            violation = at_least(sizes.product(one.axes), 2) if one.twice else TRUE
        elif somewhere is None and not _whole(each):
            possible = _fits(sizes, one, each)
        label = program.mesh.label(one.axes)
        yield Obligation(
            name=f"{one.dim} dealt out over {label}",
            code="FW07",
            weights=None,
            axes=one.axes,
            violation=violation,
            span=next(atom.span for atom in program.mesh.atoms if atom.name == one.axes[-1]),
            stated=False,
            **_told(size, one, label, _shared(program, sizes, one.axes)),
            possible=possible,
            fits=Fits(made(TRUE, "or", _alone(sizes, one), Written("whole", (each,))), somewhere),
        )


def settle(obligations: Iterable[Obligation], solver: Solver) -> tuple[tuple[Obligation, ...], str | None]:
    """Conditions that some allowed mesh has to meet, all of them at once, as obligations about every mesh: the
    first that no mesh meets together with those before it is violated everywhere. And what the solver gave up on."""
    met: list[Formula] = []
    found: list[Obligation] = []
    doubtful: str | None = None
    at: Mapping[str, int] | None = None
    for one in obligations:
        if one.possible is not None:
            answer = solver.check(both(*met, one.possible), model=True)
            if answer.status == "sat":
                met.append(one.possible)
                at = answer.model
            elif answer.status == "unknown":
                doubtful = doubtful or f"whether any allowed size fits {one.name}: {answer.reason}"
            one = replace(one, violation=TRUE if answer.status == "unsat" else FALSE, possible=None)
        found.append(one)
    if at is not None:
        found = [one if one.fits is None else replace(one, fits=Fits(one.fits.where, at)) for one in found]
    return tuple(found), doubtful


def _fits(sizes: Sizes, one: Dealt, each: Ratio) -> Formula:
    """Where it comes out even; a ring of one device has one piece."""
    return either(_alone(sizes, one), sizes.whole_number(each))


def _alone(sizes: Sizes, one: Dealt) -> Formula:
    return test("=", sizes.product(one.axes), ONE) if one.twice else FALSE


def division_facts(program: Program, sizes: Sizes, denied: frozenset[Axes]) -> Iterator[Named]:
    """What `division_assumptions` tells, for the solver: counterexamples and proofs are about sizes that divide.
    `denied`: axes of which it was found that they cannot."""
    texts = dict(_granted(program, sizes, denied))
    rooms: dict[Axes, int] = {}
    rest: dict[Axes, list[Formula]] = {}
    for one in _assumed(program, sizes):
        size = _size(program, sizes, one)
        room = _room(size, one)
        if room and not one.twice:
            rooms[one.axes] = gcd(rooms.get(one.axes, 0), room)
        else:
            rest.setdefault(one.axes, []).append(_fits(sizes, one, size / _parts(sizes, one)))
    for axes, text in texts.items():
        parts = rest.get(axes, [])
        if axes in rooms:
            parts = [either(*(equal_to(sizes.product(axes), n) for n in divisors(rooms[axes]))), *parts]
        yield Named(text, both(*parts))


def equal_to(value: Ratio, number: int) -> Formula:
    return test("=", value, const(number))


def division_assumptions(program: Program, sizes: Sizes, denied: frozenset[Axes] = frozenset()) -> Iterator[str]:
    """What a verdict takes for granted: a product of axes divides the dimensions that it cuts, where a dimension is
    not itself an open size (or a multiple of one), which stands for those that fit.
    `denied`: axes of which it was found that they cannot."""
    yield from (text for _, text in _granted(program, sizes, denied))


def _assumed(program: Program, sizes: Sizes) -> Iterator[Dealt]:
    """What is taken for granted, and not said by the spec itself."""
    assumed = {(a.condition.op, a.condition.left, a.condition.right) for a in program.assumptions}
    for one in _dealt(program):
        size, parts = _size(program, sizes, one), _parts(sizes, one)
        divides = _divides(program, one)
        known = (divides.op, divides.left, divides.right) in assumed
        if not (known or _whole(size / parts) or _never_whole(size / parts) or _free(size, sizes)):
            yield one


def _granted(program: Program, sizes: Sizes, denied: frozenset[Axes]) -> Iterator[tuple[Axes, str]]:
    limits: dict[Axes, dict[str, str]] = {}
    for one in _assumed(program, sizes):
        assert program.layers is not None
        room = _room(_size(program, sizes, one), one)
        limits.setdefault(one.axes, {})[one.dim] = str(room) if room else show(program.layers.sizes[one.dim])
    for axes, dims in limits.items():
        if axes not in denied:
            counted = _either([f"{dim} ({count})" for dim, count in dims.items()], "and")
            yield axes, f"{program.mesh.label(axes)} divides {counted}"


def divisors(count: int) -> list[int]:
    """All of them, in order."""
    found = [n for n in range(1, min(isqrt(count), 100_000) + 1) if count % n == 0]
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


def _some_sizes(program: Program, sizes: Sizes, every: Iterable[Dealt]) -> Mapping[str, int] | None:
    """Sizes at which everything divides, where they are easily found: one device along open axes, and open
    quantities that are multiples of all that is given."""
    env = dict.fromkeys(sizes.open, 1)
    try:
        large = lcm(*(int(_parts(sizes, one).at(env)) for one in every))
        env = {name: 1 if name in sizes.axis_names else large for name in sizes.open}
        values = {name: value.at(env) for name, value in sizes.values.items()}
        for assumption in program.assumptions:
            if not holds(assumption.condition, values):
                return None
        whole = all((_size(program, sizes, one) / _parts(sizes, one)).at(env).denominator == 1 for one in every)
    except (KeyError, ZeroDivisionError):  # a count that has to come out whole is no open size
        return None
    return env if whole else None


def _told(size: Ratio, one: Dealt, label: str, shared: int) -> dict[str, Any]:
    """Which sentence, and its words. `shared`: as `_shared` has it."""
    room = _room(size, one)
    return {
        "variant": "open" if not room else "odd" if one.twice and room == 1 else "sizes",
        "words": {
            "size": f"{one.dim} ({size.constant})" if size.constant is not None else one.dim,
            "label": label,
            "dim": one.dim,
            "tensor": f"`{one.tensor}`",
            "ring": one.twice,
            "fitting": room > 0,
            "fits": _listed(divisors(room)) if room else "",
            "all": _listed(divisors(shared or room)) if room else "",
        },
    }


def _shared(program: Program, sizes: Sizes, axes: tuple[str, ...]) -> int:
    """What every dimension that these axes cut is a multiple of, as far as their sizes are known; 0: of anything."""
    return gcd(*(_room(_size(program, sizes, one), one) for one in _dealt(program) if one.axes == axes))


def _room(size: Ratio, one: Dealt) -> int:
    """A multiple of the sizes that fit; 0 where the dimension is open."""
    if size.constant is None or size.constant.denominator != 1:
        return 0
    count = int(size.constant)
    return count // 2 if one.twice and count % 2 == 0 else 1 if one.twice else count


def _listed(found: list[int]) -> str:
    if len(found) > MANY:
        return f"{', '.join(map(str, found[:MANY]))}, ..."
    return _either([str(n) for n in found], "or")


def _either(parts: list[str], word: str) -> str:
    *most, last = parts
    return f"{', '.join(most)} {word} {last}" if most else last
