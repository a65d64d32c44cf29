"""Megatron-LM's arguments: groups, scaling, states, and what is refused."""

from __future__ import annotations

import pytest

from placelogic.frontends import Request
from placelogic.frontends.ranks import Groups, RanksDoNotFit, refine
from tests.frontends.helpers import checked, codes, imported, megatron, problem

COMBINATIONS = [
    [],
    ["--tensor-model-parallel-size: 2"],
    ["--tensor-model-parallel-size: 2", "--sequence-parallel: true", "--qk-layernorm: true"],
    ["--tensor-model-parallel-size: 4", "--qk-layernorm: true", "--position-embedding-type: rope"],
    ["--pipeline-model-parallel-size: 2", "--use-distributed-optimizer: true"],
    ["--pipeline-model-parallel-size: 2", "--num-layers-per-virtual-pipeline-stage: 1"],
    ["--context-parallel-size: 2", "--pipeline-model-parallel-size: 2", "--untie-embeddings-and-output-weights: true"],
    ["--context-parallel-size: 2", "--calculate-per-token-loss: true", "--use-distributed-optimizer: true"],
    ["--ddp-average-in-collective: true", "--context-parallel-size: 2", "--use-distributed-optimizer: true"],
    ["--use-torch-fsdp2: true", "--untie-embeddings-and-output-weights: true", "--context-parallel-size: 2"],
    ["--use-megatron-fsdp: true", "--data-parallel-sharding-strategy: optim_grads_params"],
    ["--use-megatron-fsdp: true", "--data-parallel-sharding-strategy: optim"],
    ["--optimizer: muon", "--use-distributed-optimizer: true"],
    ["--optimizer: dist_muon"],
    [
        "--use-distributed-optimizer: true",
        "--num-distributed-optimizer-instances: 2",
        "--tensor-model-parallel-size: 2",
    ],
    ["--mtp-num-layers: 1", "--pipeline-model-parallel-size: 2", "--untie-embeddings-and-output-weights: true"],
    ["--fp16: true", "--bf16: false", "--clip-grad: 0.0"],
]
MOE = ["--num-experts: 8", "--moe-ffn-hidden-size: 32", "--disable-bias-linear: true", "--sequence-parallel: true"]
EXPERTS = [
    ["--expert-model-parallel-size: 2"],
    ["--expert-model-parallel-size: 4", "--use-distributed-optimizer: true"],
    ["--expert-model-parallel-size: 2", "--context-parallel-size: 2", "--use-distributed-optimizer: true"],
    ["--expert-model-parallel-size: 4", "--context-parallel-size: 2"],
    ["--expert-model-parallel-size: 2", "--tensor-model-parallel-size: 2", "--use-distributed-optimizer: true"],
    ["--expert-model-parallel-size: 8", "--tensor-model-parallel-size: 2", "--expert-tensor-parallel-size: 1"],
    ["--expert-model-parallel-size: 1", "--tensor-model-parallel-size: 2", "--expert-tensor-parallel-size: 1"],
    ["--expert-model-parallel-size: 2", "--tensor-model-parallel-size: 4", "--expert-tensor-parallel-size: 2"],
    ["--expert-model-parallel-size: 2", "--tensor-model-parallel-size: 2", "--context-parallel-size: 2",
     "--expert-tensor-parallel-size: 4", "--pipeline-model-parallel-size: 2"],
    ["--expert-model-parallel-size: 4", "--ddp-average-in-collective: true"],
    ["--expert-model-parallel-size: 2", "--calculate-per-token-loss: true", "--context-parallel-size: 2"],
    ["--expert-model-parallel-size: 2", "--use-distributed-optimizer: true", "--num-distributed-optimizer-instances: 2"],
    ["--expert-model-parallel-size: 4", "--use-megatron-fsdp: true", "--data-parallel-sharding-strategy: optim_grads_params"],
]  # fmt: skip


@pytest.mark.parametrize("settings", COMBINATIONS, ids=" ".join)
def test_what_the_framework_runs_is_proved(settings: list[str]) -> None:
    spec = checked("megatron", megatron(*settings))
    assert spec.verdict == "proved", [finding.message for finding in spec.findings]
    assert spec.obligations.stated


@pytest.mark.parametrize("settings", EXPERTS, ids=" ".join)
def test_experts_in_every_arrangement_of_groups(settings: list[str]) -> None:
    spec = checked("megatron", megatron(*MOE, *settings))
    assert spec.verdict == "proved", [finding.message for finding in spec.findings]


@pytest.mark.parametrize("version", ["0.5", "0.9", "0.12", "0.13", "0.20"])
def test_context_parallel_losses_of_every_version(version: str) -> None:
    """The multiplier that vanished between versions is right in each, but for the reported ones."""
    spec = checked("megatron", megatron("--context-parallel-size: 4"), version=version)
    assert spec.verdict == "proved"


def test_without_sequence_parallelism_every_token_reaches_experts_once_per_tensor_device() -> None:
    settings = ["--num-experts: 8", "--disable-bias-linear: true", "--tensor-model-parallel-size: 2",
                "--expert-tensor-parallel-size: 1", "--expert-model-parallel-size: 4"]  # fmt: skip
    spec = checked("megatron", megatron(*settings))
    assert spec.verdict == "refuted" and codes(spec) & {"GI02", "GI03"}
    assert "UB01" in codes(spec, "note")


