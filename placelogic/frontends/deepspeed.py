"""DeepSpeed's JSON file as a spec.

What a stage does is in placelogic/std/frameworks/deepspeed_*.place, with its sources. What the file leaves to
others (sizes of the model, the number of devices, "auto") stays open."""

from __future__ import annotations

from dataclasses import dataclass

from placelogic.files import whole
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.groups import unknown_model
from placelogic.frontends.optimizers import optimizer
from placelogic.frontends.request import Request
from placelogic.frontends.values import Value
from placelogic.problem import Problem, SpecError

VERSIONS = ("0.9", "0.19")
"""The first and the last that the strategies were compared with."""

EXPERT_FIX = "0.14.1"
"""From here on expert gradients are divided by the whole data-parallel size (deepspeedai/DeepSpeed#5259)."""

Z = "zero_optimization"


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes, None where they are open. `hf`: the Trainer fills in "auto". `mics`: devices of a MiCS group, 0 for none."""

    stage: Setting
    tp: Setting
    sp: Setting
    pp: Setting
    ep: Setting
    dp: int | None
    hf: bool
    mics: int


def draft(config: Config, request: Request) -> tuple[Draft, dict[str, object]]:
    """The spec of a DeepSpeed configuration, and what it amounts to."""
    spec = Draft()
    shape = _shape(config, request)
    _check_batch(config, shape)
    _mesh(config, spec, shape)
    _data_parallel(config, spec, shape)
    _model_parallel(spec, shape)
    _experts(spec, shape)
    _offload(config, spec, shape)
    _loss(config, spec, shape)
    _precision(config, spec)
    return spec, _facts(config, shape)


def _shape(config: Config, request: Request) -> _Shape:
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
    return _Shape(stage, tp, sp, pp, ep, dp, trainer.value == "hf", groups)


def _check_batch(config: Config, shape: _Shape) -> None:
    """What DeepSpeedConfig asserts: train_batch_size == micro batch * accumulation * world."""
    total, micro, steps = (config.get(name, int, None, least=1) for name in
                           ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"))  # fmt: skip
    known = (micro.value or 1) * (steps.value or 1)
    if total.given and (total.value % known or (shape.dp and total.value % shape.dp)):
        parts = [f"{one.name} {one.value}" for one in (micro, steps) if one.given]
        parts += [f"{shape.dp} data-parallel devices"] if shape.dp else []
        raise config.wrong("PL504", total, f"`train_batch_size` {total.value} is not a multiple of {', '.join(parts)}",
                           "DeepSpeed asserts that it is their product")  # fmt: skip


def _mesh(config: Config, spec: Draft, shape: _Shape) -> None:
    total, micro, steps = (config.get(name, int) for name in
                           ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"))  # fmt: skip
    dp = shape.dp
    if dp is None and total.given and micro.given and steps.given:
        dp = total.value // (micro.value * steps.value)
        origin: Setting | str = "train_batch_size / micro batch / accumulation steps"
    else:
        origin = "the number of devices is not in the file" if dp is None else "--world"
    if shape.ep.value:
        spec.axis("ep", shape.ep.value, shape.ep)
        if dp is not None and dp % shape.ep.value:
            raise config.wrong(
                "PL504",
                shape.ep,
                f"{dp} data-parallel devices are not a multiple of `{shape.ep.name}` {shape.ep.value}",
            )
        spec.axis("edp", None if dp is None else dp // shape.ep.value, origin)
        spec.add("mesh", "axis dp = edp * ep")
    elif shape.mics:
        spec.axis("replicate", None if dp is None else dp // shape.mics, origin)
        spec.axis("shard", shape.mics, config.get(f"{Z}.mics_shard_size", int))
        spec.add("mesh", "axis dp = replicate * shard")
    else:
        spec.axis("dp", dp, origin)
    for name, size in (("tp", shape.tp), ("sp", shape.sp), ("pp", shape.pp)):
        if size.value > 1:
            spec.axis(name, size.value, size)
    if steps.given:
        spec.add("work", f"microbatches {steps.value}", steps)
    elif total.given and not config.is_auto("gradient_accumulation_steps"):
        if micro.given:
            spec.let("M", None)
            spec.add("work", "microbatches M", "gradient_accumulation_steps is not given: it follows from the batch")
            spec.add("assume", f"assume {micro.value}*M*dp == {total.value}", total, micro)
        else:
            spec.add("work", "microbatches 1", "gradient_accumulation_steps is not given: 1")
    else:
        spec.add("work", "microbatches M", "gradient_accumulation_steps is left open")


def _data_parallel(config: Config, spec: Draft, shape: _Shape) -> None:
    stage = shape.stage.value
    if shape.mics:
        spec.add("use", "use deepspeed_mics(shard, replicate)", config.get(f"{Z}.mics_shard_size", int))
    else:
        spec.add("use", f"use deepspeed_zero{stage}(dp)", shape.stage)
    operation = config.get("gradient_allreduce_op", str, "mean")
    if operation.value not in ("mean", "sum"):
        raise config.wrong("PL501", operation, f"`gradient_allreduce_op` is mean or sum, not {operation.value}")
    if operation.value == "sum":
        spec.add("step", "scale * by dp", operation)
    hpz = config.get(f"{Z}.zero_hpz_partition_size", int, 1)
    if hpz.value > 1:
        spec.head.append(f"{hpz.origin}: a second copy of the parameters, cut inside groups of {hpz.value} devices, is "
                         "gathered in the backward pass; it costs memory and changes no value, and is not written here.")  # fmt: skip
    threshold = config.get(
        f"{Z}.stage3_param_persistence_threshold", int, 100_000, also=[f"{Z}.param_persistence_threshold"]
    )
    if stage == 3 and threshold.value > 0 and not shape.mics:
        auto = config.is_auto(f"{Z}.stage3_param_persistence_threshold")
        origin = "stage3_param_persistence_threshold auto: 10 * hidden size" if auto else threshold.origin
        spec.add("state", "place vector over dp { params replicated, optimizer sharded, gradients sharded }",
                 f"{origin}; norms and biases are smaller, and stay whole")  # fmt: skip


def _model_parallel(spec: Draft, shape: _Shape) -> None:
    if shape.tp.value > 1:
        spec.add("use", "use tensor_parallel(tp)", shape.tp)
    if shape.sp.value > 1:
        spec.add("use", "use deepspeed_ulysses(sp)", shape.sp)
        spec.add("step", "loss mean over sp", "the loss is the mean over a whole sequence: see deepspeed_ulysses")
    if shape.pp.value > 1:
        spec.add("use", "use pipeline(pp)", shape.pp)


def _experts(spec: Draft, shape: _Shape) -> None:
    tied = "pp" if shape.pp.value > 1 else None
    unknown_model(spec, experts=bool(shape.ep.value), routed_over="ep" if shape.ep.value else None, tied=tied)
    if not shape.ep.value:
        return
    spec.add("use", "use deepspeed_experts(ep)", shape.ep)
    states = {0: "params replicated, optimizer replicated, gradients replicated",
              1: "params replicated, optimizer sharded on flat, gradients replicated",
              2: "params replicated, optimizer sharded on flat, gradients sharded on flat",
              3: "params gathered, optimizer sharded, gradients sharded"}  # fmt: skip
    spec.add("state", f"place expert over edp {{ {states[shape.stage.value]} }}", shape.stage)
    spec.add("step", "sync expert over edp by sum", "engine.py, _reduce_expert_gradients")
    spec.add("step", "scale expert by 1/dp", f"from {EXPERT_FIX} on: divided by the whole data-parallel size")


def _offload(config: Config, spec: Draft, shape: _Shape) -> None:
    for part, what, old in (
        ("offload_optimizer", "optimizer", "cpu_offload"),
        ("offload_param", "params", "cpu_offload_param"),
    ):
        device = config.get(f"{Z}.{part}.device", str, "none")
        legacy = config.get(f"{Z}.{old}", bool, False)
        if device.value not in ("none", "cpu", "nvme"):
            raise config.wrong("PL501", device, f"`{device.name}` is none, cpu or nvme, not `{device.value}`")
        if device.value == "none" and not legacy.value:
            continue
        if what == "params" and shape.stage.value != 3:
            raise config.wrong(
                "PL503", device, "DeepSpeed offloads parameters at stage 3 only", "use stage 3, or leave it out"
            )
        ratio = config.get(f"{Z}.offload_optimizer.ratio", float, 1.0)
        if what == "optimizer" and ratio.value < 1.0:
            raise config.wrong(
                "PL503", ratio, "an optimizer of which a part is on the host is not modelled", "use ratio 1.0"
            )
        spec.add("state", f"place * {{ {what} offloaded }}", device if device.given else legacy)


def _loss(config: Config, spec: Draft, shape: _Shape) -> None:
    if shape.hf:
        over = "dp*sp" if shape.sp.value > 1 else "dp"
        if shape.sp.value > 1:
            raise SpecError(Problem("PL503", "the Trainer's loss under sequence parallelism is not modelled",
                                    shape.sp.span, "`--set trainer=own` if the loss is a mean over each sequence"))  # fmt: skip
        spec.add(
            "use",
            f"use hf_trainer_loss({over})",
            '"auto" is filled in by the Hugging Face Trainer; --set trainer=own if not',
        )
    else:
        spec.add("use", "use deepspeed_accumulation()", "the loss is a mean over the tokens of a micro-batch")
    clip = config.get("gradient_clipping", float, 0.0)
    if config.is_auto("gradient_clipping"):
        spec.add(
            "optimizer", "clip global_norm", 'gradient_clipping "auto": max_grad_norm of the Trainer, 1.0 by default'
        )
    elif clip.value > 0:
        spec.add("optimizer", "clip global_norm", clip)
    kind = config.get("optimizer.type", str)
    if kind.given and optimizer(kind) == "muon":
        _muon(spec, kind, shape)
    elif kind.given:
        spec.add("optimizer", f"optimizer {optimizer(kind)}", kind)
    else:
        spec.add("optimizer", "optimizer adamw", "the optimizer is not in the file: one that acts on each element")


def _muon(spec: Draft, kind: Setting, shape: _Shape) -> None:
    """Muon for matrices, each of which is collected for the update (stage_1_and_2.py and stage3.py, 0.19.3)."""
    experts = ", expert, router" if shape.ep.value else ""
    spec.add("optimizer", f"optimizer muon for matrix{experts}", kind)
    spec.add("optimizer", "optimizer adam for vector, embedding", "Muon is for matrices")
    states = {
        1: "optimizer sharded on param",
        2: "optimizer sharded on param, gradients sharded on param",
        3: "params gathered on param, optimizer sharded on param, gradients sharded on param",
    }
    if shape.stage.value:
        spec.add(
            "state", f"place matrix over dp {{ {states[shape.stage.value]} }}", "whole matrices are collected for Muon"
        )


def _precision(config: Config, spec: Draft) -> None:
    bf16 = config.get("bf16.enabled", bool, False, also=["bfloat16.enabled"])
    fp16 = config.get("fp16.enabled", bool, False)
    if bf16.value and fp16.value:
        raise config.wrong("PL504", fp16, "bf16 and fp16 cannot both be enabled", "DeepSpeed asserts it too")
    low = "bf16" if bf16.value else "fp16" if fp16.value else None
    if low is None:
        return
    own = config.get(f"{low}.{low}_master_weights_and_grads", bool, False)
    moments = config.get("bf16.bf16_optimizer_states", bool, False)
    master = "" if own.value else ", master fp32"
    spec.add("optimizer", f"precision {{ params {low}, compute {low}, gradients {low}{master}, moments {low if moments.value else 'fp32'} }}",
             bf16 if bf16.value else fp16, own if own.given else "")  # fmt: skip
    if low == "fp16":
        spec.head.append("fp16: a step is skipped when any device overflows; DeepSpeed decides it over all devices "
                         "(runtime/zero/stage_1_and_2.py, has_overflow), and it is not written here.")  # fmt: skip


def _facts(config: Config, shape: _Shape) -> dict[str, object]:
    root = config.root
    low = [name for name in ("bf16", "bfloat16", "fp16") if config.get(f"{name}.enabled", bool, False).value]
    master = bool(low) and not config.get(f"{low[0]}.{low[0]}_master_weights_and_grads", bool, False).value
    clips = config.is_auto("gradient_clipping") or config.get("gradient_clipping", float, 0.0).value > 0
    device = root.find(f"{Z}.offload_optimizer.device")
    return {
        "zero_stage": shape.stage.value, "tensor_parallel": shape.tp.value, "sequence_parallel": shape.sp.value,
        "pipeline": shape.pp.value, "expert_parallel": max(shape.ep.value, 1), "autoep": bool(shape.ep.value),
        "optimizer": str(config.get("optimizer.type", str, "adamw").value).lower(),
        "allreduce_op": config.get("gradient_allreduce_op", str, "mean").value,
        "reduce_scatter": config.get(f"{Z}.reduce_scatter", bool, True).value,
        "deepcompile": config.get("compile.deepcompile", bool, False).value,
        "offload_optimizer": bool(device and device.data not in (None, "none")),
        "hpz": config.get(f"{Z}.zero_hpz_partition_size", int, 1).value, "mics": config.get(f"{Z}.mics_shard_size", int, -1).value,
        "steps": config.get("gradient_accumulation_steps", int, None).value, "master": master,
        "clip_line": "  clip\n" if clips else "", "refresh_line": "  refresh params from master\n" if master else "", "pp_line": "",
        "quantized_gradients": config.get(f"{Z}.zero_quantized_gradients", bool, False).value,
    }  # fmt: skip


def config(root: Value, path: str, request: Request) -> Config:
    """The file as this importer reads it."""
    return Config(path, root, auto=("auto",))
