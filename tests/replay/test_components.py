"""What components of torch do beside a strategy: clipping, whole replicas of what is cut, tied ends, master copies,
offloading; and what they get wrong, or refuse."""

from __future__ import annotations

from functools import cache

import pytest

torch = pytest.importorskip("torch")

from placelogic.replay.judge import Choice
from placelogic.replay.launch import ReplayFailed, launch
from placelogic.replay.native import parallel, replay
from placelogic.replay.native.recognise import Native, recognise
from placelogic.replay.native.tied import Ends
from placelogic.replay.native.transformer import Transformer, Widths
from placelogic.report.replayed import Replayed
from tests.replay.helpers import cases_of
from tests.replay.library import WEIGHTS

WHOLE = WEIGHTS.replace(", used on first", "").replace(", used on last", "")
TIED = WEIGHTS.replace("used on first", "used on first and last").split("weights head")[0]
EXPERT = "let E, f\nweights expert { size E*h*f, kind expert, routed over ep }\n"
CLIP = "clip global_norm\n"
RUN: dict[str, tuple[str, str, str]] = {
    "ddp_clipped": ("dp", WHOLE, "use data_parallel(dp)\nmicrobatches M\n" + CLIP),
    "zero1_clipped": ("dp", WHOLE, "use zero1(dp)\n" + CLIP),
    "fsdp_clipped": ("dp", WHOLE, "use zero3(dp)\n" + CLIP),
    "hsdp_clipped": ("r, s", WHOLE, "use hsdp(replicate = r, shard = s)\n" + CLIP),
    "sequence_clipped": ("tp", WHOLE, "use sequence_parallel(tp)\n" + CLIP),
    "context_clipped": ("cp", WHOLE, "use context_parallel(cp)\n" + CLIP),
    "experts_clipped": ("ep", WHOLE + EXPERT, "use expert_parallel(ep)\n" + CLIP),
    "pipeline_clipped": ("pp", WEIGHTS, "use pipeline(pp)\nmicrobatches M\n" + CLIP),
    "fsdp_sequence_clipped": ("dp, tp", WHOLE, "use fsdp(dp) * sequence_parallel(tp)\n" + CLIP),
    "replicated_tensor": ("dp, tp", WHOLE, "use data_parallel(dp) * tensor_parallel(tp)\nmicrobatches M\n"),
    "replicated_sequence_clipped": ("dp, tp", WHOLE, "use data_parallel(dp) * sequence_parallel(tp)\n" + CLIP),
    "replicated_stages": ("pp, dp", WEIGHTS, "use pipeline(pp) * data_parallel(dp)\nmicrobatches M\n"),
    "tied": ("pp", TIED, "use pipeline(pp)\nmicrobatches M\n"),
    "tied_interleaved_clipped": (
        "pp",
        TIED,
        "use pipeline(pp, schedule = interleaved_1f1b, chunks = 2)\nmicrobatches M\n" + CLIP,
    ),
    "tied_zbv_clipped": ("pp", TIED, "use pipeline(pp, schedule = zbv)\nmicrobatches M\n" + CLIP),
    "tied_fsdp_clipped": ("pp, dp", TIED, "use pipeline(pp) * fsdp(dp)\nmicrobatches M\n" + CLIP),
    "tied_shared_by_fsdp_clipped": ("dp", TIED, "use fsdp(dp, reshard_after_forward = false)\n" + CLIP),
    "tied_ddp": ("dp", TIED, "use data_parallel(dp)\n"),
    "master": ("dp", WHOLE, "use zero3(dp)\nprecision { params bf16, gradients bf16, master fp32 }\n"),
    "offload": ("dp", WHOLE, "use zero3(dp)\nplace * { params offloaded, optimizer offloaded, gradients offloaded }\n"),
}
SLOW = {
    "fsdp_sequence_clipped",
    "replicated_sequence_clipped",
    "tied_fsdp_clipped",
    "replicated_stages",
    "hsdp_clipped",
}
NAMES = {
    "ddp_clipped": "DistributedDataParallel x clip_grad_norm_",
    "pipeline_clipped": "pipelining (Schedule1F1B) x clip_grad_norm_, its norm summed by this package",
    "replicated_tensor": "replicate of FSDP2 x DTensor tensor parallelism",
    "tied": "pipelining (Schedule1F1B) x tied ends summed by this package",
    "master": "FSDP2 with MixedPrecisionPolicy",
    "offload": "FSDP2 with CPUOffloadPolicy",
}


def trained(name: str, choice: Choice | None = None) -> list[Replayed]:
    mesh, weights, body = RUN[name]
    (case,) = cases_of(f"mesh {mesh}\n{weights}{body}")
    assert case.verdict == "proved"
    native = recognise(case.meeting.program, case.meeting.sizes, case.meeting.quantities)
    return list(replay.replayed(case, native, choice or Choice(optimizers=("sgd",))))


@cache
def right(name: str) -> list[Replayed]:
    """As it is, without anything made wrong: run once."""
    return trained(name)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in RUN])
def test_trains_like_one_device(name: str) -> None:
    every = right(name)
    for one in every:
        assert one.result == "equal", one.differences
        assert ("clip" in one.differences) == ("clipped" in name)
        assert [b for b in one.bytes if b.measured != b.derived and not b.cause] == []
    if name in NAMES:
        assert every[0].way == NAMES[name]


def test_reports_say_what_is_special() -> None:
    assert "computed in float32" in right("master")[0].reason
    assert right("master")[0].differences["params"] > 1e-11
    assert right("offload")[0].reason == "on the CPU everything is on the host, and nothing moves"


def test_clip_grad_norm_of_a_stage_alone_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch's function does on each stage of a pipeline: the norm is of this stage only."""
    monkeypatch.setattr(parallel, "clipped", lambda every, here, also, group: parallel.by_torch(every))
    (one,) = trained("pipeline_clipped")
    assert one.result == "different"
    assert one.agrees is False
    assert one.differences["clip"] > 1e-2


def test_tied_ends_that_nobody_sums_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ends, "sum", lambda self: None)
    (one,) = trained("tied")
    assert one.result == "different"


def test_a_tied_weight_counted_at_both_ends_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = parallel.clipped
    monkeypatch.setattr(parallel, "clipped", lambda every, here, also, group: right(every, every, also, group))
    (one,) = trained("tied_interleaved_clipped")
    assert one.result == "different"


def _native(**sizes: int) -> Native:
    return Native({name: name for name in sizes}, sizes, False, True, None, False, 1, 1)  # type: ignore[misc]


def test_ddp_refuses_dtensors() -> None:
    """Which is why replicas of tensor parallelism are those of FSDP2."""

    def work(rank: int) -> None:
        mesh = parallel.mesh_of(_native(replicate=1, tensor=2), "cpu")
        model = Transformer(Widths())
        parallel.tensor_parallel(model, mesh["tensor"], False)
        torch.nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group("replicate"))

    with pytest.raises(ReplayFailed, match=r"DTensor|sharding strategy"):
        launch(2, work)


def test_clip_grad_norm_refuses_gradients_of_two_kinds() -> None:
    """Tensor parallelism without sequence parallelism leaves norms as they were."""

    def work(rank: int) -> None:
        mesh = parallel.mesh_of(_native(tensor=2), "cpu")
        model = Transformer(Widths())
        parallel.tensor_parallel(model, mesh["tensor"], False)
        model(torch.zeros(1, 8, dtype=torch.long)).sum().backward()
        parallel.by_torch(model.parameters())

    with pytest.raises(ReplayFailed, match=r"mixed torch.Tensor and DTensor"):
        launch(2, work)
