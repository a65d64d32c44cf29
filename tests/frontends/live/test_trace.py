"""A recorded step agrees with the spec of eight models, and differs where a fault was planted."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import parallelize_module

from placelogic.frontends.live import Comparison, from_torch, trace
from tests.frontends.live import models
from tests.frontends.live.fork import run
from tests.frontends.live.models import Net, Setup
from tests.frontends.live.observed import ALL, WARM, observed


def traced(setup: Setup, spec: Any, step: Callable[[], None] | None = None) -> Comparison:
    for _ in range(WARM):
        setup.step()
    with trace(setup.mesh) as t:
        (step or setup.step)()
    return t.compare(spec)


@pytest.mark.parametrize("name", ALL)
def test_agrees(name: str) -> None:
    for one in observed(name):
        assert one.comparison.agrees, str(one.comparison)
        assert one.comparison.rows or name in ("tp", "pp")


# --- planted faults ----------------------------------------------------------------------------------

BY_HAND = """
mesh dp, tp
let h = 8, v = 16, L = 2
weights embed { size v*h, kind embedding }
weights up { size L*4*h*h, layers L }
weights up_bias { size L*4*h, layers L, kind vector }
weights down { size L*4*h*h, layers L }
weights down_bias { size L*h, layers L, kind vector }
weights norm { size 2*L*h + 2*h, kind vector }
weights head { size v*h }
use data_parallel(dp) * sequence_parallel(tp)
place up_bias over tp { params sharded, optimizer sharded, gradients sharded, activations replicated }
place down_bias over tp { activations replicated }
precision { params fp32, gradients fp32 }
sync * over dp by mean
"""
"""Data parallelism written as a loop, over a model with tensor and sequence parallelism."""


def by_hand(group: str = "dp", times: int = 1, divide: bool = True) -> Comparison:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    module = Net()
    parallelize_module(module, mesh["tp"], models._sequence_plan(module))
    optimizer = models.adam(module)

    def step() -> None:
        optimizer.zero_grad()
        x, y = models.data(mesh.get_local_rank("dp"))
        models.loss_of(module(x), y).backward()
        for parameter in module.parameters():
            gradient = parameter.grad.to_local() if isinstance(parameter.grad, DTensor) else parameter.grad
            for _ in range(times):
                dist.all_reduce(gradient, group=mesh.get_group(group))
            if divide:
                gradient /= 2
        optimizer.step()

    return traced(Setup(module, module, optimizer, mesh, step), BY_HAND)


def no_reduction() -> Comparison:
    setup = models.ddp()
    spec = from_torch(setup.model, setup.optimizer)

    def step() -> None:
        with setup.module.no_sync():
            setup.step()

    return traced(setup, spec, step)


def no_gather() -> Comparison:
    setup = models.zero1()
    spec = from_torch(setup.model, setup.optimizer)

    def step() -> None:
        setup.optimizer._sync_params = lambda: None
        setup.step()

    return traced(setup, spec, step)


def norm_not_reduced() -> Comparison:
    """Someone takes the gradient of a norm for whole, which it is not on a share of the sequence."""
    setup = models.tp_sp()
    spec = from_torch(setup.model, setup.optimizer, setup.mesh)

    def step() -> None:
        setup.optimizer.zero_grad()
        x, y = models.data(0)
        models.loss_of(setup.module(x), y).backward()
        gradient = setup.module.final.weight.grad
        setup.module.final.weight.grad = DTensor.from_local(gradient.to_local(), setup.mesh, [Replicate()])
        setup.optimizer.step()

    return traced(setup, spec, step)


def mean_by_sum() -> Comparison:
    """A communication hook of DDP that sums, and forgets to divide."""
    setup = models.ddp()
    spec = from_torch(setup.model, setup.optimizer)

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    setup.module.register_comm_hook(None, hook)
    return traced(setup, spec)


TWICE = "other operation: gradients of {} elements reach the optimizer as 1 x the sum over dp, where the spec has 1/2 x"

FAULTS: dict[str, tuple[int, Callable[[], Comparison], list[str]]] = {
    "no reduction": (
        2,
        no_reduction,
        [
            "missing: all-reduce over dp of gradients: 5,632 bytes for `embed`, `norm`, `norm_bias`, `up`, `up_bias`, "
            "`down`, `down_bias`, `final`, `final_bias`, `head`",
        ],
    ),
    "wrong group": (
        4,
        lambda: by_hand(group="tp"),
        [
            "other group: 2,944 bytes for `embed`, `up`, `up_bias`, `down`, `down_bias`, `norm`, `head`: "
            "all-reduce over tp, where the spec has all-reduce over dp"
        ],
    ),
    "reduced twice": (
        4,
        lambda: by_hand(times=2),
        ["extra: all-reduce over dp: 2 times the 2,944 bytes expected", TWICE.format(736)],
    ),
    "never divided": (
        4,
        lambda: by_hand(divide=False),
        [TWICE.format(736)],
    ),
    "sum by a hook": (
        2,
        mean_by_sum,
        [TWICE.format("1,408")],
    ),
    "no gather": (
        2,
        no_gather,
        [
            "missing: all-gather over dp of updated params: 5,632 bytes for `embed`, `norm`, `norm_bias`, `up`, "
            "`up_bias`, `down`, `down_bias`, `final`, `final_bias`, `head`"
        ],
    ),
    "norm not reduced": (
        2,
        norm_not_reduced,
        ["missing: all-reduce over tp: 32 bytes of 192, as much as `final`"],
    ),
}


@pytest.mark.slow
def test_the_loop_by_hand_agrees() -> None:
    for comparison in run(4, by_hand):
        assert comparison.agrees, str(comparison)


SLOW = {"wrong group", "reduced twice", "never divided"}


@pytest.mark.parametrize("fault", [pytest.param(one, marks=pytest.mark.slow) if one in SLOW else one for one in FAULTS])
def test_a_planted_fault_is_found(fault: str) -> None:
    ranks, function, wanted = FAULTS[fault]
    for comparison in run(ranks, function):
        assert [f"{one.kind}: {one.message}" for one in comparison.differences] == wanted, str(comparison)
