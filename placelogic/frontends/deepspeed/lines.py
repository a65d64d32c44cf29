"""The lines of the spec of a DeepSpeed run. Runtime: placelogic/std/frameworks/deepspeed_*.place, with their sources."""

from __future__ import annotations

from placelogic.frontends.config import Config, Setting
from placelogic.frontends.deepspeed.shape import Shape, Z
from placelogic.frontends.draft import Draft
from placelogic.frontends.groups import unknown_model
from placelogic.frontends.optimizers import optimizer
from placelogic.problem import Problem, SpecError

EXPERT_FIX = "0.14.1"
"""From here on expert gradients are divided by the whole data-parallel size (deepspeedai/DeepSpeed#5259)."""


def write_mesh(config: Config, spec: Draft, shape: Shape) -> None:
    """Declare the axes, and how many micro-batches there are."""
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


def write_data_parallel(config: Config, spec: Draft, shape: Shape) -> None:
    """What the stage does."""
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


def write_model_parallel(spec: Draft, shape: Shape) -> None:
    """Tensor, sequence and pipeline parallelism."""
    if shape.tp.value > 1:
        spec.add("use", "use tensor_parallel(tp)", shape.tp)
    if shape.sp.value > 1:
        spec.add("use", "use deepspeed_ulysses(sp)", shape.sp)
        spec.add("step", "loss mean over sp", "the loss is the mean over a whole sequence: see deepspeed_ulysses")
    if shape.pp.value > 1:
        spec.add("use", "use pipeline(pp)", shape.pp)


def write_experts(spec: Draft, shape: Shape) -> None:
    """The weights; experts along their two axes."""
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


def write_offload(config: Config, spec: Draft, shape: Shape) -> None:
    """What lies on the host."""
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


def write_loss(config: Config, spec: Draft, shape: Shape) -> None:
    """How the loss is divided; clipping and the optimizer."""
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


def _muon(spec: Draft, kind: Setting, shape: Shape) -> None:
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


def write_precision(config: Config, spec: Draft) -> None:
    """The dtypes."""
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
