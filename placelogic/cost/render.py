"""The forms that costs are printed in."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic import __version__
from placelogic.cost.totals import Cost


def rendered(path: str, costs: Sequence[Cost], per: str, form: str, standalone: bool = False) -> str:
    """The costs of the specs of a file as one text. Nothing where there are none."""
    if not costs:
        return ""
    match form:
        case "text":
            from placelogic.cost.text import lines
            from placelogic.io.quoting import visible

            blocks = ["\n".join([visible(f"{path}: {one.name}"), *lines(one, per)]) for one in costs]
            return "\n\n".join(blocks) + "\n"
        case "json":
            from placelogic.cost.json import render

            return render([(path, one) for one in costs], __version__) + "\n"
        case "latex":
            from placelogic.cost import latex

            return (latex.document if standalone else latex.fragment)(costs, per) + "\n"
        case "markdown":
            from placelogic.cost import markdown

            return markdown.render(costs, per)
        case "csv":
            from placelogic.cost import csv

            return csv.render(costs, per)
        case "python":
            from placelogic.cost import python

            return python.render(costs, __version__)
        case _:
            raise ValueError(f"there is no format {form!r}")
