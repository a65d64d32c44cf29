"""FW07: what is dealt out evenly has to come out even."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import gcd

from placelogic.program.expr import Binary, Compare, Expr, Name, names, number
from placelogic.program.plan import Dealt
from placelogic.program.program import Axes, Program
from placelogic.prove.formula import FALSE, TRUE, Formula, both, negate
from placelogic.prove.obligations import Obligation
from placelogic.prove.ratio import ONE_POLY, Ratio, const
from placelogic.prove.sizes import Sizes
from placelogic.prove.solver import Solver

MANY = 12
"""Sizes that are listed one by one."""


def division_obligations(program: Program, sizes: Sizes) -> Iterator[Obligation]:
    """One for each dimension and product of axes, decided where both sizes are known. An axis that is open
    stands for the sizes that divide; where assumptions speak of it, some size they allow has to."""
    spoken = {name.name for assumption in program.assumptions for name in names(assumption.condition)}
    for one in _dealt(program):
        size, parts = _size(program, sizes, one), _parts(sizes, one)
        violation: Formula = FALSE
        possible: Formula | None = None
        if size.constant is not None and parts.constant is not None:
            violation = FALSE if size.constant % parts.constant == 0 else TRUE
        elif set(parts.variables) & spoken and _whole(size):
            possible = sizes.condition(_divides(program, one))
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


def settle(obligations: Iterable[Obligation], solver: Solver) -> tuple[Obligation, ...]:
    """Conditions that some allowed mesh has to meet, all of them at once, as obligations about every mesh: the
    first that no mesh meets together with those before it is violated everywhere."""
    met: list[Formula] = []
    found: list[Obligation] = []
    for one in obligations:
        if one.possible is not None:
            answer = solver.check(both(*met, one.possible))
            if answer.status == "sat":
                met.append(one.possible)
            violation = {"sat": FALSE, "unsat": TRUE}.get(answer.status, negate(one.possible))
            one = replace(one, violation=violation, possible=None)
        found.append(one)
    return tuple(found)


def division_assumptions(program: Program, sizes: Sizes, denied: frozenset[Axes] = frozenset()) -> Iterator[str]:
    """What a verdict takes for granted: an open product of axes divides the dimensions of known size that it cuts.
    `denied`: axes of which it was found that they cannot."""
    limits: dict[tuple[str, ...], dict[str, int]] = {}
    assumed = {(a.condition.op, a.condition.left, a.condition.right) for a in program.assumptions}
    for one in _dealt(program):
        size, parts = _size(program, sizes, one), _parts(sizes, one)
        divides = _divides(program, one)
        known = (divides.op, divides.left, divides.right) in assumed
        if size.constant is not None and parts.constant is None and size.constant.denominator == 1 and not known:
            limits.setdefault(one.axes, {})[one.dim] = _room(size, one)
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
    """Whether it is a polynomial, and so a whole number."""
    return value.den == ONE_POLY


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
