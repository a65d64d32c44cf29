"""The condition that every coefficient obligation comes down to: terms that do not add up to one device's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from placelogic.program.program import Program, Weights
from placelogic.prove.formula import TRUE, Formula, both, differs, either, made, test
from placelogic.prove.kinds import is_ruined
from placelogic.prove.obligations import Obligation
from placelogic.prove.ratio import ONE, Ratio, const, var
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import TURN, Term, members
from placelogic.prove.written import Written


def coefficient_differs(
    program: Program, weights: Weights, sizes: Sizes, terms: tuple[Term, ...], times: int = 1
) -> Formula:
    """Some device, some work item: the terms do not add up to the single-device coefficient.

    Coordinates: `x.a` of the device, `w.a` of the item, `m.` its micro-batch."""
    return sum_differs(program.mesh.axes, sizes, terms, lambda axis: members(weights, sizes, axis), times)


def sum_differs(
    axes: tuple[str, ...], sizes: Sizes, terms: tuple[Term, ...], members: Callable[[str], Ratio], times: int = 1
) -> Formula:
    """The terms do not add up to `times` on some device, for some share. `members`: devices along an axis.
    A second coordinate `v.a` stands for the piece of a share, where shares are cut without adding up."""
    wrong = _sum_differs(axes, sizes, terms, members, times)
    coordinates = [(f"{letter}.{axis}", members(axis)) for axis in axes for letter in "xwv"]
    inside = [test(op, var(name), end) for name, size in coordinates for op, end in ((">=", const(0)), ("<", size))]
    cases = tuple((Written("and", (term.when, *_holds(axes, term))), term.scale) for term in terms)
    ruined = [Written("and", (term.when, either(term.unknown, *map(is_ruined, term.kinds)))) for term in terms]
    differs = Written("differs", (cases, const(times)))
    return made(wrong, "and", *inside, Written("or", (differs, *ruined)))


def _holds(axes: tuple[str, ...], term: Term) -> list[Written]:
    return [Written("holds", (kind, axis)) for axis, kind in zip(axes, term.kinds)]


def _sum_differs(
    axes: tuple[str, ...], sizes: Sizes, terms: tuple[Term, ...], members: Callable[[str], Ratio], times: int
) -> Formula:
    ruined: list[Formula] = []
    cases: list[tuple[Formula, Ratio]] = []
    ranges: list[Formula] = []
    for term in terms:
        condition = [term.when]
        ruined.append(both(term.when, term.unknown))
        for axis, kind in zip(axes, term.kinds):
            if kind.mixed:
                ruined.append(both(term.when, kind.ruined))
            size = members(axis)
            if size == ONE or (kind.value == "replicated" and not kind.tied):
                continue
            x, w = var(f"x.{axis}"), var(f"w.{axis}")
            ranges += [test(">=", w), test("<", w, size)]
            if kind.tied:
                v = var(f"v.{axis}")
                condition.append(test("=", w, v))
                ranges += [test(">=", v), test("<", v, size)]
            if kind.value == "replicated":
                continue
            condition.append(test("=", x, w) if kind.value == "partial" else test("=", w, const(kind.root)))
            ranges += [test(">=", x), test("<", x, size)]
        cases.append((both(*condition), term.scale))
    wrong = differs(tuple(cases), const(times))
    if any(term.when != TRUE for term in terms):
        ranges += [test(">=", var(TURN), ONE), test("<=", var(TURN), sizes.microbatches)]
    inside = both(*ranges) if ranges else TRUE
    return both(inside, either(wrong, *ruined))


def without_factor(program: Program, sizes: Sizes, one: Obligation, env: Mapping[str, int]) -> Obligation | None:
    """The same question about a gradient without the constant factor that it has at these sizes; None where it has
    none, or is 0 there."""
    if one.values is None or one.through is not None or one.weights is None:
        return None
    from placelogic.prove.table import tabulate

    weights, terms = program.group(one.weights), one.values.terms
    factors = {f for items in tabulate(program, weights, sizes, terms, env).factors.values() for f in items.values()}
    factor = factors.pop() if len(factors) == 1 else None
    if not factor:
        return None
    rest = tuple(replace(term, scale=term.scale / const(factor)) for term in terms)
    violation = both(one.values.read.when, coefficient_differs(program, weights, sizes, rest))
    return replace(one, violation=violation, values=replace(one.values, terms=rest))
