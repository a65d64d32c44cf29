"""Decisions of the whole job in a script: clipping by the global norm, and skipping a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placelogic.program.program import Axes, Clip, GlobalNorm, Skip
from placelogic.replay.script.layout import Shape, places, same
from placelogic.replay.script.lines import NotShown, by_device, line_of
from placelogic.replay.script.section import Content, Section


def decided(
    clip: GlobalNorm | None, op: Clip | Skip, deciding: Sequence[Content], every: Sequence[Content]
) -> Iterator[str]:
    """`deciding`: groups that have come to this; `every`: what all groups have at this point."""
    if isinstance(op, Skip):
        for section, _, _ in deciding:
            yield from _skip(section, op, every)
    elif clip is not None:
        yield from _norm(clip, every)
        for _, on, shape in deciding:
            if shape is not None:
                yield f"{on} = {on} / (1 + squares.sqrt())  # clip by the global norm{line_of(op.origin)}"


def _norm(clip: GlobalNorm, every: Sequence[Content]) -> Iterator[str]:
    first = True
    for section, on, shape in every:
        if shape is None:
            continue
        layout, grid = section.layout, section.layout.group.grid
        usable, values = layout.usable(shape), _values(section, on, shape)
        if clip.listed is None:
            copies = [[sum(e in array for array in usable) for e in mine] for mine in usable]
            counts = {count for row in copies for count in row}
            share = "" if counts == {1} else f" / torch.tensor({by_device(copies)})"
            squares, axes, told = f"({values} ** 2{share}).sum()", tuple(grid.axes), "each element once"
        else:
            axes = clip.listed[section.name][0] if section.name in clip.listed else ()
            squares = f"({values} ** 2).sum()"
            told = f"summed over {section.names.label(axes)}" if axes else "as this device has it"
        yield f"squares = {'' if first else 'squares + '}{_added(section, squares, axes)}  # {section.name}: {told}"
        first = False
    if first:
        raise NotShown("nothing is clipped")


def _skip(section: Section, op: Skip, every: Sequence[Content]) -> Iterator[str]:
    """Each step looks at the gradients of all weights, over its own axes. All devices take part in that."""
    seen = [f"(~{_values(other, on, shape)}.isfinite()).sum()" for other, on, shape in every if shape is not None]
    if not seen:
        return
    over = f"over {section.names.label(op.axes)}" if op.axes else "by each device"
    yield f"bad = {' + '.join(seen)}"
    yield f"{section.skip()} |= {_added(section, 'bad', op.axes)} > 0  # skip on overflow, seen {over}{line_of(op.origin)}"


def _values(section: Section, on: str, shape: Shape) -> str:
    """What there is a value of."""
    held, usable = section.layout.held(shape), section.layout.usable(shape)
    found = places(usable, held)
    return on if same(found, held) else f"{on}[{by_device(found)}]"


def _added(section: Section, value: str, axes: Axes) -> str:
    """Over all devices along these axes, whether they hold the weights or not."""
    grid = section.layout.group.grid
    name = section.names.group(axes, grid.groups(axes)) if axes else None
    if name is None:
        return value
    section.names.use("add")
    return f'add({value}, "{name}")'