def test_unsound_costly_and_unbuilt_are_told_apart() -> None:
    pipeline = checked("megatron", megatron("--use-torch-fsdp2: true", "--pipeline-model-parallel-size: 2",
                                            "--untie-embeddings-and-output-weights: true"))  # fmt: skip
    assert pipeline.verdict == "proved" and "UB04" in codes(pipeline, "note")
    both = checked("megatron", megatron("--use-torch-fsdp2: true", "--use-distributed-optimizer: true",
                                        "--untie-embeddings-and-output-weights: true"))  # fmt: skip
    assert both.verdict == "refuted" and "CC01" in codes(both) and "UB01" in codes(both, "note")
    bias = checked(
        "megatron", megatron("--num-experts: 8", "--tensor-model-parallel-size: 2", "--sequence-parallel: true")
    )
    assert bias.verdict == "error" and "UB01" in codes(bias, "note")
    assert "takes the operations of a layer" in bias.findings[0].message
    warned = checked("megatron", megatron("--use-torch-fsdp2: true", "--tensor-model-parallel-size: 2",
                                          "--untie-embeddings-and-output-weights: true"))  # fmt: skip
    assert warned.verdict == "proved" and "UB03" in codes(warned, "note")
    assert any(f.message.startswith("Megatron-LM warns of") for f in warned.findings)


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        (["--tensor-model-parallel-size: two"], "PL501", "a whole number"),
        (["--tensor-model-parallel-size: 0"], "PL501", "at least 1"),
        (["--expert-model-parallel-size: 2"], "PL504", "without experts"),
        (["--num-experts: 6", "--expert-model-parallel-size: 4"], "PL504", "not a multiple"),
        (["--fp16: true"], "PL504", "exclude each other"),
        (["--optimizer: lbfgs"], "PL503", "`lbfgs` is not modelled"),
        (["--calculate-per-token-loss: true", "--ddp-average-in-collective: true"], "PL504", "divide twice"),
        (["--gtp-weight-remat-size: 2"], "PL503", "not modelled"),
        (["--position-embedding-type: nope"], "PL503", "not known here"),
        (["--num-layers-per-virtual-pipeline-stage: 3", "--pipeline-model-parallel-size: 2"], "PL504", "do not divide"),
    ],
)
def test_what_contradicts_itself_is_refused(settings: list[str], code: str, said: str) -> None:
    one = problem("megatron", megatron(*settings))
    assert one.code == code and said in one.message and one.span.line > 7


def test_sizes_that_do_not_divide_the_devices() -> None:
    assert problem("megatron", megatron("--tensor-model-parallel-size: 4"), world=6).code == "PL504"
    assert problem("megatron", megatron(), world=32).code == "PL504"  # the batch of 16
    assert "microbatches 4" in imported("megatron", megatron(), world=4).spec


def test_a_shell_script_of_arguments() -> None:
    text = "TP=2\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 \\\n" \
           "  --num-attention-heads 8 --micro-batch-size 1 --global-batch-size 16 --tensor-model-parallel-size $TP\n"  # fmt: skip
    made = imported("megatron", text, name="run.sh")
    assert "mesh dp = 4" in made.spec and "mesh tp = 2  # line 3: tensor-model-parallel-size 2" in made.spec


@pytest.mark.parametrize(
    "setting", ["--hybrid-context-parallel: true", "--optimizer-cpu-offload: true", "--freeze-all-layers: true"]
)
def test_what_is_not_modelled_is_not_passed_over(setting: str) -> None:
    spec = checked("megatron", megatron(setting))
    assert spec.verdict == "error" and "PL503" in codes(spec)


def test_settings_are_sorted() -> None:
    made = imported(
        "megatron", megatron("--log-interval: 1", "--fp8-format: e4m3", "--frobnicate: 3", "--moe-aux-loss-coeff: 0.1")
    )
    assert {finding.code for finding in made.findings} == {"NT20", "NT21", "NT23"}
    assert "log-interval" in made.ignored


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (Groups(1, 1, 1, 1, False), ["dp"]),
        (Groups(2, 2, 1, 1, False), ["dp", "cp", "tp"]),
        (Groups(2, 1, 1, 16, True), ["edp", "ep", "tp"]),
        (Groups(4, 1, 2, 4, True), ["edp", "ep", "tp_ep", "tp_etp"]),
        (Groups(2, 2, 2, 4, True), ["edp", "ep", "cp", "tp"]),
        (Groups(2, 2, 4, 1, True), ["dp", "cp", "tp"]),
        (Groups(4, 1, 1, 2, True), ["dp", "tp_edp", "tp_ep"]),
        (Groups(2, 1, 2, 1, True, 2), ["instance", "edp", "tp"]),
    ],
)
def test_the_common_refinement_of_dense_and_expert_groups(groups: Groups, names: list[str]) -> None:
    assert refine(groups, "instance").names() == names


def test_groups_that_cross_each_other() -> None:
    with pytest.raises(RanksDoNotFit, match="cross each other"):
        refine(Groups(2, 3, 1, 4, True), "instance")
    with pytest.raises(RanksDoNotFit, match="not a multiple"):
        refine(Groups(2, 1, 1, 1, False, ranks=3), "instance")


def test_the_newest_version_is_the_default() -> None:
    assert imported("megatron", megatron()).version == "0.20"
    assert Request().version is None
