"""Costs as plain lines: formulas, and numbers in units that say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import sympy
from sympy.printing.str import StrPrinter

from placelogic.cost.tables import Row, Table, tables
from placelogic.cost.totals import Cost

DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
EXAMPLES = {"batch": 64, "sequence": 8192}
BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


class _Printer(StrPrinter):
    """Cases read as a sentence: `A if pp = 1 else B`."""

    def _print_Piecewise(self, expr: sympy.Piecewise) -> str:
        parts = []
        for value, condition in expr.args:
            text = self._print(value)
            parts.append(text if condition is sympy.true else f"{text} if {self._print(condition)} else ")
        return f"({''.join(parts)})"

    def _print_Relational(self, expr: sympy.core.relational.Relational) -> str:
        left, right = self._print(expr.lhs), self._print(expr.rhs)
        return f"{left} {'=' if isinstance(expr, sympy.Eq) else expr.rel_op} {right}"

    def _print_Max(self, expr: sympy.Max) -> str:
        return f"max({', '.join(map(self._print, expr.args))})"

    def _print_Min(self, expr: sympy.Min) -> str:
        return f"min({', '.join(map(self._print, expr.args))})"

    def _print_ceiling(self, expr: sympy.ceiling) -> str:
        return f"ceil({self._print(expr.args[0])})"


def formula(expr: sympy.Expr) -> str:
    return _Printer().doprint(expr)


def human(value: Fraction, unit: str) -> str:
    """`1.875 GB (1.746 GiB)`: GB is 1e9 bytes, GiB is 2**30."""
    if unit == "share":
        return f"{float(100 * value):.4g} %"
    if unit == "seconds":
        return f"{float(value):.4g} s" if value >= 1 or value == 0 else f"{float(1000 * value):.4g} ms"
    if unit == "parameters":
        return f"{_scaled(value, 1000, ('', ' thousand', ' million', ' billion', ' trillion'))}"
    if value < 1000:
        return f"{_plain(value)} B"
    return f"{_scaled(value, 1000, DECIMAL)} ({_scaled(value, 1024, BINARY)})"


def told_apart(one: Fraction, other: Fraction) -> tuple[str, str]:
    """Two numbers of bytes, in full where they would read the same and are not."""
    rounded = human(one, "bytes"), human(other, "bytes")
    if one == other or rounded[0] != rounded[1]:
        return rounded
    return _in_full(one), _in_full(other)


def _in_full(value: Fraction) -> str:
    return f"{value.numerator:,} B" if value.denominator == 1 else f"{value.numerator:,}/{value.denominator:,} B"


def _scaled(value: Fraction, step: int, names: Sequence[str]) -> str:
    power = 0
    while value >= step and power + 1 < len(names):
        value, power = value / step, power + 1
    # 999.96 of a unit would print as 1000
    if float(f"{float(value):.4g}") >= step and power + 1 < len(names):
        value, power = value / step, power + 1
    name = names[power]
    return f"{_plain(value)}{'' if name.startswith(' ') or not name else ' '}{name}"


def _plain(value: Fraction) -> str:
    return str(value) if value.denominator == 1 and value < 10000 else f"{float(value):.4g}"


def lines(cost: Cost, per: str = "rank") -> Iterator[str]:
    """The report on one spec, without its name."""
    sizes = ", ".join(f"{name} = {_size(value)}" for name, value in cost.values.items())
    if sizes:
        yield f"sizes: {sizes}"
    parameters = cost.known(cost.parameters)
    if parameters is None:
        yield f"parameters: {formula(cost.parameters)}"
    else:
        yield f"parameters: {human(parameters, 'parameters')}"
    for table in tables(cost, per):
        yield ""
        yield from table_lines(cost, table)
    yield ""
    if lacking := _lacking(cost, per):
        names = ", ".join(lacking)
        example = ",".join(f"{name}={EXAMPLES.get(name, 8)}" for name in lacking)
        are = "is" if len(lacking) == 1 else "are"
        yield f"note: a formula has no number while {names} {are} open; give sizes with --at, as in --at {example}"
    for note in cost.notes:
        yield f"note: {note}"


def _lacking(cost: Cost, per: str) -> list[str]:
    """The open sizes of a spec that fixes some: where none is fixed, formulas are what is asked for."""
    if not cost.values:
        return []
    rows = [row for table in tables(cost, per) for row in table.rows]
    return sorted({one.name for row in rows for one in cost.at(row.formula).free_symbols})


def table_lines(cost: Cost, table: Table) -> Iterator[str]:
    yield table.title
    rows = [cells for row in table.rows for cells in _cells(cost, row)]
    if any(table.columns):
        rows.insert(0, (*table.columns, "bytes", ""))
    yield from _aligned(rows)


def _cells(cost: Cost, row: Row) -> Iterator[tuple[str, ...]]:
    """One line; two where there may be only one stage."""
    value = cost.known(row.formula)
    if value is None and isinstance(row.formula, sympy.Piecewise):
        *labels, last = row.labels
        for part, condition in reversed(row.formula.args):
            when = "" if condition is sympy.true else f", {formula(condition)}"
            yield (*labels, f"{last}{when}", "", formula(part))
        return
    yield _line(row, value)


def _line(row: Row, value: Fraction | None) -> tuple[str, ...]:
    number = "" if value is None else human(value, row.unit)
    text = "" if row.formula.is_number and number else formula(row.formula)
    return (*row.labels, number, text)


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns that are empty throughout are left out."""
    kept = [i for i in range(len(rows[0])) if any(row[i] for row in rows)] if rows else []
    widths = {i: max(len(row[i]) for row in rows) for i in kept}
    for row in rows:
        yield ("  " + "  ".join(row[i].ljust(widths[i]) for i in kept)).rstrip()


def _size(value: Fraction) -> str:
    return str(value)
