"""Costs as Markdown tables, with formulas in dollar signs as GitHub and notebooks render them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placelogic.cost.latex import writer
from placelogic.cost.letters import Writer
from placelogic.cost.tables import Row, tables
from placelogic.cost.text import human
from placelogic.cost.totals import Cost
from placelogic.io.quoting import markdown


def render(costs: Sequence[Cost], per: str) -> str:
    return "\n".join(line for cost in costs for line in _one(cost, per))


def _one(cost: Cost, per: str) -> Iterator[str]:
    write = writer(cost)
    yield f"## {markdown(cost.name)}"
    yield ""
    if cost.values:
        yield "Sizes: " + ", ".join(f"`{name}` = {value}" for name, value in cost.values.items())
        yield ""
    for table in tables(cost, per):
        yield f"### {table.title[:1].upper()}{table.title[1:]}"
        yield ""
        columns = [*(table.columns if any(table.columns) else ("quantity",)), "value", "formula"]
        yield f"| {' | '.join(columns)} |"
        yield f"|{'---|' * len(columns)}"
        yield from (_line(cost, row, write) for row in table.rows)
        yield ""
    for note in cost.notes:
        yield f"- {markdown(note)}"
    yield ""


def _line(cost: Cost, row: Row, write: Writer) -> str:
    value = cost.known(row.formula)
    number = "" if value is None else human(value, row.unit)
    labels = map(markdown, row.labels)
    return f"| {' | '.join([*labels, number, f'${write.doprint(row.formula)}$'])} |"
