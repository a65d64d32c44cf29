"""Costs in LaTeX: a booktabs table, displayed formulas, or a whole document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy

from placelogic.cost.letters import Writer
from placelogic.cost.tables import Row, Table, tables
from placelogic.cost.text import human
from placelogic.cost.totals import Cost
from placelogic.io import quoting

TERMS_PER_LINE = 4


def writer(cost: Cost) -> Writer:
    return Writer(cost.axes)


def fragment(costs: Sequence[Cost], per: str) -> str:
    """Tables and formulas of each spec. The document needs booktabs, amsmath and amssymb."""
    return "\n".join(line for cost in costs for line in _one(cost, per))


def document(costs: Sequence[Cost], per: str) -> str:
    """A document that compiles on its own."""
    head = [
        r"\documentclass{article}",
        r"\usepackage[margin=2cm,landscape]{geometry}",
        r"\usepackage{amsmath,amssymb,booktabs}",
        r"\begin{document}",
    ]
    return "\n".join([*head, fragment(costs, per), r"\end{document}"])


def _one(cost: Cost, per: str) -> Iterator[str]:
    write = writer(cost)
    yield rf"\subsection*{{{quoting.latex(cost.name)}}}"
    if cost.values:
        sizes = ", ".join(f"{write.doprint(sympy.Symbol(name))} = {value}" for name, value in cost.values.items())
        yield rf"Sizes: ${sizes}$."
        yield ""
    for table in tables(cost, per):
        yield rf"\paragraph{{{quoting.latex(table.title)}}}"
        yield ""
        yield from _table(cost, table, write)
        long = [row for row in table.rows if not _short(row.formula)]
        if long:
            yield from _displayed(long, write)
    yield r"\begin{itemize}"
    yield from (rf"\item {quoting.latex(note)}" for note in cost.notes)
    yield r"\end{itemize}"


def _short(expr: sympy.Expr) -> bool:
    """Whether a formula fits into a line of a table."""
    return not expr.has(sympy.Piecewise, sympy.Max) and len(sympy.Add.make_args(expr)) <= TERMS_PER_LINE


def _table(cost: Cost, table: Table, write: Writer) -> Iterator[str]:
    """A long formula is displayed below the table."""
    values = [cost.known(row.formula) for row in table.rows]
    columns = list(table.columns if any(table.columns) else ["quantity"])
    if known := any(value is not None for value in values):
        columns.append("value")
    columns.append("formula")
    yield rf"\begin{{tabular}}{{{'l' * len(columns)}}}"
    yield r"\toprule"
    yield " & ".join(map(quoting.latex, columns)) + r" \\"
    yield r"\midrule"
    for row, value in zip(table.rows, values, strict=True):
        cells = [*map(quoting.latex, row.labels)]
        if known:
            cells.append("" if value is None else quoting.latex(human(value, row.unit)))
        cells.append(rf"$\displaystyle {write.doprint(row.formula)}$" if _short(row.formula) else "below")
        yield " & ".join(cells) + r" \\[0.5ex]"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _displayed(rows: Sequence[Row], write: Writer) -> Iterator[str]:
    """One formula each, a long sum over several lines."""
    for row in rows:
        yield r"\begin{align*}"
        yield from _equation(row, write)
        yield r"\end{align*}"


def _equation(row: Row, write: Writer) -> Iterator[str]:
    name = rf"\text{{{quoting.latex(' '.join(row.labels))}}}"
    if not row.formula.is_Add or len(row.formula.args) <= TERMS_PER_LINE:
        yield f"{name} &= {write.doprint(row.formula)}"
        return
    terms = row.formula.as_ordered_terms()
    for start in range(0, len(terms), TERMS_PER_LINE):
        part = write.doprint(sympy.Add(*terms[start : start + TERMS_PER_LINE], evaluate=False))
        sign = "" if start == 0 or part.startswith("-") else "+ "
        lead = f"{name} &= " if start == 0 else r"&\quad "
        more = r" \\" if start + TERMS_PER_LINE < len(terms) else ""
        yield f"{lead}{sign}{part}{more}"
