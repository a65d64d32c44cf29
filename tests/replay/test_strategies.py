"""The standard library on small meshes, both ways, and what is held and sent."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from placelogic.replay.cases import Case
from placelogic.replay.judge import Choice, replay
from placelogic.replay.native import replay as native_replay
from placelogic.replay.native.recognise import NoComponent, recognise
from tests.replay.helpers import cases_of

WEIGHTS = """
let h, V, L
weights embed { size V*h, kind embedding, used on first }
weights w { size 4*h*h*L, layers L, dims in out }
weights norm { size 2*h*L, layers L, kind vector }
weights head { size V*h, kind embedding, used on last }
"""

STRATEGIES = {
    "data_parallel": "mesh dp\nuse data_parallel(dp)\nmicrobatches M",
    "zero1": "mesh dp\nuse zero1(dp)",
    "zero3": "mesh dp\nuse zero3(dp)",
    "fsdp": "mesh dp\nuse fsdp(dp, reshard_after_forward = false)\nmicrobatches M",
    "hsdp": "mesh r, s\nuse hsdp(replicate = r, shard = s)",
    "tensor_parallel": "mesh tp\nuse tensor_parallel(tp)",
    "sequence_parallel": "mesh tp\nuse sequence_parallel(tp)",
    "pipeline": "mesh pp\nuse pipeline(pp)\nmicrobatches M",
    "interleaved": "mesh pp\nuse pipeline(pp, schedule = interleaved_1f1b, chunks = 2)\nmicrobatches M",
    "looped": "mesh pp\nuse pipeline(pp, schedule = looped_bfs, chunks = 2)\nmicrobatches M",
    "zero_bubble": "mesh pp\nuse pipeline(pp, schedule = interleaved_zero_bubble, chunks = 2)\nmicrobatches M",
    "zbv": "mesh pp\nuse pipeline(pp, schedule = zbv)\nmicrobatches M",
    "dualpipe_v": "mesh pp\nuse pipeline(pp, schedule = dualpipe_v)\nmicrobatches M",
    "context_parallel": "mesh cp\nuse context_parallel(cp)",
    "ulysses": "mesh cp\nuse ulysses(cp)",
    "expert_parallel": (
        "mesh ep\nlet E, f\nweights expert { size E*h*f, kind expert, routed over ep }\nuse expert_parallel(ep)"
    ),
}
EXACT = (
    "data_parallel", "zero3", "fsdp", "hsdp", "tensor_parallel", "sequence_parallel", "pipeline", "interleaved",
    "looped", "zero_bubble", "zbv", "dualpipe_v", "context_parallel", "ulysses",
)  # fmt: skip
"""Where every byte sent is as derived, with SGD."""


def case_of(name: str, body: str) -> Case:
    mesh, *rest = body.split("\n")
    weights = WEIGHTS if "pp" in mesh else WEIGHTS.replace(", used on first", "").replace(", used on last", "")
    (case,) = cases_of(mesh + weights + "\n".join(rest) + "\n")
    return case


def test_every_strategy_directly() -> None:
    every = [case_of(name, body) for name, body in STRATEGIES.items()]
    for outcome in replay(every):
        assert outcome.result == "equal", (outcome.case.name, outcome.worst)


@pytest.mark.parametrize("name", STRATEGIES)
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
