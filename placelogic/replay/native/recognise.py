"""Which shipped component does what a program says, axis by axis; or why none does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from placelogic.program.catalog import Needs
from placelogic.program.expr import evaluate, show
from placelogic.program.program import Accumulate as Add
from placelogic.program.program import (
    Clip,
    FetchParams,
    GatherParams,
    Layout,
    Loop,
    OffloadGradients,
    Program,
    Reduce,
    Refresh,
    Scale,
    Update,
    Weights,
    flat,
)
from placelogic.run.grid import Grid
from placelogic.run.work import Work

Role = Literal["replicate", "zero1", "shard", "tensor", "stages", "context", "experts", "idle"]

SCHEDULES = {
    "gpipe": "ScheduleGPipe",
    "1f1b": "Schedule1F1B",
    "interleaved_1f1b": "ScheduleInterleaved1F1B",
    "looped_bfs": "ScheduleLoopedBFS",
    "interleaved_zero_bubble": "ScheduleInterleavedZeroBubble",
    "zbv": "ScheduleZBVZeroBubble",
    "dualpipe_v": "ScheduleDualPipeV",
}
"""Of torch.distributed.pipelining."""


class Native(Struct, frozen=True):
    """What each axis does, and how. `sequence`: tensor parallelism cuts the activations of norms too.
    `reshard`: of FSDP. `chunks`: stages per device. `clip`: gradients, by their global norm. `tied`: the embedding
    is the output matrix too. `master`: parameters are wider than what is computed with. `offload`: states lie on
    the host."""

    roles: Mapping[str, Role]
    sizes: Mapping[str, int]
    sequence: bool
    reshard: bool | int
    schedule: str | None
    vee: bool
    chunks: int
    microbatches: int
    clip: bool = False
    tied: bool = False
    master: bool = False
    offload: bool = False

    def size(self, role: Role) -> int:
        return next((self.sizes[axis] for axis, found in self.roles.items() if found == role), 1)

    @property
    def name(self) -> str:
        """The components, as people call them."""
        has = set(self.roles.values())
        parts = []
        if "stages" in has:
            parts.append(f"pipelining ({SCHEDULES[self.schedule or 'gpipe']})")
        if "shard" in has:
            fsdp = "FSDP2, hybrid" if "replicate" in has else "FSDP2"
            policies = {"MixedPrecisionPolicy": self.master, "CPUOffloadPolicy": self.offload}
            told = " and ".join(name for name, on in policies.items() if on)
            parts.append(fsdp + (f" with {told}" if told else ""))
        elif self.replicated:
            parts.append("replicate of FSDP2")
        elif "replicate" in has:
            parts.append("DistributedDataParallel")
        if "zero1" in has:
            parts.append("ZeroRedundancyOptimizer")
        if "tensor" in has:
            parts.append("DTensor tensor parallelism" + (" with sequence parallelism" if self.sequence else ""))
        if "context" in has:
            parts.append("attention over sequence shares (all-gather, ring, Ulysses)")
        if "experts" in has:
            parts.append("experts with uneven all-to-all")
        if self.tied and "stages" in has:
            parts.append("tied ends summed by this package")
        if self.clip:
            own = has & {"stages", "experts"}
            parts.append("clip_grad_norm_" + (", its norm summed by this package" if own else ""))
        return " x ".join(parts)

    @property
    def replicated(self) -> bool:
        """By the replicate of FSDP2: DistributedDataParallel takes no DTensors, and fails under most schedules."""
        has = set(self.roles.values())
        return "replicate" in has and "shard" not in has and bool(has & {"tensor", "stages"})


class NoComponent(Exception):
    """No component does this; the message says what is in the way."""


def recognise(program: Program, sizes: Mapping[str, int], quantities: Mapping[str, int]) -> Native:
    """Raises NoComponent."""
    _plain(program)
    roles = {axis: _role(program, axis) for axis in program.mesh.axes}
    if any(size > 1 for size in sizes.values()):
        # One device along an axis does nothing there; alone it stands for the axis.
        roles = {axis: role if sizes[axis] > 1 else "idle" for axis, role in roles.items()}
    found = [role for role in roles.values() if role != "idle"]
    several = {role for role in found if found.count(role) > 1}
    if several:
        raise NoComponent(f"several axes do the same ({', '.join(sorted(several))})")
    together = set(found)
    if not together:
        raise NoComponent("nothing is parallel")
    for alone in ("zero1", "context", "experts"):
        if alone in together and len(together) > 1:
            raise NoComponent(f"{_WORDS[alone]} is run as a component on its own only")
    master, offload, tied = _master(program, together), _offload(program, together), _tied(program, together)
    work = Work(program, Grid(program.mesh.axes, sizes), quantities, None, 1)
    stages = program.stages
    reshard = _reshard(program, work) if "shard" in together else True
    chunks = int(work.value(stages.chunks)) if stages is not None else 1
    schedule = stages.schedule if stages is not None else None
    if schedule is not None and schedule not in SCHEDULES:
        raise NoComponent(f"torch has no schedule for {schedule}")
    if stages is not None and not stages.vee and schedule not in ("gpipe", "1f1b"):
        chunks = max(chunks, 2)
    if "stages" not in together:
        stages, schedule, chunks = None, None, 1
    sequence = any(w.activations.cut(axis) for w in program.weights for axis, role in roles.items() if role == "tensor")
    native = Native(
        roles, sizes, sequence, reshard, schedule, stages is not None and stages.vee,
        2 if stages is not None and stages.vee else chunks, work.microbatches,
        program.clip is not None, tied, master, offload,
    )  # fmt: skip
    if native.clip and "tensor" in together and not sequence:
        raise NoComponent(
            "clip_grad_norm_ raises where some gradients are DTensors of one mesh and others are not, as those of "
            "norms under tensor parallelism without sequence parallelism"
        )
    if native.size("tensor") > 8 or native.size("stages") * native.chunks > 8:
        raise NoComponent("the small transformer has at most 8 heads and 8 layers")
    return native


_WORDS = {"zero1": "ZeRO stage 1", "context": "context parallelism", "experts": "expert parallelism"}


def _plain(program: Program) -> None:
    """What would not be seen by a component that knows nothing of the spec."""
    work = program.work
    if len(work.losses) > 1 or not work.losses[0].mean or work.objective != "mean":
        raise NoComponent("components average one mean loss")
    if work.losses[0].over or work.losses[0].microbatches or not work.tokens_even:
        raise NoComponent("components divide by the tokens of a device and micro-batch")
    if work.feeds:
        raise NoComponent("the loader is stated")
    for w in program.weights:
        layouts = (w.params, w.optimizer_state, w.gradients, w.activations)
        if w.frozen or w.init or w.random:
            raise NoComponent(f"`{w.name}` has frozen weights, starts or random streams of its own")
        if any(layout.materialized for layout in layouts):
            raise NoComponent(f"`{w.name}` has states that are not kept")
        if w.optimizer.needs is not Needs.ELEMENT:
            raise NoComponent(f"{w.optimizer.name} needs more than one element")
    for step in program.steps:
        for op in flat(step.ops):
            if not isinstance(op, _KNOWN) or getattr(op, "buffer", None):
                raise NoComponent(f"the step of `{step.weights}` has operations that no component has")
        for loop in step.ops:
            if isinstance(loop, Loop) and loop.subset != "each":
                raise NoComponent(f"the step of `{step.weights}` treats some micro-batches differently")
            if isinstance(loop, Loop) and any(isinstance(op, Clip) for op in loop.body):
                raise NoComponent(f"the step of `{step.weights}` clips every micro-batch")


_KNOWN = (Add, Reduce, GatherParams, Update, Scale, Clip, Refresh, OffloadGradients, FetchParams)


def _master(program: Program, roles: set[Role]) -> bool:
    found = {w.master for w in program.weights}
    if True not in found:
        return False
    if found != {True} or "shard" not in roles or not roles <= {"shard", "replicate"}:
        raise NoComponent(
            "master copies are those of FSDP2 (MixedPrecisionPolicy), run without other parallelism, for all weights: "
            "its sharded parameters are the master copy"
        )
    return True


def _offload(program: Program, roles: set[Role]) -> bool:
    hosts = [(w.params.host, w.optimizer_state.host, w.gradients.host) for w in program.weights]
    if not any(host for row in hosts for host in row):
        return False
    if not all(host for row in hosts for host in row) or not roles <= {"shard", "replicate"} or "shard" not in roles:
        raise NoComponent(
            "torch offloads parameters, gradients and optimizer states together (CPUOffloadPolicy of FSDP2), "
            "and nothing less"
        )
    return True


def _tied(program: Program, roles: set[Role]) -> bool:
    if not any(w.uses is not None and w.uses.first and w.uses.last for w in program.weights):
        return False
    if "tensor" in roles and not {"stages", "shard"} <= roles or "experts" in roles:
        raise NoComponent("tied weights are one tensor, or the ends of a pipeline that FSDP2 or one device has")
    return True


def _letters(weights: Weights, axis: str) -> tuple[str, str, str]:
    def letter(layout: Layout) -> str:
        cut = layout.cut(axis)
        if cut is not None and len(cut.axes) > 1:
            raise NoComponent("a state is cut over a product of axes")
        return cut.letter if cut is not None else "R"

    return letter(weights.params), letter(weights.optimizer_state), letter(weights.gradients)


def _role(program: Program, axis: str) -> Role:
    ways = {weights.name: _letters(weights, axis) for weights in program.weights}
    split = next((split for split in program.work.splits if split.axis == axis), None)
    same = set(ways.values())
    if split is None:
        if program.stages is not None and program.stages.axis == axis:
            return "stages"
        return _unsplit(program, axis, ways)
    if any(axis in weights.routed for weights in program.weights):
        return "experts"
    if split.dim == "sequence" and same == {("R", "R", "R")}:
        return "context"
    if split.dim == "batch" and len(same) == 1:
        match same.pop():
            case ("R", "R", "R"):
                return "replicate"
            case ("R", "S", "R"):
                return "zero1"
            case ("S*", "S", "S"):
                return "shard"
            case ("R", "S", "S"):
                raise NoComponent("torch has no component with whole params and sharded gradients (ZeRO stage 2)")
    raise NoComponent(f"no component places states over {axis} like this")


def _unsplit(program: Program, axis: str, ways: Mapping[str, tuple[str, str, str]]) -> Role:
    if set(ways.values()) == {("R", "R", "R")}:
        raise NoComponent(f"nothing happens along {axis}")
    for weights in program.weights:
        cut = ways[weights.name]
        if weights.kind in ("vector", "router", "latent"):
            fine = cut == ("R", "R", "R")
            acts = weights.activations.cut(axis)
            fine = fine and (acts is None or acts.dim == "sequence")
        else:
            fine = cut == ("S", "S", "S") and not weights.routed
        if not fine:
            raise NoComponent(f"DTensor has no plan that places `{weights.name}` over {axis} like this")
    return "tensor"


def _reshard(program: Program, work: Work) -> bool | int:
    stated = {weights.params.reshard for weights in program.weights}
    if len(stated) > 1:
        raise NoComponent("weights are resharded differently")
    value = stated.pop()
    if value is None:
        return True
    try:
        return int(evaluate(value, work.env))
    except KeyError:
        return show(value) != "false"
