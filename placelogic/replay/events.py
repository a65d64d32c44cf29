"""Where the job decides as one: clipping by the global norm, and skipping a step."""

from __future__ import annotations

import torch

from placelogic.program.program import Axes, GlobalNorm
from placelogic.replay.buffers import Buffer
from placelogic.replay.comms import Comms
from placelogic.replay.step import Runner
from placelogic.run.grid import Grid

NOTHING = -1.0
"""What a device sees of an element that it holds nothing of."""


def clip_factor(norm: torch.Tensor) -> torch.Tensor:
    """Clipping to norm 1, in a smooth form: it always acts, so a wrong norm always shows."""
    return 1 / (1 + norm)


def squared_norm(clip: GlobalNorm, runners: list[Runner], missing: float, comms: Comms, grid: Grid) -> torch.Tensor:
    """The squared norm as this rank sees it. `missing`: squares of groups that had to stop."""
    total = torch.tensor(float(missing))
    for runner in runners:
        buffer, group = runner.content(), runner.state.group
        own = _squares(buffer, clip.listed is None)
        if clip.listed is None:
            total = total + comms.everyone().all_reduce(own)
            continue
        axes: Axes = clip.listed[group.name][0] if group.name in clip.listed else ()
        comm = comms.among(grid.groups(axes)) if axes else None
        total = total + (own if comm is None else comm.all_reduce(own))
    return total


def _squares(buffer: Buffer | None, once: bool) -> torch.Tensor:
    """Squares of what this rank holds. `once`: each copy counts for its fraction."""
    if buffer is None:
        return torch.zeros(())
    x = buffer.comms.rank
    mine = buffer.mine()
    squares = buffer.summed()[mine].square()
    if once:
        copies = torch.zeros(buffer.group.count)
        for elements in buffer.usable:
            copies[elements] += 1
        squares = squares / copies[buffer.local[x][mine]]
    return squares.sum()


def skip_disagreement(runner: Runner, axes: Axes, comms: Comms, stepping: list[bool]) -> float:
    """How far devices that step together see different gradients of this group over `axes`: then an
    overflow can be seen by some and not by others."""
    buffer, group = runner.content(), runner.state.group
    view = torch.full((2, group.count), NOTHING)
    x = comms.rank
    if buffer is not None:
        elements = buffer.local[x][buffer.mine()]
        values = torch.sigmoid(buffer.summed()[buffer.mine()])
        view[0, elements] = values
        view[1, elements] = 1 - values
    comm = comms.among(group.grid.groups(axes)) if axes else None
    if comm is not None:
        view = comm.all_reduce(view, "max")
    views = comms.everyone().all_gather(view)
    # Only devices that update some weights decide anything; a process group decides for them.
    groups = group.grid.groups(axes) if axes else [[y] for y in range(group.grid.count)]
    deciding = [d for d in (next((y for y in members if stepping[y]), None) for members in groups) if d is not None]
    if buffer is None or len(deciding) < 2:
        return 0.0
    return max(float((views[y] - views[deciding[0]]).abs().max()) for y in deciding[1:])
