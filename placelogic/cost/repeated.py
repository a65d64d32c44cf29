"""What a step sends the more of, the more micro-batches it has."""

from __future__ import annotations

import sympy
from msgspec import Struct
from msgspec.structs import replace

from placelogic.cost.data import Collective
from placelogic.cost.derive import derive
from placelogic.cost.symbols import at, total
from placelogic.cost.totals import Cost
from placelogic.program.expr import number
from placelogic.program.ops import Axes
from placelogic.program.program import Program


class Sent(Struct, frozen=True):
    """One kind of message, `times` in a step: a formula in the number of micro-batches."""

    operation: str
    what: str
    times: str


class Repeated(Struct, frozen=True):
    """What these weights send over `axes` grows with the number of micro-batches, `count`: it is `factor` times as much
    as in a step with one, for large axes."""

    axes: Axes
    label: str
    weights: tuple[str, ...]
    sent: tuple[Sent, ...]
    count: str
    factor: str


def repeated(program: Program) -> tuple[Repeated, ...]:
    """Per product of axes, for a complete program. Weights that do the same are told together; nothing where there is
    one micro-batch. Devices differ only in how much they hold, so one place speaks for all."""
    cost = derive(program)
    count = cost.sizes.read(program.work.microbatches)
    if cost.sizes.known(count) == 1:
        return ()
    single = derive(replace(program, work=replace(program.work, microbatches=number(1))))
    found: dict[tuple[Axes, str, tuple[Sent, ...], str], list[str]] = {}
    for weights in program.weights:
        mine = [one for one in cost.collectives if one.group == weights.name and one.axes]
        mine = [one for one in mine if mine[0].places[0] in one.places]
        for axes in dict.fromkeys(one.axes for one in mine):
            there = [one for one in mine if one.axes == axes]
            once = [
                o
                for o in single.collectives
                if (o.group, o.axes) == (weights.name, axes) and o.places == there[0].places
            ]
            factor = _factor(cost, there, once)
            if factor is not None:
                sent = tuple(Sent(one.operation, one.what, str(_valued(cost, one.times))) for one in there)
                found.setdefault((axes, there[0].label, sent, factor), []).append(weights.name)
    return tuple(
        Repeated(axes, label, tuple(names), sent, str(_valued(cost, count)), factor)
        for (axes, label, sent, factor), names in found.items()
    )


def _factor(cost: Cost, sent: list[Collective], single: list[Collective]) -> str | None:
    """How many times as much as with one micro-batch; None where it is the same, or where one alone sends nothing."""
    every, once = total(one.limit for one in sent), total(one.limit for one in single)
    if once == 0:
        return None
    ratio = sympy.cancel(every / once)
    return None if ratio == 1 else _quotient(_valued(cost, ratio))


def _quotient(expr: sympy.Expr) -> str:
    """As one fraction."""
    above, below = sympy.fraction(sympy.together(expr))
    if below == 1:
        return str(above)
    return f"{f'({above})' if above.is_Add else above}/{f'({below})' if not below.is_Atom else below}"


def _valued(cost: Cost, expr: sympy.Expr) -> sympy.Expr:
    return at(expr, cost.sizes.values)
