"""Tied ends of a pipeline: torch's stages know nothing of each other's weights, so this package sums the gradients
of the embedding and of the output matrix. Under a V-shaped schedule both are on one device, and still two tensors:
a schedule divides gradients stage by stage, and one that two stages share would be divided twice."""

from __future__ import annotations

from collections.abc import Sequence

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from placelogic.replay.native.transformer import Transformer


class Ends:
    """`first`, `last`: the embedding and the output matrix, where this rank has them. All ranks make one together."""

    def __init__(self, stages: Sequence[Transformer], mesh: DeviceMesh) -> None:
        self.first: nn.Parameter | None = next((m.embed.weight for m in stages if m.embed is not None), None)
        self.last: nn.Parameter | None = next((m.output.weight for m in stages if m.output is not None), None)
        self._pair: dist.ProcessGroup | None = None
        names = mesh.mesh_dim_names or ()
        pipelines = mesh.mesh.movedim(names.index("stages"), -1).reshape(-1, mesh["stages"].size())
        for ranks in pipelines.tolist():
            if len(ranks) > 1:
                made = dist.new_group([ranks[0], ranks[-1]])
                if dist.get_rank() in (ranks[0], ranks[-1]):
                    self._pair = made

    def sum(self) -> None:
        """After the backward passes, before anything reads the gradients."""
        held = [p.grad for p in (self.first, self.last) if p is not None and p.grad is not None]
        if len(held) == 2:
            held[0] += held[1]
            held[1].copy_(held[0])
        elif held and self._pair is not None:
            local = held[0].to_local() if hasattr(held[0], "to_local") else held[0]
            dist.all_reduce(local, group=self._pair)
