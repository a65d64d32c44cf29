"""DeepSpeed's JSON: stages, batches, "auto", offloading, experts, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.frontends.helpers import checked, codes, imported, problem


def ds(**settings: object) -> str:
    return json.dumps({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, **settings}, indent=1)


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "more", [{}, {"bf16": {"enabled": True}, "gradient_clipping": 1.0}, {"prescale_gradients": True}]
)
def test_every_stage_is_proved(stage: int, more: dict[str, object]) -> None:
    spec = checked("deepspeed", ds(zero_optimization={"stage": stage}, **more))
    assert spec.verdict == "proved" and "dp" in spec.open_sizes
    assert ("NT04" in codes(spec, "note")) == (stage > 1), "reduced in every micro-batch"


@pytest.mark.parametrize(
    "settings",
    [
        {
            "zero_optimization": {
                "stage": 3,
                "offload_optimizer": {"device": "cpu"},
                "offload_param": {"device": "nvme"},
            }
        },
        {"zero_optimization": {"stage": 2, "cpu_offload": True}, "fp16": {"enabled": True}},
        {"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}},
        {"sequence_parallel_size": 2},
        {"tensor_parallel": {"autotp_size": 4}, "zero_optimization": {"stage": 2}},
        {"expert_parallel": {"enabled": True, "autoep_size": 2}, "zero_optimization": {"stage": 2}},
        {"expert_parallel": {"enabled": True, "autoep_size": 4}, "zero_optimization": {"stage": 3}},
        {"expert_parallel": {"enabled": False, "autoep_size": 4}},
        {"pipeline": {"stages": 4}, "zero_optimization": {"stage": 1}},
        {"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": 2}},
        {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}},
        {"zero_optimization": {"stage": 3, "mics_shard_size": 8}, "bf16": {"enabled": True}, "gradient_clipping": 1.0},
    ],
    ids=json.dumps,
)
def test_what_it_runs_is_proved(settings: dict[str, object]) -> None:
    spec = checked("deepspeed", ds(**settings))
    assert spec.verdict == "proved", [finding.message for finding in spec.findings]


def test_pipeline_with_stage_2_is_right_costly_and_not_built() -> None:
    spec = checked("deepspeed", ds(pipeline={"stages": 2}, zero_optimization={"stage": 2}))
    assert spec.verdict == "proved"
    assert codes(spec, "note") >= {"NT04", "UB04"}
    (note,) = [finding for finding in spec.findings if finding.code == "UB04"]
    assert "DeepSpeed refuses ZeRO stages 2 and 3 with pipeline parallelism" in note.message
    assert "only not built" in note.message and "the mathematics is proved" in note.message


def test_a_sum_where_a_mean_belongs() -> None:
    spec = checked("deepspeed", ds(gradient_allreduce_op="sum"))
    assert spec.verdict == "refuted" and "GI03" in codes(spec) and "UB05" in codes(spec, "note")


def test_auto_is_the_trainer_and_stays_open() -> None:
    auto = ds(train_batch_size="auto", gradient_accumulation_steps="auto", zero_optimization={"stage": 1})
    made = imported("deepspeed", auto)
    assert "use hf_trainer_loss(dp)" in made.spec and "microbatches M" in made.spec
    own = imported("deepspeed", auto, given={"trainer": "own", "gradient_accumulation_steps": "8"})
    assert (
        "use deepspeed_accumulation()" in own.spec
        and "microbatches 8  # --set gradient_accumulation_steps=8" in own.spec
    )


def test_batches() -> None:
    assert "mesh dp = 4" in imported("deepspeed", ds(train_batch_size=32)).spec
    assert (
        "assume 2*M*dp == 32" in imported("deepspeed", ds(train_batch_size=32, gradient_accumulation_steps=None)).spec
    )
    assert "mesh dp = 8  # --world" in imported("deepspeed", ds(tensor_parallel={"autotp_size": 2}), world=16).spec
    wrong = problem("deepspeed", ds(train_batch_size=30))
    assert wrong.code == "PL504" and "is not a multiple" in wrong.message


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({"zero_optimization": {"stage": "two"}}, "PL501", "must be a whole number, not `two`"),
        ({"zero_optimization": {"stage": 4}}, "PL501", "is 0, 1, 2 or 3"),
        ({"zero_optimization": {"stage": True}}, "PL501", "must be a whole number"),
        ({"gradient_clipping": "much"}, "PL501", "must be a number"),
        ({"bf16": {"enabled": True}, "fp16": {"enabled": True}}, "PL504", "cannot both be enabled"),
        ({"optimizer": {"type": "OneBitAdam"}}, "PL503", "is not modelled"),
        ({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}, "PL503", "at stage 3 only"),
        ({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}, "PL503", "a part"),
        ({"gradient_allreduce_op": "max"}, "PL501", "mean or sum"),
    ],
)
def test_what_is_refused(settings: dict[str, object], code: str, said: str) -> None:
    one = problem("deepspeed", ds(**settings))
    assert one.code == code and said in one.message and one.span.line > 1


def test_what_changes_a_step_and_is_not_modelled_is_named_and_not_proved() -> None:
    text = ds(zero_optimization={"stage": 2, "zenflow": {"topk_ratio": 0.1}})
    made = imported("deepspeed", text)
    assert "# NOT IN THIS SPEC, line 6: `zero_optimization.zenflow` is not modelled" in made.spec
    spec = checked("deepspeed", text)
    assert spec.verdict == "error" and "PL503" in codes(spec)
    assert checked("deepspeed", text, given={"zero_optimization.zenflow": "null"}).verdict == "proved"


@pytest.mark.parametrize("setting", ["zero_quantized_gradients", "zeropp_loco_param"])
def test_quantised_gradients_are_not_passed_over(setting: str) -> None:
    spec = checked("deepspeed", ds(zero_optimization={"stage": 3, setting: True}))
    assert spec.verdict == "error" and "PL503" in codes(spec)


def test_settings_are_sorted() -> None:
    text = ds(
        compression_training={"layer_reduction": {"enabled": True}}, steps_per_print=3, zero_optimisation={"stage": 2}
    )
    made = imported("deepspeed", text)
    by_code = {finding.code: finding for finding in made.findings}
    (unknown,) = made.problems
    assert (unknown.code, unknown.span.line) == ("PL508", 10)
    assert unknown.help == "did you mean `zero_optimization`?; or `--allow-unknown zero_optimisation`"
    assert by_code["NT21"].message.startswith("`compression_training`")
    assert "steps_per_print" in made.ignored
