"""Decisions of the whole job in a script: clipping by the global norm, and skipping a step."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.program.program import GlobalNorm, Skip
from placelogic.replay.script.lines import NotShown
from placelogic.replay.script.section import Section
from placelogic.run.algebra import line_of
from placelogic.run.events import squares
from placelogic.run.step import Event


def clipped(clip: GlobalNorm, clipping: Sequence[Section], every: Sequence[Section], event: Event, out: list[str]) -> None:
    """`clipping`: the groups that have come to this."""
    first = True
    for section, found in squares(clip, every):
        axes = clip.listed.get(section.state.group.name, ((),))[0] if clip.listed is not None else None
        told = "each element once" if axes is None else "as this device has it"
        told = f"summed over {section.on.names.label(axes)}" if axes else told
        out.append(f"squares = {'' if first else 'squares + '}{found}  # {section.name}: {told}")
        first = False
    if first:
        raise NotShown("nothing is clipped")
    for section in clipping:
        buffer = section.content()
        if buffer is not None:
            why = f"clip by the global norm{line_of(event.op.origin)}"
            buffer.layers = [section.on.assign(a, f"{a.value} / (1 + squares.sqrt())", why) for a in buffer.layers]


def skipped(section: Section, every: Sequence[Section], event: Event, out: list[str]) -> None:
    """Each step looks at the gradients of all weights, over its own axes. All devices take part in that."""
    op, on = event.op, section.on
    assert isinstance(op, Skip)
    contents = [(other.on, buffer) for other in every if (buffer := other.content()) is not None]
    seen = [f"(~{o.values(b.summed(), b.local, b.usable)}.isfinite()).sum()" for o, b in contents]
    if not seen:
        return
    over = f"over {on.names.label(op.axes)}" if op.axes else "by each device"
    out.append(f"bad = {' + '.join(seen)}")
    found = on.added("bad", op.axes)
    out.append(f"{section.skip()} |= {found} > 0  # skip on overflow, seen {over}{line_of(op.origin)}")
