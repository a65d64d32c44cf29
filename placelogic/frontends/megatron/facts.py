"""What a Megatron-LM run amounts to, for the table of combinations it refuses."""

from __future__ import annotations

from placelogic.frontends.config import Config
from placelogic.frontends.megatron.sizes import ModelSizes

UNEVEN = ("decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers", "num-layers-in-first-pipeline-stage",
          "num-layers-in-last-pipeline-stage", "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split",
          "hybrid-layer-pattern", "hybrid-override-pattern")  # fmt: skip
"""Settings that say how layers are dealt to stages that do not get equally many."""


def facts_of(config: Config, sizes: ModelSizes) -> dict[str, object]:
    """Facts by name."""

    def flag(name: str) -> bool:
        return bool(config.peek(name, bool, False))

    return {
        "tensor_parallel": sizes.tp.value, "context_parallel": sizes.cp.value, "pipeline": sizes.pp.value,
        "expert_parallel": sizes.ep.value, "expert_tensor_parallel": sizes.etp.value, "sequence_parallel": sizes.sp,
        "sequence_parallel_asked": flag("sequence-parallel"), "experts": sizes.experts.value, "chunks": sizes.chunks,
        "heads": config.peek("num-attention-heads", int, None), "groups": config.peek("num-query-groups", int, None),
        "layers": sizes.layers.value, "sequence": config.peek("seq-length", int, None),
        "twice_context": 2 * sizes.cp.value, "world": sizes.world,
        "distributed_optimizer": flag("use-distributed-optimizer"), "torch_fsdp2": flag("use-torch-fsdp2"),
        "megatron_fsdp": flag("use-megatron-fsdp"), "per_token": flag("calculate-per-token-loss"),
        "average_in_collective": flag("ddp-average-in-collective"), "tied": not flag("untie-embeddings-and-output-weights"),
        "linear_bias": not flag("disable-bias-linear"), "instances": sizes.instances.value,
        "overlap_param_gather": flag("overlap-param-gather"), "overlap_grad_reduce": flag("overlap-grad-reduce"),
        "fp16": flag("fp16"), "muon": "muon" in str(config.peek("optimizer", str, "adam")),
        "hybrid_context": flag("hybrid-context-parallel"), "cpu_offloading": flag("cpu-offloading"),
        "optimizer_offload": flag("optimizer-cpu-offload"), "precision_aware": flag("use-precision-aware-optimizer"),
        "uneven_stages": any(config.root.find(name) is not None for name in UNEVEN),
        "layout": config.root.find("pipeline-model-parallel-layout") is not None,
        "delta_net": config.root.find("experimental-attention-variant") is not None, "optimizer": str(config.peek("optimizer", str, "adam")),
        "defer_embedding": flag("defer-embedding-wgrad-compute"), "mtp": config.peek("mtp-num-layers", int, 0),
        "clip_line": "  clip\n" if config.peek("clip-grad", float, 1.0) > 0 else "",
        "refresh_line": "  refresh params from master\n" if flag("bf16") or flag("fp16") else "",
        "learned_softmax": config.peek("softmax-type", str, "vanilla") == "learnable",
        "clip": config.peek("clip-grad", float, 1.0) > 0, "fsdp_version": config.peek("megatron-fsdp-version", int, 1),
        "tp_comm_overlap": flag("tp-comm-overlap"), "reduce_scatter_fp32": flag("ddp-reduce-scatter-with-fp32-accumulation"),
    }  # fmt: skip
