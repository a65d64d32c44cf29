"""Pieces of the text report: notes under a finding, wrapped lines, counterexamples as tables."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from placelogic.io.quoting import visible
from placelogic.report.diagnostic import Counterexample
from placelogic.report.layout import Line, Style, table, wrap

EXCERPT_WIDTH = 120
"""How much of a long source line is shown where there is no terminal to measure."""

_ROWS_SHOWN = 8


class Look(Struct, frozen=True):
    """`width`: columns of the terminal, None when the output goes elsewhere."""

    width: int | None = None
    quiet: bool = False
    verbose: bool = False

    @property
    def excerpt(self) -> int:
        return EXCERPT_WIDTH if self.width is None else max(self.width, 40)


def counterexample_lines(gutter: int, example: Counterexample, look: Look) -> list[Line]:
    sizes = {**example.mesh, **example.quantities}
    shown = [f"{name} = {value}" for name, value in sizes.items() if value != 1]
    rest = " (everything else 1)" if len(shown) < len(sizes) else ""
    lines = note_lines(gutter, "smallest counterexample", ", ".join(shown) + rest if shown else "every size 1", look)
    if not example.devices:
        return [*lines, *_simulated(gutter, example, look)]
    rows = [(_device(row.device, example.mesh), row.applies, row.single) for row in example.devices]
    hidden = len(rows) - _ROWS_SHOWN if len(rows) > _ROWS_SHOWN else 0
    margin = " " * (gutter + 5)
    room = None if look.width is None else look.width - len(margin)
    for part in table(("device", "applies", "single device"), rows[: len(rows) - hidden], room):
        lines.append(((margin + part, ""),))
    if hidden:
        lines.append(((f"{margin}and {count(hidden, 'more device')}", ""),))
    return [*lines, *_simulated(gutter, example, look)]


def _simulated(gutter: int, example: Counterexample, look: Look) -> list[Line]:
    if example.simulated is None:
        return []
    small = ", ".join(f"{name} = {value}" for name, value in example.simulated.items() if value != 1)
    return note_lines(gutter, "simulated", f"the same step in small ({small}), as this mesh is too large", look)


def _device(coordinates: Mapping[str, int], sizes: Mapping[str, int]) -> str:
    """The coordinates that tell devices apart: along axes of size one there is nothing to tell."""
    several = {axis: at for axis, at in coordinates.items() if sizes.get(axis, 2) > 1} or coordinates
    return " ".join(f"{axis}={at}" for axis, at in several.items()) or "every device"


def note_lines(gutter: int, name: str, text: str, look: Look) -> list[Line]:
    margin = " " * (gutter + 1)
    room = None if look.width is None else max(look.width - len(margin) - 2, 20)
    first, *rest = wrap(visible(f"{name}: {text}"), room)
    head: Line = ((f"{margin}= ", "gutter"), (first, ""))
    return [head, *(((f"{margin}  {part}", ""),) for part in rest)]


def wrapped(text: str, look: Look, indent: str = "", style: Style = "") -> list[Line]:
    room = None if look.width is None else max(look.width - len(indent) - 2, 20)
    parts = wrap(visible(text), room)
    return [((indent + ("  " if i else "") + part, style),) for i, part in enumerate(parts)]


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
