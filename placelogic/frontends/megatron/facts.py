"""What a Megatron-LM run amounts to, for the table of combinations it refuses."""

from __future__ import annotations

from placelogic.frontends.config import Config
from placelogic.frontends.megatron.sizes import Sizes

UNEVEN = ("decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers", "num-layers-in-first-pipeline-stage",
          "num-layers-in-last-pipeline-stage", "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split",
          "hybrid-layer-pattern", "hybrid-override-pattern")  # fmt: skip
"""Settings that say how layers are dealt to stages that do not get equally many."""


def facts_of(config: Config, sizes: Sizes) -> dict[str, object]:
    """Facts by name."""

    def flag(name: str) -> bool:
        return bool(config.get(name, bool, False).value)

    return {
        "tensor_parallel": sizes.tp.value, "context_parallel": sizes.cp.value, "pipeline": sizes.pp.value,
        "expert_parallel": sizes.ep.value, "expert_tensor_parallel": sizes.etp.value, "sequence_parallel": sizes.sp,
        "sequence_parallel_asked": flag("sequence-parallel"), "experts": sizes.experts.value, "chunks": sizes.chunks,
        "heads": config.get("num-attention-heads", int, None).value, "groups": config.get("num-query-groups", int, None).value,
        "layers": sizes.layers.value, "sequence": config.get("seq-length", int, None).value,
        "twice_context": 2 * sizes.cp.value, "world": sizes.world,
        "distributed_optimizer": flag("use-distributed-optimizer"), "torch_fsdp2": flag("use-torch-fsdp2"),
        "megatron_fsdp": flag("use-megatron-fsdp"), "per_token": flag("calculate-per-token-loss"),
        "average_in_collective": flag("ddp-average-in-collective"), "tied": not flag("untie-embeddings-and-output-weights"),
        "linear_bias": not flag("disable-bias-linear"), "instances": sizes.instances.value,
        "overlap_param_gather": flag("overlap-param-gather"), "overlap_grad_reduce": flag("overlap-grad-reduce"),
        "fp16": flag("fp16"), "muon": "muon" in str(config.get("optimizer", str, "adam").value),
        "hybrid_context": flag("hybrid-context-parallel"), "cpu_offloading": flag("cpu-offloading"),
        "optimizer_offload": flag("optimizer-cpu-offload"), "precision_aware": flag("use-precision-aware-optimizer"),
        "uneven_stages": any(config.root.find(name) is not None for name in UNEVEN),
        "layout": config.root.find("pipeline-model-parallel-layout") is not None,
        "delta_net": config.root.find("experimental-attention-variant") is not None, "optimizer": str(config.get("optimizer", str, "adam").value),
        "defer_embedding": flag("defer-embedding-wgrad-compute"), "mtp": config.get("mtp-num-layers", int, 0).value,
        "clip_line": "  clip\n" if config.get("clip-grad", float, 1.0).value > 0 else "",
        "refresh_line": "  refresh params from master\n" if flag("bf16") or flag("fp16") else "",
        "learned_softmax": config.get("softmax-type", str, "vanilla").value == "learnable",
        "clip": config.get("clip-grad", float, 1.0).value > 0, "fsdp_version": config.get("megatron-fsdp-version", int, 1).value,
        "tp_comm_overlap": flag("tp-comm-overlap"), "reduce_scatter_fp32": flag("ddp-reduce-scatter-with-fp32-accumulation"),
    }  # fmt: skip
