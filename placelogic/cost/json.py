"""Costs as JSON. Formulas are text that `sympy.sympify` reads back, given the symbols that are listed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from placelogic.cost.tables import times
from placelogic.cost.totals import Cost

SCHEMA = "placelogic/cost/1"


class _Printer(StrPrinter):
    """Numbers come last in a product: sympy would multiply `2*(n - 1)` out when it reads it."""

    def _print_Mul(self, expr: sympy.Mul) -> str:
        number, rest = expr.as_coeff_Mul()
        if number == 1 or not any(factor.is_Add for factor in sympy.Mul.make_args(rest)):
            return super()._print_Mul(expr)
        factors = sorted(sympy.Mul.make_args(rest), key=lambda factor: (factor.is_Add, str(factor)))
        text = "*".join(self.parenthesize(factor, PRECEDENCE["Mul"], strict=not i) for i, factor in enumerate(factors))
        return f"-{text}" if number == -1 else f"{text}*{self.parenthesize(number, PRECEDENCE['Mul'])}"


def parseable(expr: sympy.Expr) -> str:
    """Text that `sympy.sympify` reads back to an equal expression, given the symbols."""
    return _Printer().doprint(expr)


def as_data(cost: Cost) -> dict[str, Any]:
    """One spec. `value` is a number, or null where sizes are open."""
    memory, traffic = cost.memory, cost.traffic

    def amount(expr: sympy.Expr) -> dict[str, Any]:
        return {"formula": parseable(expr), "value": _number(cost.known(expr))}

    return {
        "name": cost.name,
        "symbols": list(_symbols(cost)),
        "sizes": {name: _number(value) for name, value in cost.values.items()},
        "parameters": amount(cost.parameters),
        "memory": {
            "model_states": amount(memory.states),
            "held": amount(memory.held),
            "held_padded": amount(memory.padded),
            "held_and_unit": amount(memory.with_unit),
            "peak": amount(memory.peak),
            "peak_padded": amount(memory.peak_padded),
            "host": amount(memory.host),
            "states": {state: amount(memory.state(state)) for state in dict.fromkeys(h.state for h in cost.held)},
        },
        "traffic": {
            "sent": amount(traffic.sent),
            "limit": amount(traffic.limit),
            "intra_node": amount(traffic.intra),
            "inter_node": amount(traffic.inter),
            "host": amount(traffic.host),
        },
        "bubble": None if cost.bubble is None else amount(cost.bubble),
        "held": [
            {
                "place": h.place.name, "weights": h.group, "state": h.state, "part": h.part, "dtype": h.dtype,
                "host": h.host, "elements": parseable(h.even), "elements_padded": parseable(h.padded), **amount(h.bytes),
            }
            for h in cost.held
        ],
        "transients": [
            {"place": t.place.name, "weights": t.group, "kind": t.kind, "unit": t.unit, "dtype": t.dtype, **amount(t.bytes)}
            for t in cost.transients
        ],
        "collectives": [
            {
                "places": [place.name for place in c.places], "weights": c.group, "what": c.what,
                "operation": c.operation, "axes": list(c.axes), "over": c.label, "dtype": c.dtype,
                "members": parseable(c.members), "message": amount(c.bytes), "times": times(c), "limit": amount(c.limit),
                **amount(c.sent),
            }
            for c in cost.collectives
        ],
        "places": [{"name": place.name, "axis": place.axis, "when": place.when} for place in cost.places],
        "notes": list(cost.notes),
    }  # fmt: skip


def render(costs: list[tuple[str, Cost]], version: str) -> str:
    """The costs of several specs, with the path of the file each is in."""
    import json

    specs = [{"path": path, **as_data(cost)} for path, cost in costs]
    return json.dumps({"schema": SCHEMA, "version": version, "specs": specs}, indent=2)


def _symbols(cost: Cost) -> list[str]:
    found: set[str] = set(cost.symbols) | {one.name for one in cost.parameters.free_symbols}
    for expr in (
        *(h.even for h in cost.held),
        *(t.bytes for t in cost.transients),
        *(c.sent for c in cost.collectives),
    ):
        found |= {one.name for one in expr.free_symbols}
    return sorted(found)


def _number(value: Fraction | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)
