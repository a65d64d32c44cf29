"""torchtitan, accelerate, axolotl and nanotron."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frontends.helpers import checked, codes, imported, problem

NANOTRON = """\
parallelism: {{dp: {dp}, tp: {tp}, pp: {pp}, tp_mode: {mode}, expert_parallel_size: {ep}}}
optimizer: {{zero_stage: {zero}, accumulate_grad_in_fp32: true, clip_grad: 1.0}}
tokens: {{batch_accumulation_per_replica: 4}}
model:
  dtype: bfloat16
  model_config: {{num_hidden_layers: 4, hidden_size: 64, intermediate_size: 128, vocab_size: 512, num_attention_heads: 8,
    num_key_value_heads: 4, tie_word_embeddings: {tied}{experts}}}
"""


def nanotron(dp: int = 2, tp: int = 1, pp: int = 1, mode: str = "ALL_REDUCE", ep: int = 1, zero: int = 0, tied: str = "true",
             experts: str = "") -> str:  # fmt: skip
    return NANOTRON.format(dp=dp, tp=tp, pp=pp, mode=mode, ep=ep, zero=zero, tied=tied, experts=experts)


@pytest.mark.parametrize(
    "text",
    [
        nanotron(),
        nanotron(zero=1, tp=2, mode="REDUCE_SCATTER"),
        nanotron(tp=2, pp=2),
        nanotron(tp=2, pp=2, tied="false", mode="REDUCE_SCATTER"),
        nanotron(ep=2, experts=", moe_num_experts: 4"),
    ],
)
def test_nanotron(text: str) -> None:
    assert checked("nanotron", text).verdict == "proved"
    uneven = checked("nanotron", text, tokens="uneven")
    assert uneven.verdict == "refuted" and "GI04" in codes(uneven)
    assert any("a mean of means" in f.message for f in uneven.findings if f.code == "UB05") or "UB04" in codes(
        uneven, "note"
    )


def test_nanotron_refusals() -> None:
    assert problem("nanotron", nanotron(zero=2)).code == "PL501"
    assert problem("nanotron", nanotron(ep=2)).code == "PL504"
    assert problem("nanotron", nanotron(mode="SOMETHING")).code == "PL501"
    assert problem("nanotron", nanotron(), world=3).code == "PL504"
    assert problem("nanotron", "a: 1").code == "PL507"
    assert "UB02" in codes(checked("nanotron", nanotron(tp=3)), "note")


TITAN = """\
[training]
local_batch_size = 4
global_batch_size = 64
[parallelism]
data_parallel_replicate_degree = {replicate}
data_parallel_shard_degree = -1
tensor_parallel_degree = {tp}
context_parallel_degree = {cp}
pipeline_parallel_degree = {pp}
expert_parallel_degree = {ep}
expert_tensor_parallel_degree = {etp}
"""


@pytest.mark.parametrize(
    ("replicate", "tp", "cp", "pp", "ep", "etp"),
    [
        (1, 1, 1, 1, 1, 1),
        (2, 1, 1, 1, 1, 1),
        (1, 4, 1, 1, 1, 1),
        (2, 2, 2, 2, 1, 1),
        (1, 1, 1, 1, 4, 1),
        (1, 2, 1, 1, 4, 1),
        (1, 2, 2, 1, 4, 2),
        (2, 1, 2, 1, 4, 1),
    ],
)
def test_torchtitan_divides_by_all_tokens_and_is_proved_for_uneven_ones(
    replicate: int, tp: int, cp: int, pp: int, ep: int, etp: int
) -> None:
    text = TITAN.format(replicate=replicate, tp=tp, cp=cp, pp=pp, ep=ep, etp=etp)
    spec = checked("torchtitan", text, tokens="uneven")
    assert spec.verdict == "proved", [finding.message for finding in spec.findings]
    old = checked("torchtitan", text, version="0.2.1")
    assert old.verdict == "proved", [finding.message for finding in old.findings]


def test_torchtitan_and_tied_embeddings_on_a_pipeline() -> None:
    text = '[model]\nname = "qwen3"\nflavor = "0.6B"\n[training]\nlocal_batch_size = 2\n[parallelism]\npipeline_parallel_degree = 2\n'
    spec = checked("torchtitan", text)
    assert spec.verdict == "proved" and "UB04" in codes(spec, "note")


def test_torchtitan_on_a_command_line() -> None:
    text = "torchrun --nproc_per_node=8 -m torchtitan.train --module llama3 \\\n" \
           "  --parallelism.tensor_parallel_degree 4 --parallelism.data-parallel-shard-degree=2 --training.local_batch_size 1\n"  # fmt: skip
    made = imported("torchtitan", text, name="run.sh")
    assert "mesh tp = 4  # line 2: parallelism.tensor_parallel_degree 4" in made.spec and "mesh dp = 2" in made.spec


def test_torchtitan_refusals() -> None:
    text = TITAN.format(replicate=1, tp=2, cp=1, pp=1, ep=3, etp=1)
    assert problem("torchtitan", text).code == "PL504"
    assert problem("torchtitan", "[parallelism]\npipeline_parallel_degree = 0\n").code == "PL501"
    assert problem("torchtitan", "[job]\nx = 1\n").code == "PL507"
    bad = "[training]\n[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'Chaos'\n"
    assert problem("torchtitan", bad).code == "PL503"


ACCELERATE = "distributed_type: {kind}\nnum_processes: 8\ngradient_accumulation_steps: 4\n{more}"


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("MULTI_GPU", ""),
        ("NO", ""),
        ("FSDP", ""),
        ("FSDP", "fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false}\n"),
        ("FSDP", "fsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP, fsdp_offload_params: true}\n"),
        ("FSDP", "fsdp_config: {fsdp_sharding_strategy: 4}\n"),
        ("FSDP", "fsdp_config: {fsdp_version: 2}\nparallelism_config: {parallelism_config_cp_size: 2, parallelism_config_tp_size: 2}\n"),
        ("FSDP", "fsdp_config: {fsdp_version: 2}\nparallelism_config: {parallelism_config_dp_replicate_size: 2, parallelism_config_dp_shard_size: 4}\n"),
        ("DEEPSPEED", "deepspeed_config: {zero_stage: 3, gradient_accumulation_steps: 4, offload_optimizer_device: cpu}\nmixed_precision: bf16\n"),
    ],
)  # fmt: skip
def test_accelerate(kind: str, more: str) -> None:
    text = ACCELERATE.format(kind=kind, more=more)
    spec = checked("accelerate", text)
    assert spec.verdict == "proved", [finding.message for finding in spec.findings]
    counted = checked("accelerate", text, given={"trainer": "hf"}, tokens="uneven") if kind != "DEEPSPEED" else spec
    assert counted.verdict == "proved", [finding.message for finding in counted.findings]


def test_accelerate_refusals() -> None:
    assert problem("accelerate", ACCELERATE.format(kind="MAGIC", more="")).code == "PL501"
    assert problem("accelerate", ACCELERATE.format(kind="MEGATRON_LM", more="")).code == "PL503"
    sizes = "parallelism_config: {parallelism_config_tp_size: 3}\nfsdp_config: {fsdp_version: 2}\n"
    assert problem("accelerate", ACCELERATE.format(kind="FSDP", more=sizes)).code == "PL504"
    assert problem("accelerate", "name: x").code == "PL507"
    missing = checked(
        "accelerate", ACCELERATE.format(kind="DEEPSPEED", more="deepspeed_config: {deepspeed_config_file: gone.json}\n")
    )
    assert missing.verdict == "error" and "PL506" in codes(missing)


def test_a_deepspeed_file_beside_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "bf16": {"enabled": "auto"}, "oops": 1}')
    text = ACCELERATE.format(
        kind="DEEPSPEED", more="mixed_precision: bf16\ndeepspeed_config: {deepspeed_config_file: ds.json}\n"
    )
    made = imported("accelerate", text, name=str(tmp_path / "a.yaml"))
    assert "use deepspeed_zero2(dp)" in made.spec and "precision { params bf16" in made.spec
    assert [(f.code, f.span.path.endswith("ds.json")) for f in made.findings] == [("NT20", True)]


AXOLOTL = "base_model: some/model\nmicro_batch_size: 1\ngradient_accumulation_steps: 2\noptimizer: adamw_torch_fused\nbf16: auto\n{more}"
FSDP2 = "fsdp_version: 2\nfsdp_config: {offload_params: false, reshard_after_forward: true}\n"


@pytest.mark.parametrize(
    "more",
    [
        "",
        FSDP2,
        "fsdp: [full_shard, auto_wrap]\nfsdp_config: {fsdp_offload_params: true}\n",
        FSDP2 + "dp_shard_size: 4\ndp_replicate_size: 2\ntensor_parallel_size: 2\n",
        FSDP2 + "context_parallel_size: 2\ntensor_parallel_size: 2\nflash_attention: true\n",
        FSDP2 + "adapter: qlora\nload_in_4bit: true\nlora_r: 8\n",
        "unfrozen_parameters: [lm_head]\n",
        "context_parallel_size: 2\nflash_attention: true\n",
    ],
)
def test_axolotl(more: str) -> None:
    text = AXOLOTL.format(more=more)
    spec = checked("axolotl", text)
    assert spec.verdict == "proved", [finding.message for finding in spec.findings]
    uneven = checked("axolotl", text, tokens="uneven")
    assert uneven.verdict == "refuted" and "GI04" in codes(uneven)
    assert any("a mean of means" in f.message for f in uneven.findings if f.code == "UB05")


def test_axolotl_through_deepspeed(tmp_path: Path) -> None:
    (tmp_path / "zero3.json").write_text(
        '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}, "gradient_clipping": "auto"}'
    )
    text = AXOLOTL.format(more="deepspeed: zero3.json\nadapter: lora\n").replace("bf16: auto", "bf16: true")
    name = str(tmp_path / "sft.yaml")
    made = imported("axolotl", text, name=name)
    for line in (
        "use deepspeed_zero3(dp)",
        "freeze linear, norm, embed",
        "weights lora",
        "microbatches 2",
        "params bf16",
        "optimizer adamw",
    ):
        assert line in made.spec
    assert checked("axolotl", text, name=name).verdict == "proved"
    assert problem("axolotl", text + "context_parallel_size: 2\n", name=name).code == "PL503"


def test_axolotl_optimizers() -> None:
    eight = checked("axolotl", AXOLOTL.format(more=FSDP2).replace("adamw_torch_fused", "adamw_bnb_8bit"))
    assert eight.verdict == "refuted" and "SC06" in codes(eight) and "UB01" in codes(eight, "note")
    muon = checked("axolotl", AXOLOTL.format(more=FSDP2).replace("adamw_torch_fused", "muon"))
    assert muon.verdict == "error" and "PL503" in codes(muon)


def test_axolotl_losses_of_preference() -> None:
    spec = checked("axolotl", AXOLOTL.format(more="rl: dpo\n"))
    assert spec.verdict == "proved" and "NT23" in codes(spec, "note")


def test_axolotl_refusals() -> None:
    assert problem("axolotl", "x: 1").code == "PL507"
    assert problem("axolotl", AXOLOTL.format(more="adapter: strange\n")).code == "PL503"
    assert problem("axolotl", AXOLOTL.format(more="fsdp_version: 3\n")).code == "PL501"
    assert "relora" in checked("axolotl", AXOLOTL.format(more="relora: true\n")).findings[0].message


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("99.0", "axolotl 99.0 is not known here, the newest that is known is 0.18: it is read as that"),
        ("0.0.1", "axolotl 0.0.1 is not known here, the oldest that is known is 0.9: it is read as that, with"),
        ("0.18.3", None),
        ("0.9", None),
    ],
)
def test_a_version_that_is_not_known_is_told(version: str, said: str | None) -> None:
    made = imported("axolotl", AXOLOTL.format(more=FSDP2), version=version)
    told = [finding.message for finding in made.findings if finding.code == "NT24"]
    assert [one.startswith(said or "\0") for one in told] == [True] * (said is not None)
    assert ("is not known here" in made.spec) == (said is not None)


def test_versions_that_faults_name_are_known() -> None:
    text = "[parallelism]\ntensor_parallel_degree = 2\n"
    assert not [f for f in imported("torchtitan", text, version="0.2.3").findings if f.code == "NT24"]
