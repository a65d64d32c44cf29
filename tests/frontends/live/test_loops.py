"""Training loops as people write them: accumulation, clipping, mixed precision, more axes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleZBVZeroBubble
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

import placelogic
from placelogic.frontends.live import Comparison, from_torch, trace
from tests.frontends.live import models
from tests.frontends.live.fork import alone, run


def seen(model: Any, optimizer: Any, mesh: Any, step: Callable[[], None], **said: Any) -> tuple[str, Comparison]:
    for _ in range(2):
        step()
    with trace(mesh) as t:
        step()
    spec = from_torch(model, optimizer, mesh, **said)
    return spec.text, t.compare(spec)


def sharded(mesh: Any, **options: Any) -> Any:
    module = models.Net()
    for layer in module.layers.values():
        fully_shard(layer, mesh=mesh, **options)
    fully_shard(module, mesh=mesh, **options)
    return module


def wrapped(kind: str) -> tuple[Any, Any]:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    return (DistributedDataParallel(models.Net()) if kind == "ddp" else sharded(mesh)), mesh


def accumulated(kind: str, last_only: bool, said: bool | None) -> tuple[str, Comparison]:
    module, mesh = wrapped(kind)
    optimizer = models.adam(module)

    def step() -> None:
        optimizer.zero_grad()
        for number in range(2):
            waiting = last_only and number == 0
            if kind == "fsdp":
                module.set_requires_gradient_sync(not waiting)
            x, y = models.data(number)
            with module.no_sync() if waiting and kind == "ddp" else nullcontext():
                (models.loss_of(module(x), y) / 2).backward()
        optimizer.step()

    return seen(module, optimizer, mesh, step, microbatches=2, no_sync=said)


@pytest.mark.parametrize(
    ("kind", "last_only", "said", "differences"),
    [
        ("ddp", True, None, []),
        pytest.param("ddp", False, False, [], marks=pytest.mark.slow),
        ("ddp", False, None, ["extra: all-reduce over dp: 2 times the 5,632 bytes expected"]),
        pytest.param("fsdp", False, None, [], marks=pytest.mark.slow),
        pytest.param("fsdp", True, True, [], marks=pytest.mark.slow),
        (
            "fsdp",
            True,
            None,
            ["missing: reduce-scatter over dp: 5,632 bytes, 2 times as much is expected"],
        ),
    ],
)
def test_accumulation(kind: str, last_only: bool, said: bool | None, differences: list[str]) -> None:
    text, comparison = run(2, accumulated, kind, last_only, said)[0]
    assert [f"{one.kind}: {one.message}" for one in comparison.differences] == differences
    assert placelogic.check(text).exit_code == 0


def clipped(kind: str, done: bool) -> tuple[str, Comparison]:
    module, mesh = wrapped(kind)
    optimizer = models.adam(module)

    def step() -> None:
        optimizer.zero_grad()
        x, y = models.data(dist.get_rank())
        models.loss_of(module(x), y).backward()
        if done:
            nn.utils.clip_grad_norm_(module.parameters(), 0.1)
        optimizer.step()

    return seen(module, optimizer, mesh, step, clip=True)


def test_clipping() -> None:
    text, comparison = run(2, clipped, "fsdp", True)[0]
    assert comparison.agrees and placelogic.check(text).exit_code == 0
    assert comparison.notes == ("not compared: 1 call, 64 bytes: single numbers, such as norms and losses",)


@pytest.mark.slow
def test_clipping_of_copies() -> None:
    assert run(2, clipped, "ddp", True)[0][1].agrees


def test_clipping_that_is_not_there() -> None:
    differences = run(2, clipped, "fsdp", False)[0][1].differences
    assert [one.message for one in differences] == ["the sum of squares for clipping over dp"]


def clipped_on_two_axes(over: tuple[str, ...] | None) -> tuple[str, Comparison]:
    """By PyTorch, which sums all norms at once over one axis after the other, or by hand, over the axes named."""
    setup = models.fsdp_tp()

    def step() -> None:
        setup.optimizer.zero_grad()
        x, y = models.data(setup.mesh.get_local_rank("dp"))
        models.loss_of(setup.module(x), y).backward()
        if over is None:
            nn.utils.clip_grad_norm_(setup.module.parameters(), 0.1)
        else:
            gradients = [parameter.grad for parameter in setup.module.parameters()]
            whole = [one.redistribute(placements=[*one.placements[:-1], Replicate()])
                     if one.placements[-1].is_partial() else one for one in gradients]  # fmt: skip
            norms = torch.stack([torch.linalg.vector_norm(one.to_local()) for one in whole]) ** 2
            for axis in over:
                dist.all_reduce(norms, group=setup.mesh.get_group(axis))
            for one in gradients:
                one.mul_(torch.clamp(0.1 / (norms.sum().sqrt() + 1e-6), max=1.0))
        setup.optimizer.step()

    return seen(setup.model, setup.optimizer, setup.mesh, step, clip=True)


@pytest.mark.parametrize(
    ("over", "differences"),
    [
        (None, []),
        (("dp",), ["the sum of squares for clipping over tp"]),
        pytest.param(("tp",), ["the sum of squares for clipping over dp"], marks=pytest.mark.slow),
        pytest.param(("dp", "tp"), [], marks=pytest.mark.slow),
    ],
)
def test_clipping_on_two_axes(over: tuple[str, ...] | None, differences: list[str]) -> None:
    text, comparison = run(4, clipped_on_two_axes, over)[0]
    assert [one.message for one in comparison.differences] == differences, str(comparison)
    assert placelogic.check(text).exit_code == 0
    numbers = [one for one in comparison.notes if "single numbers" in one]
    assert len(numbers) == 1 and f": {2 if over is None else len(over)} call" in numbers[0]


def mixed() -> tuple[str, Comparison]:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    module = sharded(mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    optimizer = models.adam(module)
    return seen(module, optimizer, mesh, models.trained(module, optimizer, dist.get_rank()))


def test_mixed_precision() -> None:
    text, comparison = run(2, mixed)[0]
    assert "precision { params fp32, compute bf16, gradients fp32, moments fp32, reduce bf16 }" in text
    assert comparison.agrees, str(comparison)
    assert [(row.expected, row.found) for row in comparison.rows] == [(5088, 5088), (2816, 2816)]


def flattened(every_module: bool) -> tuple[str, Comparison]:
    """FSDP over data and context parallel ranks together, as torchtitan has it, with sums instead of means."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
    module = models.Net()
    parallelize_module(module, mesh["tp"], models._sequence_plan(module))
    over = mesh["dp", "cp"]._flatten("dp_cp")
    for layer in module.layers.values():
        fully_shard(layer, mesh=over)
    fully_shard(module, mesh=over)
    for one in [module, *module.layers.values()] if every_module else [module]:
        one.set_gradient_divide_factor(1.0)
    optimizer = models.adam(module)
    said = {"splits": {"cp": "sequence"}, "loss": "mean global", "tokens": "uneven"}
    return seen(module, optimizer, mesh, models.trained(module, optimizer, 0), **said)


