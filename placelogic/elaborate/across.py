"""What a spec with blocks says along an axis of stages: devices there have other layers, so no tensor is on two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct

from placelogic.elaborate.log import Log
from placelogic.elaborate.targets import Groups
from placelogic.layers.stages import used
from placelogic.program.block import Collective, Layers
from placelogic.program.ops import Axes, Origin
from placelogic.program.program import Layout, Split, Stages
from placelogic.source import Span

SENT = "what crosses between stages is sent from one to the next"

Layouts = Mapping[str, Mapping[str, Layout]]
"""Weights -> state -> how it lies."""


class _Line(Struct, frozen=True):
    """A statement about a tensor of a block along some axes, and what to do where they hold stages."""

    tensor: str
    block: str
    axes: Axes
    origin: Origin
    instead: str


def check_across(
    layers: Layers, groups: Groups, stages: Stages | None, splits: Sequence[Split], layouts: Layouts, log: Log
) -> None:
    """Logs collectives and boundaries of blocks, and activations, over an axis of stages (PL395), and layers that are
    dealt out over an axis of which nothing says that it holds stages (PL393).

    Random numbers may be said to be the same or different along stated stages: both are right, as no two of them
    draw for one tensor. Positions are those of whole sequences there, whatever is said."""
    known = {split.axis for split in splits} | ({stages.axis} if stages is not None else set())
    _check_named(layers, groups, known, layouts, log)
    lie: dict[str, Span] = {
        group.uses.axis: group.uses.span for group in reversed(groups.members) if group.uses is not None
    }
    if stages is not None:
        lie[stages.axis] = stages.span
    repeated = {block.name for block in layers.blocks if block.repeat is not None}
    for line in _lines(layers, stages):
        for axis in line.axes:
            if axis in lie:
                which = f"each layer of block `{line.block}`" if line.block in repeated else f"block `{line.block}`"
                log.add("PL395", f"the devices along {axis} are stages (line {lie[axis].line}): {which} has its "
                        f"`{line.tensor}` on one of them only", line.origin.span, f"leave {axis} out: {line.instead}")  # fmt: skip
    for group in groups.members:
        for axis in lie:
            cut = layouts[group.name]["activations"].cut(axis)
            if cut is not None and group.uses is None:
                log.add("PL395", f"the devices along {axis} are stages (line {lie[axis].line}): each layer with weights of "
                        f"`{group.name}` has its activations on one of them only", cut.origin.span,
                        f"cut them over another axis, and leave {axis} out")  # fmt: skip


def _lines(layers: Layers, stages: Stages | None) -> Iterator[_Line]:
    for block in layers.blocks:
        for op in block.operations:
            if isinstance(op, Collective):
                yield _Line(op.input, block.name, op.axes, op.origin, SENT)
    for line in layers.overrides:
        if line.block is not None:
            yield _Line(line.tensor, line.block, line.axes, line.origin, SENT)
    for drawn in layers.drawn:
        if stages is None or drawn.axis != stages.axis:
            instead = f"each stage draws for layers of its own; or say `stages over {drawn.axis}`"
            yield _Line(drawn.tensor, drawn.block, (drawn.axis,), drawn.origin, instead)


def _check_named(layers: Layers, groups: Groups, known: Set[str], layouts: Layouts, log: Log) -> None:
    """Who has some of the layers computes these only, which is what stages are. `known`: the axes of stages, and
    those that split the work, where each device needs all layers (FW01)."""
    mine = {name for block in layers.blocks for name in used(block)}
    for group in groups.members:
        for cut in layouts[group.name]["params"].cuts if group.name in mine else ():
            axis = next((axis for axis in cut.axes if axis not in known), None)
            if cut.letter == "S" and cut.dim in ("layer", "param") and axis is not None:
                what, stay = ("layers", f"say `stages over {axis}`, or ") if cut.dim == "layer" else ("tensors", "")
                log.add("PL393", f"each device along {axis} has some {what} of `{group.name}` only, and nothing says that stages "
                        "lie there: it is not known which device computes what", cut.origin.span,
                        f"{stay}gather them before use: `params gathered on {cut.dim}`")  # fmt: skip
