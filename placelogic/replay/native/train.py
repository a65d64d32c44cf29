"""Training with components beside single-device training: what differs, what is held, what is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from copy import deepcopy
from math import prod
from typing import Any

import torch
from msgspec import Struct, field
from torch import nn

from placelogic.replay.data import generator
from placelogic.replay.job import Gap
from placelogic.replay.launch import LIMIT, Place, launch, shared
from placelogic.replay.native.clipping import by_torch
from placelogic.replay.native.context import KINDS
from placelogic.replay.native.counting import Payload
from placelogic.replay.native.experts import Mixture
from placelogic.replay.native.own import context_parallel, expert_parallel
from placelogic.replay.native.parallel import NARROW, Parallel, mesh_of, needed_microbatches, optimizer_of, parallel
from placelogic.replay.native.recognise import Native
from placelogic.replay.native.transformer import Transformer, Widths, mean_loss, source, started
from placelogic.replay.rounding import ORDER

SAMPLES = 2
"""Sequences of one device and micro-batch."""
COUNTED = 3
"""The step whose traffic is counted: the first two set things up."""
LOSS = " and loss parallel"
NORM = "the norm of the gradients"
MODEL = "the small transformer"


class NativeRun(Struct, frozen=True):
    """One component and optimizer. `gaps`: per rank. `held`: per rank and state, bytes. `sent`: per rank
    and kind, bytes of one step. `size`: bytes of all parameters."""

    name: str
    optimizer: str
    gaps: tuple[tuple[Gap, ...], ...]
    held: tuple[Mapping[str, int], ...]
    sent: tuple[Mapping[str, int], ...]
    size: int
    sizes: Widths = field(default_factory=Widths)


class Setting(Struct, frozen=True):
    """How long, and where from."""

    steps: int = 3
    seed: int = 0
    optimizers: tuple[str, ...] = ("sgd", "adam")
    place: Place = Place()
    limit: float = LIMIT


def sizes_of(native: Native) -> Widths:
    stages = native.size("stages") * native.chunks
    experts = 2 * native.size("experts") if "experts" in native.roles.values() else 0
    return Widths(layers=max(2, stages), heads=max(4, native.size("tensor")), experts=experts, tied=native.tied)


def batch(native: Native) -> int:
    """Sequences of the global batch."""
    shares = native.size("replicate") * native.size("shard") * native.size("zero1") * native.size("experts")
    return SAMPLES * shares * needed_microbatches(native)


def sample(step: int, seed: int, count: int, sizes: Widths) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and targets of one global batch, the same on every device."""
    drawn = torch.randint(
        sizes.vocab, (2, count, sizes.length), generator=generator(seed, "tokens", step), device="cpu"
    )
    tokens, targets = drawn.to(torch.get_default_device())
    return tokens, targets


def run(native: Native, setting: Setting) -> list[NativeRun]:
    """Raises ReplayFailed."""
    load()
    world = prod(native.sizes.values())
    answers = launch(world, lambda rank: _rank(native, setting), setting.place, setting.limit)
    runs = []
    for index in range(len(answers[0])):
        found = [answer[index] for answer in answers]
        one = found[0]
        runs.append(
            NativeRun(
                one["name"],
                one["optimizer"],
                tuple(rank["gaps"] for rank in found),
                tuple(rank["held"] for rank in found),
                tuple(rank["sent"] for rank in found),
                one["size"],
                one["sizes"],
            )
        )
    return runs


def load() -> None:
    """What components import when they are first used: once, before processes are forked."""
    import torch._dynamo
    import torch.distributed.fsdp
    import torch.distributed.pipelining
    import torch.distributed.tensor.parallel  # noqa: F401


def _rank(native: Native, setting: Setting) -> list[dict[str, Any]]:
    mesh = mesh_of(native, setting.place.device)
    sizes = sizes_of(native)
    found = []
    share = _share(mesh)
    for name in setting.optimizers:
        for component, job in _jobs(native, sizes, mesh, name, setting):
            whole = Transformer(sizes, mlp=Mixture) if sizes.experts else Transformer(sizes)
            told = compared(job, whole, sizes, batch(native), share, name, setting, native.master)
            found.append({"name": component, "sizes": sizes} | told)
    return found


def _jobs(native: Native, sizes: Widths, mesh: Any, optimizer: str, setting: Setting) -> Iterator[tuple[str, Parallel]]:
    roles, count, seed = set(native.roles.values()), native.microbatches, setting.seed
    if "context" in roles:
        group = mesh.get_group("context")
        apart = not shared(mesh.size(), setting.place)
        for kind in (kind for kind in KINDS if kind != "ring" or apart):
            made = context_parallel(sizes, group, kind, count, optimizer, seed, native.clip)
            yield f"attention over sequence shares ({kind})", made
    elif "experts" in roles:
        yield native.name, expert_parallel(sizes, mesh.get_group("experts"), count, optimizer, seed, native.clip)
    else:
        yield native.name, parallel(native, sizes, mesh, optimizer, seed)
        if "tensor" in roles and "stages" not in roles:
            yield f"{native.name}{LOSS}", parallel(native, sizes, mesh, optimizer, seed, loss=True)