def test_sums_over_flattened_axes() -> None:
    text, comparison = alone(flattened, True)
    assert "sequence over cp    # as from_torch was told\nbatch over dp    # fully_shard" in text
    assert "  reduce over dp, cp by sum" in text and "by mean" not in text
    assert comparison.agrees, str(comparison)
    assert placelogic.check(text).exit_code == 0


def test_a_divisor_that_was_not_set_everywhere() -> None:
    """`set_gradient_divide_factor` does not descend into other modules under fully_shard."""
    report = placelogic.check(alone(flattened, False)[0])
    assert report.specs[0].verdict == "refuted"
    assert {one.code for one in report.specs[0].findings if one.severity == "error"} == {"GI03"}


def stages(modules: list[nn.Module], numbers: list[int], count: int, mesh: Any) -> list[Any]:
    group = mesh.get_group("pp")
    return [
        PipelineStage(module, number, count, torch.device("cpu"), group=group)
        for module, number in zip(modules, numbers, strict=True)
    ]


def v_shaped() -> tuple[str, Comparison]:
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("pp",))
    numbers = [rank, 3 - rank]
    modules: list[nn.Module] = [models.Net(None if number in (0, 3) else 0) for number in numbers]
    for module, number in zip(modules, numbers, strict=True):
        module.layers = nn.ModuleDict({str(number): models.Block()})
        for name in ("embed",) if number else ("final", "head"):
            setattr(module, name, None)
        if number in (1, 2):
            module.embed = None
    optimizers = [models.adam(module) for module in modules]
    schedule = ScheduleZBVZeroBubble(stages(modules, numbers, 4, mesh), 4, loss_fn=models.loss_of)

    def step() -> None:
        for optimizer in optimizers:
            optimizer.zero_grad()
        x, y = models.data(0)
        schedule.step(x, target=y, losses=[]) if rank == 0 else schedule.step()
        for optimizer in optimizers:
            optimizer.step()

    return seen(schedule, optimizers, mesh, step)


def test_stages_in_a_v() -> None:
    text, comparison = run(2, v_shaped)[0]
    assert "stages over pp { schedule zbv, chunks 2 }    # the schedule" in text
    assert "kind embedding, used on first of pp }" in text and "kind matrix, used on last of pp }" in text
    assert comparison.agrees, str(comparison)
    assert placelogic.check(text).exit_code == 0


