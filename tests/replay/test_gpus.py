"""What is done on GPUs, where there is none: which GPU a rank takes, over what ranks talk, what is left out. The
functions of torch that need one are stood in for; docs/replay.md has the commands for a machine that has GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from placelogic.cli import main
from placelogic.problem import SpecError
from placelogic.replay import launch
from placelogic.replay.launch import Place
from placelogic.replay.native import parallel, replay
from placelogic.replay.native.recognise import Native, NoComponent
from placelogic.replay.specs import need_torch

CUDA = Place("cuda")
NCCL = "cpu:gloo,cuda:nccl"


class Pretended:
    """GPUs that only count. `chosen`: what ranks of this process took."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self.chosen: list[int] = []
        self.calls: list[str] = []
        monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
        monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "set_device", self.chosen.append)
        monkeypatch.setattr(torch.cuda, "init", lambda: self.calls.append("init"))
        monkeypatch.setattr(torch, "set_default_device", lambda device: self.calls.append(str(device)))


def test_every_rank_takes_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = Pretended(monkeypatch, 4)
    dtype = torch.get_default_dtype()
    try:
        for rank in range(4):
            launch._settle(rank, CUDA)
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(dtype)
    assert gpus.chosen == [0, 1, 2, 3]
    assert gpus.calls == ["init", "cuda"] * 4


def test_ranks_share_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = Pretended(monkeypatch, 3)
    dtype = torch.get_default_dtype()
    try:
        for rank in range(4):
            launch._settle(rank, CUDA)
    finally:
        torch.set_default_dtype(dtype)
    assert gpus.chosen == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("count", "world", "local", "backend"),
    [
        (4, 4, None, NCCL),
        (8, 4, None, NCCL),
        (1, 1, None, NCCL),
        (1, 2, None, "gloo"),
        (3, 4, None, "gloo"),
        (4, 8, 4, NCCL),  # torchrun on two machines of four GPUs
        (4, 8, 8, "gloo"),
    ],
)
def test_over_what_ranks_talk(
    count: int, world: int, local: int | None, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Pretended(monkeypatch, count)
    if local is not None:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(local))
    assert launch._backend(world, CUDA) == backend
    assert launch.shared(world, CUDA) == (backend == "gloo")
    assert launch._backend(world, Place()) == "gloo"
    assert not launch.shared(world, Place())


def test_the_backend_is_one_that_torch_knows() -> None:
    """Host tensors too: what FSDP2 offloads is normed there."""
    config = torch.distributed.distributed_c10d.BackendConfig(torch.distributed.Backend(NCCL))
    assert config.get_device_backend_map() == {"cpu": "gloo", "cuda": "nccl"}


def test_torchrun_gives_the_local_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    Pretended(monkeypatch, 4)
    settled: list[tuple[int, Place]] = []
    started: list[str] = []

    def stop(backend: str, timeout: object) -> None:
        started.append(backend)
        raise KeyboardInterrupt

    for name, value in {
        "TORCHELASTIC_RUN_ID": "x",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "2",
        "LOCAL_WORLD_SIZE": "4",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(launch, "_settle", lambda rank, place: settled.append((rank, place)))
    monkeypatch.setattr(launch, "_quiet", lambda: None)
    monkeypatch.setattr(torch.distributed, "init_process_group", stop)
    with pytest.raises(KeyboardInterrupt):
        launch.launch(8, lambda rank: None, CUDA)
    assert settled == [(2, CUDA)]
    assert started == [NCCL]
    with pytest.raises(launch.ReplayFailed, match="torchrun started 8 processes, and this mesh has 4 devices"):
        launch.launch(4, lambda rank: None, CUDA)


def test_no_gpu_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with pytest.raises(SpecError) as raised:
        need_torch("a.place", "cuda")
    assert [problem.code for problem in raised.value.problems] == ["PL061"]
    Pretended(monkeypatch, 0)
    with pytest.raises(SpecError):
        need_torch("a.place", "cuda")
    Pretended(monkeypatch, 1)
    need_torch("a.place", "cuda")


def _native(**sizes: int) -> Native:
    return Native({name: name for name in sizes}, sizes, False, True, None, False, 1, 1)  # type: ignore[misc]


def test_pipelines_need_a_gpu_for_every_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the table of backends in torch's documentation gloo has no send and receive for GPUs."""
    Pretended(monkeypatch, 1)
    with pytest.raises(NoComponent, match="pipelines need a GPU for every rank"):
        replay.check(_native(stages=2), CUDA)
    replay.check(_native(stages=1), CUDA)
    replay.check(_native(shard=2), CUDA)
    replay.check(_native(stages=2), Place())
    Pretended(monkeypatch, 2)
    replay.check(_native(stages=2), CUDA)


@pytest.mark.parametrize(
    ("body", "ways", "left_out"),
    [
        ("mesh dp\n{}use zero3(dp)\n", ["direct", "FSDP2"], ""),
        ("mesh pp\n{}use pipeline(pp)\nmicrobatches 2\n", ["direct"], "pipelines need a GPU for every rank"),
        ("mesh cp\n{}use context_parallel(cp)\n", ["direct", "(all-gather)", "(Ulysses)"], ""),
    ],
)
def test_ranks_that_share_a_gpu(
    body: str,
    ways: list[str],
    left_out: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole command; tensors lie on the CPU instead, which gloo does not mind."""
    Pretended(monkeypatch, 1)
    made = parallel.init_device_mesh
    monkeypatch.setattr(parallel, "init_device_mesh", lambda device, *rest, **more: made("cpu", *rest, **more))
    file = tmp_path / "a.place"
    file.write_text(body.format("let P\nweights w { size P }\n"))
    assert main(["replay", str(file), "--device", "cuda", "--optimizer", "sgd"]) == 0
    out = capsys.readouterr().out
    assert out.count("equal, as the verdict says") == len(ways)
    assert all(way in out for way in ways)
    assert "(ring)" not in out
    assert left_out in out