def _share(mesh: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """This device's part of the global batch."""
    dims = [d for d in mesh.mesh_dim_names if d in ("replicate", "shard", "zero1", "experts")]
    index, count = 0, 1
    for dim in dims:
        index = index * mesh[dim].size() + mesh.get_local_rank(dim)
        count *= mesh[dim].size()
    return lambda tensor: tensor.chunk(count)[index]


def compared(
    job: Parallel,
    whole: nn.Module,
    sizes: Widths,
    count: int,
    share: Callable[[torch.Tensor], torch.Tensor],
    optimizer: str,
    setting: Setting,
    master: bool = False,
) -> dict[str, Any]:
    """Train both, step by step. `master`: what is computed with is narrower than the parameters."""
    started(whole, setting.seed)
    single = optimizer_of(optimizer, list(whole.parameters()))
    reference = dict(whole.named_parameters())
    # The same training with its samples in another order, where rounding matters.
    rounded = torch.get_default_dtype() is not torch.float64 or master
    other = deepcopy(whole) if rounded else None
    second = optimizer_of(optimizer, list(other.parameters())) if other is not None else None
    gaps: list[Gap] = []
    payload, decisions = Payload(), Payload()
    held: dict[str, int] = {}
    for step in range(1, setting.steps + 1):
        tokens, targets = sample(step, setting.seed, count, sizes)
        single.zero_grad()
        backward(whole, tokens, targets, master)
        job.optimizer.zero_grad()
        counted = step == min(COUNTED, setting.steps)
        with payload if counted else nullcontext():
            job.step(share(tokens), share(targets))
        if job.clip is not None:
            with decisions if counted else nullcontext():
                found = job.clip()
            gaps.append(_gap(step, "clip", found, by_torch(whole.parameters())))
        for name, parameter in job.named():
            expected = reference[source(name, sizes.tied)].grad
            expected = expected if expected is None else job.held(name, expected)
            gaps.append(_gap(step, "gradient", parameter.grad, expected))
        if counted:
            held = held_by(job)
            with payload:
                job.optimizer.step()
            held["optimizer"] = optimizer_bytes(job.optimizer)
        else:
            job.optimizer.step()
        single.step()
        if other is not None and second is not None:
            second.zero_grad()
            backward(other, tokens.flip(0), targets.flip(0), master)
            if job.clip is not None:
                by_torch(other.parameters())
            second.step()
            for one, two in zip(whole.parameters(), other.parameters()):
                gaps += [_gap(step, ORDER, two, one), _gap(step, ORDER, two.grad, one.grad)]
        states = _states(job.optimizer)
        for name, parameter in job.named():
            there = reference[source(name, sizes.tied)]
            gaps.append(_gap(step, "params", parameter, job.held(name, there)))
            for key, value in states.get(parameter, {}).items():
                if key in ("exp_avg", "exp_avg_sq", "momentum_buffer") and value is not None:
                    expected = job.held(name, single.state[there][key])
                    gaps.append(_gap(step, "state", value, expected))
    size = sum(p.numel() * p.element_size() for p in whole.parameters())
    sent = dict(payload.bytes)
    if job.clip is not None:
        sent[NORM] = sum(decisions.bytes.values())
    return {"optimizer": optimizer, "gaps": tuple(gaps), "held": held, "sent": sent, "size": size}


def backward(model: nn.Module, tokens: torch.Tensor, targets: torch.Tensor, master: bool) -> None:
    """On one device. `master`: by a copy in the narrower kind of number, as FSDP2 gathers one."""
    if not master:
        mean_loss(model(tokens), targets).backward()
        return
    copy = deepcopy(model).to(NARROW)
    mean_loss(copy(tokens), targets).backward()
    for parameter, narrow in zip(model.parameters(), copy.parameters()):
        assert narrow.grad is not None
        parameter.grad = narrow.grad.to(parameter.dtype)


def _states(optimizer: Any) -> Mapping[Any, Mapping[str, Any]]:
    """ZeroRedundancyOptimizer keeps those of its own shard in an optimizer inside."""
    return getattr(optimizer, "optim", optimizer).state


def _gap(step: int, what: str, found: Any, expected: torch.Tensor | None) -> Gap:
    if found is None or expected is None:
        return Gap(MODEL, step, what, 0.0 if found is expected else float("inf"))
    with torch.no_grad():
        # What is offloaded lies on the host.
        difference = float((_full(found.detach()).to(expected.device) - expected.detach()).abs().max())
    return Gap(MODEL, step, what, float("inf") if difference != difference else difference)


def _full(tensor: Any) -> torch.Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def _local(tensor: Any) -> int:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return local.numel() * local.element_size()


def held_by(job: Parallel) -> dict[str, int]:
    return {
        "params": sum(_local(p) for _, p in job.named()),
        "gradients": sum(_local(p.grad) for _, p in job.named() if p.grad is not None),
    }


def optimizer_bytes(optimizer: Any) -> int:
    """Without step counters."""
    return sum(
        _local(value)
        for state in _states(optimizer).values()
        for value in state.values()
        if isinstance(value, torch.Tensor) and value.dim() > 0
    )
