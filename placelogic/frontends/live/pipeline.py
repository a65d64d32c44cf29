"""Pipeline stages and schedules of torch.distributed.pipelining."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from torch import nn

from placelogic.frontends.live.axes import MeshAxes
from placelogic.frontends.live.found import Parameter, Pipeline
from placelogic.frontends.live.problems import refuse

SCHEDULES = {
    "ScheduleGPipe": "gpipe",
    "Schedule1F1B": "1f1b",
    "ScheduleInterleaved1F1B": "interleaved_1f1b",
    "ScheduleLoopedBFS": "looped_bfs",
    "ScheduleInterleavedZeroBubble": "interleaved_zero_bubble",
    "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipe_v",
}


class Given(Struct, frozen=True):
    """The modules that were passed, with the number of their stage, and the pipeline they are part of:
    its process group (None: there is none) and what the schedule says."""

    modules: tuple[tuple[nn.Module, int], ...]
    group: Any
    stages: int
    schedule: str | None
    microbatches: int | None
    divides: bool | None


def unpack(model: Any) -> Given:
    """`model`: a module, a pipeline stage or several, or a schedule. Raises SpecError (PL521, PL524)."""
    if isinstance(model, nn.Module):
        return Given(((model, 0),), None, 1, None, None, None)
    kind = type(model).__name__
    schedule, microbatches, divides = None, None, None
    if hasattr(model, "_n_microbatches") and hasattr(model, "step"):
        schedule = SCHEDULES.get(kind)
        if schedule is None:
            raise refuse("PL524", f"the schedule {kind} is not known", "known ones: " + ", ".join(SCHEDULES))
        microbatches, divides = model._n_microbatches, bool(model.scale_grads)
        model = model._stages if hasattr(model, "_stages") else model._stage
    stages = list(model) if isinstance(model, Iterable) else [model]
    if not stages or not all(hasattr(one, "submod") and hasattr(one, "stage_index") for one in stages):
        raise refuse("PL521", f"`model` is a {kind}, which is no module, no pipeline stage and no schedule",
                     "pass the model itself; for a pipeline its schedule, or its stages")  # fmt: skip
    modules = tuple((one.submod, one.stage_index) for one in stages)
    return Given(modules, stages[0].group, stages[0].num_stages, schedule, microbatches, divides)


def described(given: Given, axes: MeshAxes) -> Pipeline | None:
    """Raises SpecError (PL522)."""
    if given.group is None and given.stages == 1 and given.schedule is None:
        return None
    along = axes.of_group(given.group, "the pipeline")
    if not along:
        return None
    if len(along) > 1:
        raise refuse("PL522", f"the stages lie on several axes of the mesh: {', '.join(along)}", "give them one axis")
    return Pipeline(along[0], given.stages, given.schedule, given.microbatches, given.divides)


def gathered(parameters: list[Parameter], given: Given, pipeline: Pipeline) -> list[Parameter]:
    """The parameters of all stages: those of the other ranks are asked for. Raises SpecError (PL528)."""
    import torch.distributed as dist

    present = {stage for _, stage in given.modules}
    if present == set(range(pipeline.stages)):
        return parameters
    if dist.get_backend(given.group) != "fake":
        parts: list[Any] = [None] * dist.get_world_size(given.group)
        dist.all_gather_object(parts, (sorted(present), parameters), group=given.group)
        seen = {stage for stages, _ in parts for stage in stages}
        if seen == set(range(pipeline.stages)):
            every = [parameter for _, part in parts for parameter in part]
            return sorted(every, key=lambda parameter: parameter.stage)  # stable: as named within a stage
        present = seen
    missing = ", ".join(map(str, sorted(set(range(pipeline.stages)) - present)))
    raise refuse(
        "PL528", f"stages {missing} of {pipeline.stages} are not here, so their weights are not known",
        "under a fake process group pass a list of all stages, built in this process; else call from_torch on "
        "every rank",
    )  # fmt: skip
