"""Under the fake process group: one process, as many ranks as one likes, real sizes and no values."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.testing._internal.distributed.fake_pg import FakeStore

import placelogic
from placelogic.frontends.live import from_torch, trace
from placelogic.problem import SpecError
from tests.frontends.live import models
from tests.frontends.live.fork import alone


def fake(world: int) -> None:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)


def sharded() -> tuple[str, str]:
    """64 ranks, FSDP2 along one axis and replicas along the other."""
    fake(64)
    mesh = init_device_mesh("cpu", (8, 8), mesh_dim_names=("replicate", "shard"))
    module = models.Net()
    for layer in module.layers.values():
        fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)
    optimizer = models.adam(module)
    step = models.trained(module, optimizer, 0)
    step()
    with trace(mesh) as t:
        step()
    spec = from_torch(module, optimizer, mesh)
    return spec.text, str(t.compare(spec))


def test_fully_shard_on_64_ranks() -> None:
    text, comparison = alone(sharded)
    assert "mesh replicate = 8, shard = 8" in text
    assert placelogic.check(text).exit_code == 0
    assert comparison.startswith("<text>, rank 0 (replicate=0, shard=0): agrees\n")
    assert "= reduce-scatter over shard: 5,632 bytes expected, 5,632 in 3 calls" in comparison
    assert "= all-reduce over replicate: 704 bytes expected, 704 in 3 calls" in comparison


def staged(stages: int) -> str:
    """A pipeline of two stages, of which this process has so many."""
    fake(2)
    modules = [models.Net(number) for number in range(stages)]
    made: list[Any] = [PipelineStage(one, number, 2, torch.device("cpu")) for number, one in enumerate(modules)]
    optimizers = [models.adam(module) for module in modules]
    try:
        return from_torch(made, optimizers, init_device_mesh("cpu", (2,), mesh_dim_names=("pp",))).text
    except SpecError as error:
        return str(error)


def test_all_stages_in_one_process() -> None:
    text = alone(staged, 2)
    assert "weights embed { size 16*8, dims rows columns, kind embedding, used on first of pp }" in text
    assert "weights up { size 2*32*8, layers 2, dims out in, kind matrix }" in text
    assert placelogic.check(text).exit_code == 0


def test_a_stage_that_is_not_there_is_asked_for() -> None:
    assert alone(staged, 1) == (
        "PL528: stages 1 of 2 are not here, so their weights are not known (under a fake process group pass a list of "
        "all stages, built in this process; else call from_torch on every rank)"
    )


def thousand() -> str:
    """A large model without memory, on the meta device."""
    fake(1024)
    mesh = init_device_mesh("cpu", (128, 8), mesh_dim_names=("dp", "tp"))
    with torch.device("meta"):
        module = torch.nn.Sequential(*(torch.nn.Linear(16384, 16384, bias=False) for _ in range(4)))
    parallelize_module(module, mesh["tp"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
    fully_shard(module, mesh=mesh["dp"])
    return from_torch(module, models.adam(module), mesh, open_sizes=True).text


def test_a_large_model_on_a_thousand_ranks() -> None:
    text = alone(thousand)
    assert "mesh dp, tp    # dp = 128, tp = 8 in this run" in text
    assert "weights weight { size 16384*16384, dims out in, kind matrix }    # 0.weight" in text
    assert "weights weight_3 { size 2*16384*16384, layers 2, dims out in, kind matrix }    # 2.weight and" in text
    report = placelogic.check(text)
    assert report.exit_code == 0 and "for every dp, tp" in str(report)
