"""Processes that die, hang or raise end the run, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from placelogic.replay.launch import ReplayFailed, launch
from tests.replay.helpers import ROOT


def _gathered(rank: int) -> list[int]:
    import torch.distributed as dist

    found = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(found, torch.tensor([float(rank)]))
    return [int(one) for one in found]


def test_ranks_meet() -> None:
    assert launch(3, _gathered) == [[0, 1, 2]] * 3


def test_ranks_that_have_nothing_to_do_wait_for_those_that_still_meet() -> None:
    for _ in range(5):
        assert launch(4, int) == [0, 1, 2, 3]


def test_a_rank_that_raises_is_told_with_its_traceback() -> None:
    def work(rank: int) -> None:
        if rank == 1:
            raise ValueError("this one failed")
        _gathered(rank)

    with pytest.raises(ReplayFailed, match=r"rank 1 failed:\nTraceback[\s\S]*ValueError: this one failed"):
        launch(2, work)


def test_a_rank_that_dies() -> None:
    def work(rank: int) -> None:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(30)

    start = time.monotonic()
    with pytest.raises(ReplayFailed, match=r"rank 1 died \(SIGKILL\)"):
        launch(2, work)
    assert time.monotonic() - start < 20


def test_a_rank_that_hangs() -> None:
    def work(rank: int) -> int:
        if rank == 1:
            time.sleep(60)
        return rank

    start = time.monotonic()
    with pytest.raises(ReplayFailed, match="no answer in time from rank 1"):
        launch(2, work, limit=2.0)
    assert time.monotonic() - start < 20


HANGING = """
import os, sys, time
from placelogic.replay.launch import launch
def work(rank):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(100)
launch(2, work)
"""


def _interruptible() -> None:
    """Also where the tests themselves run in the background of a shell, which has them ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(how: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", HANGING], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment, cwd=tmp_path, preexec_fn=_interruptible,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(how)
        parent.wait(30)
    deadline = time.monotonic() + 10
    while any(_alive(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [worker for worker in workers if _alive(worker)]


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
