"""Eight small models, each set up as PyTorch has it: what `from_torch` and `trace` are tried on.

Sizes divide by the meshes, so that no shard is padded. Each function returns a `Setup`, on every rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo
import torch.distributed as dist
import torch.nn.functional as F
from msgspec import Struct
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

HIDDEN, VOCABULARY, LENGTH, BATCH, LAYERS = 8, 16, 4, 4, 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.up = nn.Linear(HIDDEN, 4 * HIDDEN)
        self.down = nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    """All of it, or one stage of two."""

    def __init__(self, stage: int | None = None) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, HIDDEN) if stage in (None, 0) else None
        kept = range(LAYERS) if stage is None else [stage]
        self.layers = nn.ModuleDict({str(number): Block() for number in kept})
        self.final = nn.LayerNorm(HIDDEN) if stage in (None, 1) else None
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False) if stage in (None, 1) else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.embed is not None:
            x = self.embed(x)
        for layer in self.layers.values():
            x = layer(x)
        return self.head(self.final(x)) if self.head is not None else x


def loss_of(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), target.flatten())


class Setup(Struct):
    """`model` is what `from_torch` gets; `module` holds the parameters of this rank. `step` trains once."""

    model: Any
    module: nn.Module
    optimizer: Any
    mesh: Any
    step: Callable[[], None]


def data(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def trained(module: nn.Module, optimizer: Any, seed: int) -> Callable[[], None]:
    """A step of plain training, which leaves its gradients."""

    def step() -> None:
        optimizer.zero_grad()
        x, y = data(seed)
        loss_of(module(x), y).backward()
        optimizer.step()

    return step


def adam(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=1e-2)


def ddp() -> Setup:
    model = DistributedDataParallel(Net())
    optimizer = adam(model)
    return Setup(model, model, optimizer, None, trained(model, optimizer, dist.get_rank()))


def zero1() -> Setup:
    model = DistributedDataParallel(Net())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-2)
    return Setup(model, model, optimizer, None, trained(model, optimizer, dist.get_rank()))


def fsdp() -> Setup:
    return _sharded(init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",)))


def hsdp() -> Setup:
    return _sharded(init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")))


def _sharded(mesh: Any) -> Setup:
    model = Net()
    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = adam(model)
    return Setup(model, model, optimizer, mesh, trained(model, optimizer, dist.get_rank()))


def tp() -> Setup:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    model = Net()
    parallelize_module(model, mesh, _tensor_plan(model))
    optimizer = adam(model)
    return Setup(model, model, optimizer, mesh, trained(model, optimizer, 0))


def _tensor_plan(model: Net) -> dict[str, Any]:
    plan: dict[str, Any] = {"head": ColwiseParallel(output_layouts=Replicate())}
    for number in model.layers:
        plan[f"layers.{number}.up"] = ColwiseParallel()
        plan[f"layers.{number}.down"] = RowwiseParallel()
    return plan


def tp_sp() -> Setup:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    model = Net()
    parallelize_module(model, mesh, _sequence_plan(model))
    optimizer = adam(model)
    return Setup(model, model, optimizer, mesh, trained(model, optimizer, 0))


def _sequence_plan(model: Net) -> dict[str, Any]:
    """The embedding is cut by columns: one cut by rows keeps whole gradients."""
    plan: dict[str, Any] = {
        "embed": ColwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "final": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    for number in model.layers:
        plan[f"layers.{number}.norm"] = SequenceParallel()
        plan[f"layers.{number}.up"] = ColwiseParallel(input_layouts=Shard(1))
        plan[f"layers.{number}.down"] = RowwiseParallel(output_layouts=Shard(1), use_local_output=False)
    return plan


def fsdp_tp() -> Setup:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = Net()
    parallelize_module(model, mesh["tp"], _sequence_plan(model))
    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    optimizer = adam(model)
    return Setup(model, model, optimizer, mesh, trained(model, optimizer, mesh.get_local_rank("dp")))


def pp() -> Setup:
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("pp",))
    module = Net(rank)
    optimizer = adam(module)
    stage = PipelineStage(module, rank, 2, torch.device("cpu"), group=mesh.get_group())
    schedule = Schedule1F1B(stage, 2, loss_fn=loss_of)

    def step() -> None:
        optimizer.zero_grad()
        x, y = data(0)
        schedule.step(x) if rank == 0 else schedule.step(target=y)
        optimizer.step()

    return Setup(schedule, module, optimizer, mesh, step)


MODELS: dict[str, tuple[int, Callable[[], Setup]]] = {
    "ddp": (2, ddp),
    "zero1": (2, zero1),
    "fsdp": (2, fsdp),
    "hsdp": (4, hsdp),
    "tp": (2, tp),
    "tp_sp": (2, tp_sp),
    "fsdp_tp": (4, fsdp_tp),
    "pp": (2, pp),
}
"""Name -> number of ranks, and the function."""
