"""Processes of one replay: forked after torch is loaded, met at a file, bounded in time, never left behind."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import torch
import torch.distributed as dist
from msgspec import Struct

LIMIT = 120.0
"""Seconds that one replay may take, unless told otherwise."""


class ReplayFailed(Exception):
    """A process died, hung or raised: which rank, and its traceback where there is one."""


class Place(Struct, frozen=True):
    """Where numbers live, and what they are."""

    device: str = "cpu"
    dtype: str = "float64"


def launch(world: int, work: Callable[[int], Any], place: Place = Place(), limit: float = LIMIT) -> list[Any]:
    """Run `work(rank)` on `world` processes and return what each returned, by rank. Raises ReplayFailed.

    The parent must not have run any autograd: threads do not survive a fork. Under torchrun this process is
    one of the ranks already, and every one of them gets all answers."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return _as_started(world, work, place, limit)
    context = get_context("fork")
    _load()
    with tempfile.TemporaryDirectory(prefix="placelogic-") as folder:
        processes: list[BaseProcess] = []
        pipes: list[Connection] = []
        try:
            for rank in range(world):
                ours, theirs = context.Pipe(duplex=False)
                arguments = (rank, world, work, place, os.path.join(folder, "meet"), theirs, limit, os.getpid())
                process = context.Process(target=_worker, args=arguments, daemon=True)
                process.start()
                theirs.close()
                processes.append(process)
                pipes.append(ours)
            return _collect(processes, pipes, time.monotonic() + limit)
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
            for process in processes:
                process.join()
            for pipe in pipes:
                pipe.close()


def _collect(processes: list[BaseProcess], pipes: list[Connection], deadline: float) -> list[Any]:
    """Every rank's answer. The first failure ends it: the others only wait for the one that failed."""
    answers: dict[int, Any] = {}
    waiting = dict(enumerate(pipes))
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0:
            late = ", ".join(str(rank) for rank in sorted(waiting))
            raise ReplayFailed(f"no answer in time from rank {late}")
        # A process that dies closes its pipe, which wakes us as well.
        for ready in connection.wait(list(waiting.values()), timeout=left):
            rank = next(r for r, pipe in waiting.items() if pipe is ready)
            try:
                good, answer = pipes[rank].recv()
            except EOFError:
                processes[rank].join(5)
                raise ReplayFailed(f"rank {rank} died ({_cause(processes[rank].exitcode)})") from None
            if not good:
                raise ReplayFailed(_first_failure(rank, answer, waiting))
            answers[rank] = answer
            del waiting[rank]
    return [answers[rank] for rank in range(len(pipes))]


def _first_failure(rank: int, told: str, waiting: dict[int, Connection]) -> str:
    """The failure to tell: one that is not about losing the connection to a rank that failed before."""
    failures = {rank: told}
    for other in connection.wait([pipe for r, pipe in waiting.items() if r != rank], timeout=0.5):
        number = next(r for r, pipe in waiting.items() if pipe is other)
        with suppress(EOFError):
            good, answer = waiting[number].recv()
            if not good:
                failures[number] = answer
    first = next((r for r, text in sorted(failures.items()) if "onnection" not in text), rank)
    return f"rank {first} failed:\n{failures[first]}"


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def _worker(
    rank: int,
    world: int,
    work: Callable[[int], Any],
    place: Place,
    meet: str,
    pipe: Connection,
    limit: float,
    parent: int,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends us
    _die_with_the_parent(parent)
    _quiet()
    try:
        torch.set_num_threads(1)
        _settle(rank, place)
        bound = timedelta(seconds=limit)
        dist.init_process_group(
            _backend(world, place), init_method=f"file://{meet}", rank=rank, world_size=world, timeout=bound
        )
        answer = work(rank)
        sys.stdout.flush()
        sys.stderr.flush()
        pipe.send((True, answer))
        while os.getppid() == parent:  # which ends us; ranks that still meet others fail where one leaves
            time.sleep(0.05)
    except BaseException:
        with suppress(OSError):
            pipe.send((False, traceback.format_exc()))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)  # nothing of the parent is to be run at exit


def _as_started(world: int, work: Callable[[int], Any], place: Place, limit: float) -> list[Any]:
    """torchrun has started the ranks."""
    started = int(os.environ["WORLD_SIZE"])
    if started != world:
        raise ReplayFailed(f"torchrun started {started} processes, and this mesh has {world} devices")
    _quiet()
    _settle(int(os.environ["LOCAL_RANK"]), place)
    dist.init_process_group(_backend(world, place), timeout=timedelta(seconds=limit))
    try:
        answers: list[Any] = [None] * world
        dist.all_gather_object(answers, work(dist.get_rank()))
        return answers
    except Exception:
        raise ReplayFailed(f"rank {dist.get_rank()} failed:\n{traceback.format_exc()}") from None
    finally:
        dist.destroy_process_group()


def _settle(rank: int, place: Place) -> None:
    """Numbers of this kind, on this device. Ranks share a GPU where there are too few."""
    torch.set_default_dtype(getattr(torch, place.dtype))
    if place.device == "cuda":
        torch.cuda.set_device(rank % torch.cuda.device_count())
        torch.cuda.init()  # else a device mesh chooses anew, and refuses ranks that are no multiple of the GPUs
    if place.device != "cpu":  # it costs time on every operation
        torch.set_default_device(place.device)


def _backend(world: int, place: Place) -> str:
    """On GPUs NCCL, with gloo for what lies on the host. Ranks that share a GPU use gloo for everything."""
    return "cpu:gloo,cuda:nccl" if place.device == "cuda" and not shared(world, place) else "gloo"


def shared(world: int, place: Place) -> bool:
    """Whether ranks share GPUs, which NCCL does not do. Under torchrun each machine has its own."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    return place.device == "cuda" and gpus() < here


def _die_with_the_parent(parent: int) -> None:
    """On Linux; elsewhere the parent's `finally` has to do."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _load() -> None:
    """What workers would import one by one: once, before they are forked."""
    import torch.distributed.device_mesh
    import torch.distributed.tensor  # noqa: F401


def _quiet() -> None:
    """Components warn of what is slow or old; a replay is about values."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def gpus() -> int:
    """How many there are; found out without waking them, as a process that has cannot be forked."""
    return torch.cuda.device_count() if torch.backends.cuda.is_built() else 0
