"""What a spec without blocks says of the gradient that reaches some weights, as lines of a script.

Backward is linear in what arrives, so it is done to the gradients of the weights, as the simulator does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placelogic.program.expr import show
from placelogic.replay.script.lines import line_of, times

if TYPE_CHECKING:
    from placelogic.replay.script.section import Section


def arrived(section: Section) -> Iterator[str]:
    """To the fresh gradient of a micro-batch. What is sliced was computed from pieces already."""
    group, names = section.layout.group, section.names
    for line in section.arriving:
        where = line_of(line.origin)
        for axis in line.axes if line.by in ("sum", "mean") else ():
            name = names.group((axis,), group.groups((axis,)))
            if name is not None:
                names.use("add")
                share = f" / {group.grid.size[axis]}" if line.by == "mean" else ""
                yield f'fresh = add(fresh, "{name}"){share}  # backward over {axis} by {line.by}{where}'
        if line.by == "zero":
            yield f"fresh = 0 * fresh  # backward by zero{where}"
        elif line.scale is not None:
            yield f"fresh = {times(section.number(line.scale))}fresh  # backward, scale {show(line.scale)}{where}"
