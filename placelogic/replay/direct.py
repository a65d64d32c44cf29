"""The direct way: an interpreter of the step program over real collectives. It does what the spec says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import torch
from msgspec import Struct, field

from placelogic.program.program import Program
from placelogic.replay.comms import Comms
from placelogic.replay.data import Setup
from placelogic.replay.job import Gap, Job, without_clip
from placelogic.replay.launch import LIMIT, Place, launch

Factors = tuple[float | None, ...]


class Run(Struct, frozen=True):
    """One optimizer on one mesh. `gaps`: per rank. `stops`: weights and why they cannot go on. `factors`:
    per rank, weights -> for each loss term, what it fed the optimizer in units of the single device's
    gradient, clipping left out: for all weights, or each of their matrices; None where that is no number. `sent`: per purpose and kind, bytes of one step on rank 0. `held`:
    per rank and state, bytes."""

    optimizer: str
    gaps: tuple[tuple[Gap, ...], ...]
    stops: tuple[tuple[str, str], ...]
    factors: tuple[Mapping[str, tuple[Factors, ...]], ...]
    sent: Mapping[tuple[str, str], int] = field(default_factory=dict)
    held: tuple[Mapping[str, int], ...] = ()
    elements: Mapping[str, int] = field(default_factory=dict)
    width: int = 8


class Task(Struct, frozen=True):
    """What to run in one go, with as many processes as the mesh has devices."""

    program: Program
    setup: Setup
    optimizers: tuple[str | None, ...] = ("sgd", "adam")


def run(tasks: Sequence[Task], place: Place = Place(), limit: float = LIMIT) -> list[list[Run]]:
    """Replay tasks whose meshes have equally many devices, on one set of processes. Raises ReplayFailed."""
    worlds = {prod(task.setup.sizes[a] for a in task.program.mesh.axes) for task in tasks}
    (world,) = worlds
    answers = launch(world, lambda rank: _rank(rank, world, tasks), place, limit)
    found = []
    for number, task in enumerate(tasks):
        runs = []
        for index, name in enumerate(task.optimizers):
            ranks = [answer[number][index] for answer in answers]
            runs.append(
                Run(
                    name or "spec",
                    tuple(rank["gaps"] for rank in ranks),
                    ranks[0]["stops"],
                    tuple(rank["factors"] for rank in ranks),
                    ranks[0]["sent"],
                    tuple(rank["held"] for rank in ranks),
                    ranks[0]["elements"],
                    torch.finfo(getattr(torch, place.dtype)).bits // 8,
                )
            )
        found.append(runs)
    return found


def _rank(rank: int, world: int, tasks: Sequence[Task]) -> list[list[dict[str, object]]]:
    found = []
    comms = Comms(rank, world)
    for task in tasks:
        runs = []
        for name in task.optimizers:
            comms.log.clear()
            job = Job(task.program, task.setup, comms, name)
            job.run(task.setup.steps)
            runs.append(
                {
                    "gaps": tuple(job.gaps),
                    "stops": job.stops,
                    "sent": dict(comms.log.bytes),
                    "held": job.held(),
                    "elements": {group.name: group.count for group in job.groups},
                    "factors": {name: (factor,) for name, factor in _factors(job.fed).items()},
                }
            )
        terms = range(len(task.program.work.losses))
        if task.program.clip is not None or len(terms) > 1:
            each = []
            for term in terms:
                bare = Job(without_clip(task.program), task.setup, comms, task.optimizers[0], term)
                bare.run(1)
                each.append(_factors(bare.fed))
            for one in runs:
                one["factors"] = {name: tuple(factors.get(name, ()) for factors in each) for name in each[0]}
        found.append(runs)
    return found


def _factors(fed: Mapping[str, Sequence[tuple[torch.Tensor, torch.Tensor]]]) -> dict[str, Factors]:
    """By how much each gradient is too large, where it is a multiple of the right one."""
    return {
        name: tuple(_factor(gradient, expected) for gradient, expected in pairs if bool(expected.any()))
        for name, pairs in fed.items()
    }


def _factor(gradient: torch.Tensor, expected: torch.Tensor) -> float | None:
    factor = float((gradient @ expected) / (expected @ expected))
    exact = 1e-9 if gradient.dtype is torch.float64 else 1e-4
    close = bool(((gradient - factor * expected).abs() <= exact * expected.abs().max()).all())
    return factor if close else None
