"""The standard library on small meshes, both ways, and what is held and sent."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from placelogic.replay.judge import Choice, replay
from placelogic.replay.native import replay as native_replay
from placelogic.replay.native.recognise import NoComponent, recognise
from tests.replay.helpers import ROOT
from tests.replay.library import MODELS, STRATEGIES, case_of, every

EXACT = (
    "data_parallel", "zero3", "fsdp", "hsdp", "tensor_parallel", "sequence_parallel", "pipeline", "interleaved",
    "looped", "zero_bubble", "zbv", "dualpipe_v", "context_parallel", "ulysses",
)  # fmt: skip
"""Where every byte sent is as derived, with SGD."""

NO_COMPONENT = ("zero2", "offload", "activation_checkpointing")
"""Torch has none that keeps whole parameters and sharded gradients, and none for the other two by themselves."""


def test_the_whole_library_is_here() -> None:
    """But for what says how a framework does one of these (tests/frontends)."""
    told = {path.stem for path in (ROOT / "placelogic/std").glob("*.place")}
    assert told <= {*STRATEGIES, *MODELS}


def test_every_strategy_and_model_directly() -> None:
    for outcome in replay(every()):
        assert outcome.result == "equal", (outcome.case.name, outcome.worst)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in NO_COMPONENT])
def test_every_strategy_by_its_component(name: str) -> None:
    case = case_of(name, STRATEGIES[name])
    meeting = case.meeting
    native = recognise(meeting.program, meeting.sizes, meeting.quantities)
    told = list(native_replay.replayed(case, native, Choice(optimizers=("sgd",))))
    # Attention in three ways; scores gathered, or cut up to the loss.
    counts = {"context_parallel": 3, "ulysses": 3, "tensor_parallel": 2, "sequence_parallel": 2}
    assert len(told) == counts.get(name, 1)
    for one in told:
        assert one.result == "equal", one.differences
        sent = [amount for amount in one.bytes if not amount.what.endswith("held")]
        assert sent
        unexplained = [amount for amount in one.bytes if amount.measured != amount.derived and not amount.cause]
        assert unexplained == []
        if name in EXACT:
            assert [amount for amount in sent if amount.measured != amount.derived] == []


@pytest.mark.slow
def test_three_dimensions_by_components() -> None:
    body = "mesh pp, dp, tp\nuse pipeline(pp) * fsdp(dp) * sequence_parallel(tp)\nmicrobatches M"
    case = case_of("three", body)
    meeting = case.meeting
    native = recognise(meeting.program, meeting.sizes, meeting.quantities)
    assert "pipelining (Schedule1F1B) x FSDP2 x DTensor" in native.name
    (told,) = native_replay.replayed(case, native, Choice())
    assert told.result == "equal"
    assert all(amount.measured == amount.derived or amount.cause for amount in told.bytes)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("mesh dp\nuse zero2(dp)", "whole params and sharded gradients"),
        ("mesh dp\nuse data_parallel(dp)\ntokens uneven\nloss mean global", "components divide by the tokens"),
        ("mesh dp\nuse data_parallel(dp)\noptimizer muon", "muon needs more than one element"),
        ("mesh tp\nuse tensor_parallel(tp)\nclip global_norm", "clip_grad_norm_ raises"),
        ("mesh dp\nuse data_parallel(dp)\nprecision { params bf16, gradients bf16, master fp32 }", "those of FSDP2"),
        ("mesh dp\nuse zero3(dp)\nplace * { optimizer offloaded }", "and nothing less"),
        ("mesh dp\nuse data_parallel(dp)\nfreeze w", "frozen"),
    ],
)
def test_what_no_component_does(body: str, reason: str) -> None:
    case = case_of("none", body)
    with pytest.raises(NoComponent, match=reason):
        recognise(case.meeting.program, case.meeting.sizes, case.meeting.quantities)
