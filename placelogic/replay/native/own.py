"""Jobs made of this package's own modules: context parallelism and expert parallelism."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import nn

from placelogic.replay.native.clipping import by_torch, clipped
from placelogic.replay.native.context import SequenceShare
from placelogic.replay.native.experts import Mixture
from placelogic.replay.native.parallel import Parallel, optimizer_of
from placelogic.replay.native.transformer import Transformer, Widths, mean_loss, started


def context_parallel(
    sizes: Widths, group: dist.ProcessGroup, kind: str, count: int, optimizer: str, seed: int, clip: bool = False
) -> Parallel:
    """Each device has the whole model and a share of every sequence; gradients are averaged."""
    model = Transformer(sizes)
    started(model, seed)
    for layer in model.layers.values():
        layer.attention.inner = SequenceShare(kind, group)

    def step(tokens: torch.Tensor, targets: torch.Tensor) -> None:
        share = partial(torch.chunk, chunks=group.size(), dim=1)
        rank = dist.get_rank(group)
        _accumulate(model, share(tokens)[rank], share(targets)[rank], count)
        averaged(model, group, lambda name: False)

    norm = partial(by_torch, list(model.parameters())) if clip else None
    return Parallel([model], step, optimizer_of(optimizer, list(model.parameters())), clip=norm)


def expert_parallel(
    sizes: Widths, group: dist.ProcessGroup, count: int, optimizer: str, seed: int, clip: bool = False
) -> Parallel:
    """Each device has its experts, all of the rest, and its own samples. Routing sums what experts get from
    all devices, so their gradients are divided; those of the rest are averaged."""
    model = Transformer(sizes, mlp=lambda s: Mixture(s, group))
    whole = Transformer(sizes, mlp=Mixture)
    started(whole, seed)
    rank = dist.get_rank(group)

    def held(name: str, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.chunk(group.size())[rank] if ".expert_" in name else tensor

    with torch.no_grad():
        for (name, weight), source in zip(model.named_parameters(), whole.parameters()):
            weight.copy_(held(name, source))

    def step(tokens: torch.Tensor, targets: torch.Tensor) -> None:
        _accumulate(model, tokens, targets, count)
        averaged(model, group, lambda name: ".expert_" in name)

    every = list(model.parameters())
    here = [weight for name, weight in model.named_parameters() if ".expert_" in name]
    also = [weight for name, weight in model.named_parameters() if ".expert_" not in name]
    norm = partial(clipped, every, here, also, group) if clip else None
    return Parallel([model], step, optimizer_of(optimizer, every), held, norm)


def _accumulate(model: nn.Module, tokens: torch.Tensor, targets: torch.Tensor, count: int) -> None:
    for x, y in zip(tokens.chunk(count), targets.chunk(count)):
        (mean_loss(model(x), y) / count).backward()


def averaged(model: nn.Module, group: dist.ProcessGroup, local: Callable[[str], bool]) -> None:
    """All-reduce by mean; `local` weights are only divided."""
    for name, weight in model.named_parameters():
        if weight.grad is None:
            continue
        weight.grad /= group.size()
        if not local(name):
            dist.all_reduce(weight.grad, group=group)
