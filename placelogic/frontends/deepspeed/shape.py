"""Sizes of a DeepSpeed run, and the checks that DeepSpeedConfig makes of them."""

from __future__ import annotations

from msgspec import Struct

from placelogic.files import whole
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.request import Request
from placelogic.problem import Problem, SpecError

Z = "zero_optimization"


class Shape(Struct, frozen=True):
    """Sizes, None where they are open. `hf`: the Trainer fills in "auto". `mics`: devices of a MiCS group, 0 for none."""

    stage: Setting
    tp: Setting
    sp: Setting
    pp: Setting
    ep: Setting
    dp: int | None
    hf: bool
    mics: int


def shape_of(config: Config, request: Request) -> Shape:
    """Read the sizes. Raises SpecError PL501, PL503 or PL504."""
    stage = config.get(f"{Z}.stage", int, 0, least=0)
    if stage.value > 3:
        raise config.wrong("PL501", stage, f"`{Z}.stage` is 0, 1, 2 or 3, not {stage.value}")
    tp = config.get(
        "tensor_parallel.autotp_size", int, 1, also=["tensor_parallel.tp.tp_size", "tensor_parallel.tp_size"]
    )
    sp = config.get("sequence_parallel_size", int, 1, least=1)
    pp = config.get("pipeline.stages", int, 1, least=1)
    on = config.root.find("expert_parallel.enabled")
    ep = config.get("expert_parallel.autoep_size", int, 1, least=1)
    if on is None or on.data is not True:
        ep = Setting(ep.name, 0, False, ep.span)
    etp = config.get("expert_parallel.expert_tensor_parallel_size", int, 1)
    if etp.value != 1:
        raise config.wrong("PL503", etp, "DeepSpeed takes `expert_tensor_parallel_size` 1 only", "leave it out")
    auto = any(
        map(config.is_auto, ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"))
    )
    trainer = config.get("trainer", str, "hf" if auto else "own")
    dp = None
    if request.world is not None:
        ranks = max(tp.value, 1) * sp.value * pp.value
        if request.world % ranks:
            raise SpecError(Problem("PL504", f"{request.world} devices are not a multiple of {ranks}: tensor, sequence and "
                                    "pipeline parallel sizes", whole(config.path)))  # fmt: skip
        dp = request.world // ranks
    mics = config.get(f"{Z}.mics_shard_size", int, -1)
    groups = mics.value if mics.value > 0 and stage.value == 3 else 0
    if groups and ep.value:
        raise config.wrong("PL503", mics, "MiCS with expert parallelism is refused by DeepSpeed, and not modelled")
    if groups and dp is not None and dp % groups:
        raise config.wrong("PL504", mics, f"{dp} data-parallel devices are not a multiple of `{mics.name}` {groups}")
    return Shape(stage, tp, sp, pp, ep, dp, trainer.value == "hf", groups)


def check_batch(config: Config, shape: Shape) -> None:
    """What DeepSpeedConfig asserts: train_batch_size == micro batch * accumulation * world."""
    total, micro, steps = (config.get(name, int, None, least=1) for name in
                           ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"))  # fmt: skip
    known = (micro.value or 1) * (steps.value or 1)
    if total.given and (total.value % known or (shape.dp and total.value % shape.dp)):
        parts = [f"{one.name} {one.value}" for one in (micro, steps) if one.given]
        parts += [f"{shape.dp} data-parallel devices"] if shape.dp else []
        raise config.wrong("PL504", total, f"`train_batch_size` {total.value} is not a multiple of {', '.join(parts)}",
                           "DeepSpeed asserts that it is their product")  # fmt: skip
