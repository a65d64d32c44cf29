"""Costs as comma-separated values: one line for each quantity."""

from __future__ import annotations

import io
from collections.abc import Sequence

from placelogic.cost.json import parseable
from placelogic.cost.tables import tables
from placelogic.cost.totals import Cost
from placelogic.io import quoting

HEAD = ("spec", "table", "quantity", "value", "unit", "formula")


def render(costs: Sequence[Cost], per: str) -> str:
    """`quantity` joins what the columns of the text report say; `value` is empty where sizes are open."""
    import csv

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for cost in costs:
        name = quoting.csv(quoting.visible(cost.name))
        for table in tables(cost, per):
            for row in table.rows:
                value = cost.known(row.formula)
                shown = "" if value is None else int(value) if value.denominator == 1 else float(value)
                labels = quoting.csv("; ".join(filter(None, row.labels)))
                writer.writerow([name, table.title, labels, shown, row.unit, parseable(row.formula)])
    return out.getvalue()
