"""Costs as a Python module of vectorised functions, which needs NumPy and nothing else."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence

import sympy
from sympy.printing.pycode import PythonCodePrinter

from placelogic.cost.totals import Cost
from placelogic.io.quoting import python

NUMPY = "_np"
"""How the module calls NumPy: no size is named so."""


class _Printer(PythonCodePrinter):
    def __init__(self) -> None:
        super().__init__({"fully_qualified_modules": False})

    def _nested(self, function: str, expr: sympy.Expr) -> str:
        *firsts, last = map(self._print, expr.args)
        for part in reversed(firsts):
            last = f"{NUMPY}.{function}({part}, {last})"
        return last

    def _print_Max(self, expr: sympy.Max) -> str:
        return self._nested("maximum", expr)

    def _print_Min(self, expr: sympy.Min) -> str:
        return self._nested("minimum", expr)

    def _print_ceiling(self, expr: sympy.ceiling) -> str:
        return f"{NUMPY}.ceil({self._print(expr.args[0])})"

    def _print_floor(self, expr: sympy.floor) -> str:
        return f"{NUMPY}.floor({self._print(expr.args[0])})"

    def _print_Mod(self, expr: sympy.Mod) -> str:
        return f"{NUMPY}.mod({self._print(expr.args[0])}, {self._print(expr.args[1])})"

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        *cases, (otherwise, _) = expr.args
        text = self._print(otherwise)
        for value, condition in reversed(cases):
            text = f"{NUMPY}.where({self._print(condition)}, {self._print(value)}, {text})"
        return text


def render(costs: Sequence[Cost], version: str) -> str:
    """One function for each total of each spec; with several specs the names begin with theirs."""
    lines = [
        f'"""Memory and traffic of {", ".join(python(cost.name) for cost in costs)}, as derived by placelogic {version}.',
        "",
        "Bytes of one device, the worst or busiest, and step. Every argument is a size: a number, or a NumPy array,",
        'all of one shape or broadcast. Sizes that the spec fixes have that value as their default."""',
        "",
        f"import numpy as {NUMPY}",
    ]
    for cost in costs:
        prefix = f"{_identifier(cost.name)}_" if len(costs) > 1 else ""
        for name, meaning, expr in _totals(cost):
            lines += ["", "", *_function(cost, prefix + name, meaning, expr)]
    return "\n".join(lines) + "\n"


def _totals(cost: Cost) -> Iterator[tuple[str, str, sympy.Expr]]:
    memory, traffic = cost.memory, cost.traffic
    yield "memory_held", "Held through the step, shards dividing evenly.", memory.held
    yield "memory_held_padded", "Held through the step, shards rounded up.", memory.padded
    yield "memory_with_unit", "Held, and the gathered unit.", memory.with_unit
    yield "memory_peak", "Held, and the largest transient.", memory.peak
    yield "memory_peak_padded", "Held with shards rounded up, and the largest transient.", memory.peak_padded
    yield "memory_host", "Host memory for one device.", memory.host
    yield "traffic_sent", "Sent to other devices in a step.", traffic.sent
    yield "traffic_limit", "The same for many devices: (n - 1)/n is 1.", traffic.limit
    yield "traffic_intra_node", "Sent within a node.", traffic.intra
    yield "traffic_inter_node", "Sent to other nodes.", traffic.inter
    yield "traffic_host", "Moved to and from the host.", traffic.host
    if cost.bubble is not None:
        yield "bubble", "Idle time as a part of the ideal time.", cost.bubble


def _function(cost: Cost, name: str, meaning: str, expr: sympy.Expr) -> Iterator[str]:
    used = sorted(one.name for one in expr.free_symbols)
    printer = _Printer()
    arguments = "".join(f", {one}{f'={_default(cost, one)}' if one in cost.values else ''}" for one in used)
    yield f"def {name}({'*' if used else ''}{arguments}):"
    yield f'    """{meaning}"""'
    for one in used:
        yield f"    {one} = {NUMPY}.asarray({one}, dtype=float)"
    lines, rest = _rounded_first(expr, printer)
    yield from lines
    parts, (result,) = sympy.cse([rest], symbols=(sympy.Symbol(f"_x{i}") for i in range(10**6)), order="none")
    for left, right in parts:
        yield f"    {left} = {printer.doprint(right)}"
    yield f"    return {printer.doprint(result)}"


def _rounded_first(expr: sympy.Expr, printer: _Printer) -> tuple[list[str], sympy.Expr]:
    """What is rounded is computed first, as one division of whole numbers: a product with a reciprocal
    could come out just above a whole number, and be rounded to the next."""
    lines: list[str] = []
    while True:
        inner = [c for c in expr.atoms(sympy.ceiling, sympy.floor, sympy.Mod) if not _rounding(c.args)]
        if not inner:
            return lines, expr
        replaced = {}
        for one in sorted(inner, key=str):
            name = sympy.Symbol(f"_r{len(lines)}")
            lines.append(f"    {name} = {_rounded(one, printer)}")
            replaced[one] = name
        expr = expr.xreplace(replaced)


def _rounding(parts: Sequence[sympy.Expr]) -> bool:
    return any(part.has(sympy.ceiling, sympy.floor, sympy.Mod) for part in parts)


def _rounded(expr: sympy.Expr, printer: _Printer) -> str:
    if isinstance(expr, sympy.Mod):
        return printer.doprint(expr)
    above, below = map(printer.doprint, expr.args[0].as_numer_denom())
    function = "ceil" if isinstance(expr, sympy.ceiling) else "floor"
    return f"{NUMPY}.{function}(({above})/({below}))"


def _default(cost: Cost, name: str) -> str:
    value = cost.values[name]
    return str(value) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _identifier(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{text}" if not text or text[0].isdigit() or keyword.iskeyword(text) else text
