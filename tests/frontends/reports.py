"""Public reports of faults, as the configuration that meets them at the version that had them, and mended.

Each names what comes out: the code, and words of the finding (the published factor, where there is one)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from tests.frontends.helpers import megatron


class Report(Struct, frozen=True):
    """`bad` and `good`: what is asked beside the file (version, settings, tokens). `mended`: the text of the
    mended file, where it is not the version that mends it."""

    ref: str
    framework: str
    text: str
    code: str
    words: str
    bad: Mapping[str, object] = field(default_factory=dict)
    good: Mapping[str, object] = field(default_factory=dict)
    mended: str | None = None
    name: str | None = None


EXPERTS = """{"expert_parallel": {"enabled": true, "autoep_size": 2}, "zero_optimization": {"stage": 1},
"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2}"""
OFFLOADED = """{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true},
"gradient_clipping": 1.0, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}"""
MUON = """{"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": %d}, "bf16": {"enabled": true},
"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": %d}"""
PIPELINE = """{"zero_optimization": {"stage": 2}, "pipeline": {"stages": 2}, "train_micro_batch_size_per_gpu": 1,
"gradient_accumulation_steps": 4}"""
FSDP = """\
distributed_type: FSDP
num_processes: 4
gradient_accumulation_steps: 2
fsdp_config:
  fsdp_version: 2
%strainer: hf
"""
TENSOR = "parallelism_config:\n  parallelism_config_tp_size: 2\n  parallelism_config_dp_shard_size: 2\n"
GRPO = """\
base_model: some/model
micro_batch_size: 1
gradient_accumulation_steps: 1
rl: grpo
dataloader_num_workers: %d
flash_attention: true
context_parallel_size: 2
fsdp_version: 2
fsdp_config:
  reshard_after_forward: true
"""
PIPE = """\
[training]
local_batch_size = 2
global_batch_size = 8
[parallelism]
data_parallel_shard_degree = 2
pipeline_parallel_degree = 2
"""
HYBRID = "[training]\nlocal_batch_size = 1\n[parallelism]\ndata_parallel_replicate_degree = 2\n"
MOE = "[training]\nlocal_batch_size = 1\n[parallelism]\nexpert_parallel_degree = 2\n"
BIAS = '[model]\nname = "%s"\n[training]\nlocal_batch_size = 1\n[parallelism]\ntensor_parallel_degree = 2\n'
DELTA = megatron("--tensor-model-parallel-size: 2", "--experimental-attention-variant: gated_delta_net")
CONTEXT = megatron("--context-parallel-size: 2")
TOKENS = megatron("--context-parallel-size: 2", "--calculate-per-token-loss: true")

REPORTS = (
    Report("deepspeedai/DeepSpeed#5259", "deepspeed", EXPERTS, "GI03", "by the constant factor 2",
           {"version": "0.14.0"}, {"version": "0.14.1"}),
    Report("deepspeedai/DeepSpeed#6550", "deepspeed", OFFLOADED, "GI05", "", {"version": "0.15.1"}, {"version": "0.15.2"}),
    Report("deepspeedai/DeepSpeed#8090", "deepspeed", MUON % (1, 1), "SC06", "muon needs the whole matrix",
           {"version": "0.19.1"}, {"version": "0.19.3"}),
    Report("deepspeedai/DeepSpeed#8443", "deepspeed", MUON % (3, 4), "GI05", "updated more than once",
           mended=MUON % (3, 1)),
    Report("deepspeedai/DeepSpeed#823", "deepspeed", PIPELINE, "GI05", "", {"version": "0.3.10"}, {}),
    Report("NVIDIA/Megatron-LM#844", "megatron", megatron("--use-distributed-optimizer: true", "--pipeline-model-parallel-size: 2"),
           "GI06", "", {"version": "0.5"}, {"version": "0.6"}),
    Report("NVIDIA/Megatron-LM#673", "megatron", TOKENS, "GI03", "by the constant factor 2", {"version": "0.11"}, {"version": "0.12"}),
    Report("NVIDIA/Megatron-LM#906", "megatron", CONTEXT, "GI03", "by the constant factor 2", {"version": "0.8"}, {"version": "0.9"}),
    Report("NVIDIA/Megatron-LM#7513", "megatron", CONTEXT, "GI04", "", {"tokens": "uneven"}, {"tokens": "uneven"}, mended=TOKENS),
    Report("NVIDIA/Megatron-LM#7498", "megatron", megatron("--context-parallel-size: 2", "--mtp-num-layers: 1"), "GI04", "",
           {"tokens": "uneven"}, {}),
    Report("NVIDIA/Megatron-LM#7452", "megatron", DELTA, "GI01", "`delta_norm` is never summed over tp",
           mended=DELTA + "  --sequence-parallel: true\n"),
    Report("NovaSky-AI/SkyRL#2226", "megatron", DELTA, "SC01", "copies of `delta_norm` along tp",
           mended=DELTA + "  --sequence-parallel: true\n"),
    Report("NVIDIA/Megatron-LM#7530", "megatron", megatron("--tensor-model-parallel-size: 2", "--softmax-type: learnable"),
           "GI07", "`softmax_offset`", mended=megatron("--tensor-model-parallel-size: 2", "--softmax-type: vanilla")),
    Report("NVIDIA/Megatron-LM#7227", "megatron",
           megatron("--use-megatron-fsdp: true", "--megatron-fsdp-version: 2", "--pipeline-model-parallel-size: 2",
                    "--data-parallel-sharding-strategy: optim_grads_params"), "GI07", "`embed`",
           mended=megatron("--use-megatron-fsdp: true", "--megatron-fsdp-version: 2", "--pipeline-model-parallel-size: 2",
                           "--data-parallel-sharding-strategy: optim_grads_params",
                           "--untie-embeddings-and-output-weights: true")),
    Report("pytorch/pytorch#160285", "torchtitan", MOE, "GI03", "by the constant factor 2", {"version": "0.1.9"}, {"version": "0.2.0"}),
    Report("pytorch/torchtitan#1732", "torchtitan", PIPE, "GI04", "", {"version": "0.1.9"}, {"version": "0.2.0"}),
    Report("pytorch/torchtitan#166", "torchtitan", HYBRID, "SC05", "", {"version": "0.0.1"}, {"version": "0.1"}),
    Report("pytorch/torchtitan#4332", "torchtitan", BIAS % "gpt_oss", "GI03", "by the constant factor 1/2",
           {"version": "0.2.3"}, {"version": "0.2.3"}, mended=BIAS % "llama3"),
    Report("huggingface/transformers#34191", "accelerate", FSDP % "", "GI04", "",
           {"given": {"trainer_version": "4.45"}, "tokens": "uneven"}, {"given": {"trainer_version": "4.54"}, "tokens": "uneven"}),
    Report("huggingface/transformers#34242", "accelerate", FSDP % "", "GI04", "",
           {"given": {"trainer_version": "4.50"}, "tokens": "uneven"}, {"given": {"trainer_version": "4.54"}, "tokens": "uneven"}),
    Report("huggingface/transformers#45994", "accelerate", FSDP % TENSOR, "GI03", "by the constant factor 2",
           {"given": {"trainer_version": "5.9"}}, {"given": {"trainer_version": "5.10"}}),
    Report("huggingface/accelerate#3092", "accelerate", FSDP % TENSOR, "FW02", "", {"version": "1.3"}, {"version": "1.4"}),
    Report("axolotl-ai-cloud/axolotl#3920", "axolotl", GRPO % 2, "FW02", "", mended=GRPO % 0),
)  # fmt: skip