def sharded_stages() -> tuple[str, Comparison]:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    rank = mesh.get_local_rank("pp")
    module = models.Net(rank)
    for layer in module.layers.values():
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(module, mesh=mesh["dp"])
    optimizer = models.adam(module)
    schedule = Schedule1F1B(stages([module], [rank], 2, mesh)[0], 2, loss_fn=models.loss_of)

    def step() -> None:
        optimizer.zero_grad()
        x, y = models.data(mesh.get_local_rank("dp"))
        schedule.step(x) if rank == 0 else schedule.step(target=y)
        optimizer.step()

    return seen(schedule, optimizer, mesh, step)


@pytest.mark.slow
def test_sharded_stages() -> None:
    for text, comparison in run(4, sharded_stages):
        assert "  reduce scattered over dp by mean" in text
        assert placelogic.check(text).exit_code == 0
        assert comparison.agrees, str(comparison)
        assert any("the pipeline keeps what is gathered" in note for note in comparison.notes)


class Gate(nn.Module):
    """With a parameter of one element."""

    def __init__(self) -> None:
        super().__init__()
        self.net = models.Net()
        self.gate = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x) * self.gate


def by_parameter(forgotten: str | None, steps: int = 1) -> Comparison:
    """Every gradient is reduced by itself, and the loss for a report."""
    module = Gate()
    optimizer = models.adam(module)
    other = DistributedDataParallel(Gate())
    spec = from_torch(other, models.adam(other))

    def step() -> None:
        optimizer.zero_grad()
        x, y = models.data(dist.get_rank())
        loss = models.loss_of(module(x), y)
        loss.backward()
        for name, parameter in module.named_parameters():
            if name != forgotten:
                dist.all_reduce(parameter.grad)
                parameter.grad /= 2
        optimizer.step()
        dist.all_reduce(loss.detach())

    with trace() as t:
        for _ in range(steps):
            step()
    return t.compare(spec)


def test_a_parameter_of_one_element() -> None:
    """Its gradient is as large as the loss, which is reduced too."""
    comparison = run(2, by_parameter, None)[0]
    assert comparison.agrees, str(comparison)
    assert comparison.notes == ("not compared: 1 call, 4 bytes: single numbers, such as norms and losses",)


def test_a_parameter_of_one_element_that_is_forgotten() -> None:
    differences = run(2, by_parameter, "gate")[0].differences
    assert [one.message for one in differences] == ["all-reduce over dp: 4 bytes of 5,636, as much as `gate`"]


def test_one_step_at_a_time() -> None:
    with pytest.raises(AssertionError, match="PL529: the optimizer took several steps in the trace"):
        run(2, by_parameter, None, 2)


class Odd(nn.Module):
    """Nothing in it divides by two, but for what tensor parallelism cuts."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(5)
        self.up = nn.Linear(5, 6)
        self.down = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(self.norm(x)))


def uneven() -> Comparison:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    plan = {
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
    }
    module = Odd()
    parallelize_module(module, mesh["tp"], plan)
    fully_shard(module, mesh=mesh["dp"])
    optimizer = models.adam(module)

    def step() -> None:
        optimizer.zero_grad()
        module(torch.ones(2, 2, 5)).sum().backward()
        optimizer.step()

    return seen(module, optimizer, mesh, step)[1]


LIBRARY = """
mesh dp
let h = 8, v = 16, L = 2
weights embed { size v*h, kind embedding }
weights layers { size L*(8*h*h + 7*h), layers L }
weights final { size 2*h, kind vector }
weights head { size v*h }
use fsdp(dp)
precision { params fp32 }
"""
"""A spec by hand, with a strategy of the library."""


def against(spec: str) -> Comparison:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    module = sharded(mesh)
    optimizer = models.adam(module)
    step = models.trained(module, optimizer, dist.get_rank())
    for _ in range(2):
        step()
    with trace(mesh) as t:
        step()
    return t.compare(spec)


def test_a_strategy_of_the_library() -> None:
    """The root of fully_shard keeps what it has gathered, which the strategy does not say by itself."""
    differences = run(2, against, LIBRARY)[0].differences
    assert [f"{one.kind}: {one.message}" for one in differences] == [
        "other size: all-gather over dp: 10,176 bytes, 11,264 expected; say `reshard_after_forward false` where "
        "they stay gathered"
    ]
    kept = "place embed, final, head over dp { params gathered, reshard_after_forward false }\n"
    assert run(2, against, LIBRARY + kept)[0].agrees


@pytest.mark.slow
def test_padded_shards() -> None:
    for comparison in run(4, uneven):
        assert comparison.agrees, str(comparison)
        # Shards over dp: of norms 3 of 5, of `up` 2 of 3 rows (tp has the others), of `down` 3 of 5 rows.
        whole = 4 * (2 * 3 + 2 * 3 + 2 * 2 * 5 + 2 * 2 + 2 * 3 * 3 + 2 * 3)
        assert {(row.key.operation, row.expected) for row in comparison.rows} == {
            ("all-gather", whole),
            ("reduce-scatter", whole),
            ("all-reduce", 4 * (5 + 5)),
        }
