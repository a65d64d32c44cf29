"""Meshes too large to run: one process, as rank 0 of a process group that only pretends to communicate.

Values are wrong by design, so nothing is compared; what is held and sent is counted as ever."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import torch.distributed as dist
from msgspec import Struct

from placelogic.replay.cases import Case
from placelogic.replay.judge import Choice
from placelogic.replay.launch import Place, launch
from placelogic.replay.native import formulas
from placelogic.replay.native.counting import Payload
from placelogic.replay.native.parallel import mesh_of, parallel
from placelogic.replay.native.recognise import Native, NoComponent
from placelogic.replay.native.train import COUNTED, held_by, load, optimizer_bytes, sample
from placelogic.replay.native.transformer import Widths
from placelogic.report.replayed import Bytes, Replayed

LARGE = Widths(layers=2, hidden=256, heads=8, ffn=1024, vocab=1024, length=8)
MOST = 4096
"""Ranks that a mesh of torch is made for in reasonable time."""


class Counted(Struct, frozen=True):
    """Bytes of rank 0, between steps and in one step; the most at any moment, by torch's tracker."""

    held: Mapping[str, int]
    sent: Mapping[str, int]
    peak: int


def check(native: Native) -> None:
    """Raises NoComponent where one rank's view does not say it all."""
    roles = set(native.roles.values()) - {"idle"}
    if not roles <= {"shard", "replicate", "tensor"} or "shard" not in roles:
        raise NoComponent("without running, only FSDP2, hybrid or with tensor parallelism, is counted")
    if native.clip or native.master or native.offload:
        raise NoComponent("clipping, master copies and offloading are not counted without running")
    if native.microbatches > 4 or prod(native.sizes.values()) > MOST:
        raise NoComponent(f"at most {MOST} ranks and 4 micro-batches are counted without running")
    if LARGE.heads % native.size("tensor"):
        raise NoComponent(f"{LARGE.heads} heads cannot be cut in {native.size('tensor')}")


def counted(native: Native, seed: int = 0, limit: float = 300.0) -> Counted:
    """Raises ReplayFailed."""
    load()
    (answer,) = launch(1, lambda rank: _count(native, seed), Place(), limit)
    return answer


def _count(native: Native, seed: int) -> Counted:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.destroy_process_group()
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=prod(native.sizes.values()))
    job = parallel(native, LARGE, mesh_of(native, "cpu"), "adam", seed)
    payload = Payload()
    held: dict[str, int] = {}
    for step in range(1, COUNTED + 1):
        tokens, targets = sample(step, seed, native.microbatches, LARGE)
        job.optimizer.zero_grad()
        if step < COUNTED:
            job.step(tokens, targets)
            job.optimizer.step()
            continue
        with payload:
            job.step(tokens, targets)
        held = held_by(job)
        with payload:
            job.optimizer.step()
        held["optimizer"] = optimizer_bytes(job.optimizer)
    return Counted(held, dict(payload.bytes), _peak(native, seed))


def _peak(native: Native, seed: int) -> int:
    """Of a second step, in which the optimizer has its state."""
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker

    job = parallel(native, LARGE, mesh_of(native, "cpu"), "adam", seed)
    tracker = FSDPMemTracker(job.modules[0], job.optimizer)
    tokens, targets = sample(1, seed, native.microbatches, LARGE)
    tracker.track_inputs((tokens, targets))
    for _ in range(2):
        with tracker:
            job.step(tokens, targets)
            job.optimizer.step()
            job.optimizer.zero_grad()
        tracker.reset_mod_stats()
    return max(found["Total"] for found in tracker.get_tracker_snapshot("peak").values())


def replayed(case: Case, native: Native, choice: Choice) -> Replayed:
    """The entry of a report."""
    found = counted(native, choice.seed, choice.limit)
    return Replayed(
        spec=case.name,
        verdict=case.verdict,
        mesh=dict(case.meeting.sizes),
        quantities=dict(case.meeting.quantities),
        way=f"{native.name}, counted on one rank",
        reason="the mesh is too large to run: bytes only, no values",
        result="counted",
        agrees=None,
        optimizers=("adam",),
        bytes=tuple(amounts(native, found)),
    )


def amounts(native: Native, found: Counted, width: int = 8) -> Iterator[Bytes]:
    mine = formulas.part(native, LARGE, 0)
    derived: dict[str, int] = {}
    for state, amount in formulas.held(native, LARGE, mine, 2, width).items():
        derived[f"{state} held"] = amount
    derived |= formulas.sent(native, LARGE, mine, 1, native.microbatches, 0, width)
    for what in sorted({*derived, *found.sent}, key=lambda name: (not name.endswith("held"), name)):
        measured = found.held[what.split()[0]] if what.endswith("held") else found.sent.get(what, 0)
        cause = None
        if measured != derived.get(what, 0) and what != "all-reduce":
            cause = f"FSDP2 pads dimension 0 of every tensor to a multiple of {native.size('shard')}"
        yield Bytes(what, measured, derived.get(what, 0), cause)
    yield Bytes("peak", found.peak, None, "FSDPMemTracker, activations and buffers of collectives included")


def padded(native: Native, width: int = 8) -> dict[str, int]:
    """Parameters held by rank 0, and gathered at once, with the padding of FSDP2."""
    t, n, s = native.size("tensor"), native.size("shard"), LARGE
    layer = [(s.hidden // t, s.hidden)] * 3 + [(s.hidden, s.hidden // t), (s.ffn // t, s.hidden)]
    layer += [(s.hidden, s.ffn // t), (s.hidden, 1), (s.hidden, 1)]
    shapes = layer * s.layers + [(s.vocab // t, s.hidden)] * 2 + [(s.hidden, 1)]
    own = sum(-(-rows // n) * rest for rows, rest in shapes)
    return {"held": own * width, "gathered": n * own * width}
