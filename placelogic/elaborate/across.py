"""What blocks say along an axis of stages: devices there hold other layers, so no tensor is on two of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placelogic.elaborate.log import Log
from placelogic.elaborate.targets import Groups
from placelogic.program.block import Collective, Layers
from placelogic.program.ops import Axes, Origin
from placelogic.program.program import Stages
from placelogic.source import Span

SENT = "what crosses between stages is sent from one to the next"
DRAWN = "each stage draws for layers of its own"


@dataclass(frozen=True, slots=True)
class _Line:
    """A statement about a tensor of a block, along some axes, and what is so along stages instead."""

    tensor: str
    block: str
    axes: Axes
    instead: str
    origin: Origin


def check_across(layers: Layers, groups: Groups, stages: Stages | None, log: Log) -> None:
    """Logs collectives, boundaries and random numbers over an axis of stages (PL395), whether `stages over` or
    `used on` says that it is one. Positions are those of whole sequences there, whatever is said."""
    lie: dict[str, Span] = {group.uses.axis: group.uses.span for group in reversed(groups.members) if group.uses is not None}
    if stages is not None:
        lie[stages.axis] = stages.span
    for line in _lines(layers):
        for axis in line.axes:
            if axis in lie:
                log.add("PL395", f"the devices along {axis} are stages (line {lie[axis].line}), and `{line.tensor}` of a layer "
                        f"of block `{line.block}` is on one of them only", line.origin.span,
                        f"leave {axis} out: {line.instead}")  # fmt: skip


def _lines(layers: Layers) -> Iterator[_Line]:
    for block in layers.blocks:
        for op in block.operations:
            if isinstance(op, Collective):
                yield _Line(op.input, block.name, op.axes, SENT, op.origin)
    for override in layers.overrides:
        if override.block is not None:
            yield _Line(override.tensor, override.block, override.axes, SENT, override.origin)
    for drawn in layers.drawn:
        yield _Line(drawn.tensor, drawn.block, (drawn.axis,), DRAWN, drawn.origin)
