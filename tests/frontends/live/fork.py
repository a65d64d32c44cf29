"""Runs a function on several ranks: forked processes that talk over gloo, without ports."""

from __future__ import annotations

import multiprocessing
import os
import queue
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

# What ranks use is loaded once, before they are forked.
for name in ("torch._dynamo", "placelogic.cost", "placelogic.elaborate.derive", "placelogic.syntax.parse",
             "placelogic.frontends.live.spec", "placelogic.frontends.live.tracing"):  # fmt: skip
    import_module(name)


def run(
    ranks: int, function: Callable[..., Any], *arguments: Any, group: bool = True, seconds: float = 240
) -> list[Any]:
    """What the function returned on each rank. AssertionError with the traceback of the first rank that failed."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results: Any = context.Queue()
        workers = [
            context.Process(target=_work, args=(rank, ranks, folder if group else None, results, function, arguments))
            for rank in range(ranks)
        ]
        for worker in workers:
            worker.start()
        done: dict[int, Any] = {}
        end = time.monotonic() + seconds
        try:
            while len(done) < ranks:
                rank, failed, value = results.get(timeout=max(0.1, end - time.monotonic()))
                assert not failed, f"rank {rank}:\n{value}"
                done[rank] = value
        except queue.Empty:
            raise AssertionError(f"ranks {sorted(set(range(ranks)) - set(done))} did not answer") from None
        finally:
            for worker in workers:
                worker.join(2 if len(done) == ranks else 0.2)
                if worker.is_alive():
                    worker.kill()
        return [done[rank] for rank in range(ranks)]


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returned in a process of its own, which sets up no process group."""
    return run(1, function, *arguments, group=False)[0]


def _work(
    rank: int, ranks: int, folder: str | None, results: Any, function: Callable[..., Any], arguments: Any
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        if folder is not None:
            meet = f"file://{folder}/rendezvous"
            dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=ranks)
        answer = (rank, False, function(*arguments))
    except BaseException:
        answer = (rank, True, traceback.format_exc())
    results.put(answer)
    results.close()
    results.join_thread()
    os._exit(0)
