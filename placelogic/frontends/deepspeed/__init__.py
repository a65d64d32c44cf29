"""DeepSpeed's JSON file as a spec.

What a stage does is in placelogic/std/frameworks/deepspeed_*.place, with its sources. What the file leaves to
others (sizes of the model, the number of devices, "auto") stays open."""

from __future__ import annotations

from placelogic.frontends.config import Config
from placelogic.frontends.deepspeed.lines import (
    write_data_parallel,
    write_experts,
    write_loss,
    write_mesh,
    write_model_parallel,
    write_offload,
    write_precision,
)
from placelogic.frontends.deepspeed.shape import Shape, Z, check_batch, shape_of
from placelogic.frontends.draft import Draft
from placelogic.frontends.request import Request
from placelogic.frontends.values import Value

VERSIONS = ("0.9", "0.19")
"""The first and the last that the strategies were compared with."""


def draft(config: Config, request: Request) -> tuple[Draft, dict[str, object]]:
    """The spec of a DeepSpeed configuration, and what it amounts to."""
    spec = Draft()
    shape = shape_of(config, request)
    check_batch(config, shape)
    write_mesh(config, spec, shape)
    write_data_parallel(config, spec, shape)
    write_model_parallel(spec, shape)
    write_experts(spec, shape)
    write_offload(config, spec, shape)
    write_loss(config, spec, shape)
    write_precision(config, spec)
    return spec, _facts(config, shape)


def _facts(config: Config, shape: Shape) -> dict[str, object]:
    root = config.root
    low = [name for name in ("bf16", "bfloat16", "fp16") if config.peek(f"{name}.enabled", bool, False)]
    master = bool(low) and not config.peek(f"{low[0]}.{low[0]}_master_weights_and_grads", bool, False)
    clips = config.is_auto("gradient_clipping") or config.peek("gradient_clipping", float, 0.0) > 0
    device = root.find(f"{Z}.offload_optimizer.device")
    return {
        "zero_stage": shape.stage.value, "tensor_parallel": shape.tp.value, "sequence_parallel": shape.sp.value,
        "pipeline": shape.pp.value, "expert_parallel": max(shape.ep.value, 1), "autoep": bool(shape.ep.value),
        "optimizer": str(config.peek("optimizer.type", str, "adamw")).lower(),
        "allreduce_op": config.peek("gradient_allreduce_op", str, "mean"),
        "reduce_scatter": config.peek(f"{Z}.reduce_scatter", bool, True),
        "deepcompile": config.peek("compile.deepcompile", bool, False),
        "offload_optimizer": bool(device and device.data not in (None, "none")),
        "hpz": config.peek(f"{Z}.zero_hpz_partition_size", int, 1), "mics": config.peek(f"{Z}.mics_shard_size", int, -1),
        "steps": config.peek("gradient_accumulation_steps", int, None), "master": master,
        "clip_line": "  clip\n" if clips else "", "refresh_line": "  refresh params from master\n" if master else "", "pp_line": "",
        "quantized_gradients": config.peek(f"{Z}.zero_quantized_gradients", bool, False),
    }  # fmt: skip


def config(root: Value, path: str, request: Request) -> Config:
    """The file as this importer reads it."""
    return Config(path, root, auto=("auto",))
