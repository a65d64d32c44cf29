"""What is not modelled is refused with a code, and what a model does wrong is in its spec."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

import placelogic
from placelogic.frontends.live import from_torch, trace
from placelogic.problem import SpecError
from tests.frontends.live import models
from tests.frontends.live.fork import alone, run


def fake(world: int = 2) -> None:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)


def mesh(*names: str) -> Any:
    return init_device_mesh("cpu", (2,) * len(names), mesh_dim_names=names)


def text_of(build: Callable[[], Any]) -> str:
    """The spec, or what is wrong and what to do about it."""
    try:
        return str(build())
    except SpecError as error:
        return "; ".join(f"{one.code}: {one.message} ({one.help})" for one in error.problems)


def told(build: Callable[[], Any], world: int = 2) -> str:
    def inside() -> str:
        fake(world)
        return text_of(build)

    return str(alone(inside))


def net_and(optimizer: Any = None, *arguments: Any, **options: Any) -> Any:
    module = models.Net()
    return from_torch(module, optimizer or models.adam(module), *arguments, **options)


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)


def batch_norm() -> Any:
    module = DistributedDataParallel(Normed())
    return from_torch(module, models.adam(module))


def fsdp1() -> Any:
    module = FullyShardedDataParallel(models.Net(), device_id=torch.device("cpu"))
    return from_torch(module, models.adam(module))


def hooked() -> Any:
    def my_hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        raise NotImplementedError

    my_hook.__annotations__.update(bucket=dist.GradBucket, **{"return": torch.futures.Future[torch.Tensor]})
    module = DistributedDataParallel(models.Net())
    module.register_comm_hook(None, my_hook)
    return from_torch(module, models.adam(module))


def without_sync() -> Any:
    module = DistributedDataParallel(models.Net())
    with module.no_sync():
        return from_torch(module, models.adam(module))


def shards_without_sync() -> Any:
    module = models.Net()
    fully_shard(module, mesh=mesh("dp"))
    module.set_requires_gradient_sync(False)
    return from_torch(module, models.adam(module))


def whole_dtensor() -> Any:
    module = models.Net()
    module.head.weight = nn.Parameter(distribute_tensor(module.head.weight, mesh("tp"), [Replicate()]))
    return from_torch(module, models.adam(module), module.head.weight.device_mesh)


def experts() -> Any:
    setup_mesh = mesh("dp")
    module = models.Net()
    from torch.distributed.tensor import Shard

    module.head.weight = nn.Parameter(distribute_tensor(module.head.weight, setup_mesh, [Shard(0)]))
    return from_torch(module, models.adam(module), setup_mesh, splits={"dp": "tokens"})


def old_replicate() -> Any:
    from torch.distributed._composable.replicate import replicate

    module = replicate(models.Net())
    return from_torch(module, models.adam(module))


class Lamb(torch.optim.SGD):
    pass


class Strange(torch.optim.SGD):
    pass


def with_optimizer(kind: Any) -> Any:
    module = DistributedDataParallel(models.Net())
    return from_torch(module, kind(module.parameters(), lr=0.1))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no model": (lambda: from_torch(3, None), "PL521: `model` is a int, which is no module, no pipeline stage and no"),
    "no optimizer": (lambda: net_and("adam"), "PL521: `optimizer` is a str, not a torch.optim.Optimizer"),
    "no mesh": (lambda: net_and(None, [2, 2]), "PL521: `mesh` is a list, not a DeviceMesh"),
    "no loss": (lambda: net_and(loss="average"), "PL521: `average` is no way to divide a loss"),
    "no tokens": (lambda: net_and(tokens="some"), "PL521: tokens are even or uneven, not `some`"),
    "no count": (lambda: net_and(microbatches=0), "PL521: microbatches must be a positive whole number, not 0"),
    "unknown axis": (lambda: net_and(splits={"cp": "sequence"}), "PL522: the mesh has no axis `cp`: dp = 2"),
    "unknown split": (lambda: net_and(splits={"dp": "heads"}), "PL521: nothing is split along `heads`"),
    "an axis for nothing": (
        net_and,
        "PL523: nothing in the model says what the axis `dp` (size 2) is for (say what it splits: from_torch(..., "
        'splits={"dp": "batch"}))',
    ),
    "fsdp1": (fsdp1, "PL524: the model is a FullyShardedDataParallel, which is not read"),
    "replicate": (old_replicate, "PL524: the model is a replicate() of an old kind, which is not read"),
    "batch norm": (batch_norm, "PL524: `module.norm` is a BatchNorm1d: statistics of the batch couple the samples"),
    "hook": (hooked, "PL524: DistributedDataParallel has the communication hook my_hook, which is not modelled"),
    "experts": (experts, "PL524: parameters are cut over `dp`, which also splits the work: expert weights"),
    "no_sync": (without_sync, "PL525: DistributedDataParallel is inside no_sync()"),
    "shards no_sync": (shards_without_sync, "PL525: fully_shard of the model: set_requires_gradient_sync or"),
    "whole dtensor": (whole_dtensor, "PL526: `head.weight` is a DTensor that is whole along tp, and nothing says"),
    "unknown optimizer": (
        lambda: with_optimizer(Strange),
        "PL527: the optimizer Strange is not known (known ones: sgd",
    ),
}


@cache
def refusals() -> dict[str, str]:
    """What is said of each case, all in one process."""

    def inside() -> dict[str, str]:
        found = {}
        for case, (build, _) in REFUSED.items():
            fake()
            found[case] = text_of(build)
            dist.destroy_process_group()
        return found

    return dict(alone(inside))


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    assert refusals()[case].startswith(REFUSED[case][1])


def test_without_a_process_group() -> None:
    assert alone(text_of, net_and).startswith("PL521: torch.distributed is not initialised")
    assert alone(text_of, trace).startswith("PL521: torch.distributed is not initialised")


def test_a_group_outside_of_the_mesh() -> None:
    def build() -> Any:
        module = DistributedDataParallel(models.Net(), process_group=dist.new_group([0, 3]))
        return from_torch(module, models.adam(module), mesh("dp", "tp"))

    wanted = (
        "PL522: DistributedDataParallel works in the group of ranks 0, 3, which does not run along axes of the mesh"
    )
    assert told(build, world=4).startswith(wanted)


# --- what is read, and refuted -----------------------------------------------------------------------


def checked(build: Callable[[], Any], world: int = 2) -> tuple[str, str]:
    text = told(build, world)
    return text, str(placelogic.check(text))


def test_an_optimizer_by_its_name() -> None:
    assert "optimizer lamb\n" in told(lambda: with_optimizer(Lamb))


def test_a_parameter_that_ddp_ignores_is_never_summed() -> None:
    def build() -> Any:
        module = models.Net()
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ["head.weight"])
        wrapped = DistributedDataParallel(module)
        return from_torch(wrapped, models.adam(wrapped))

    text, report = checked(build)
    assert "# DistributedDataParallel ignores it\nstep head {" in text
    assert "error[GI01]: the gradient of `head` is never summed over dp" in report


def test_a_divisor_of_ones_own() -> None:
    def build() -> Any:
        module = models.Net()
        fully_shard(module, mesh=mesh("dp"))
        module.set_gradient_divide_factor(1.0)
        return from_torch(module, models.adam(module), loss="mean global", tokens="uneven")

    text, report = checked(build)
    assert "reduce over dp by sum" in text and "scale by" not in text
    assert "proved" in report
    assert "error[GI03]" in str(
        placelogic.check(text.replace("loss mean global", "loss mean local").replace("uneven", "even"))
    )


def test_frozen_weights_and_mixed_precision() -> None:
    def build() -> Any:
        module = models.Net()
        module.embed.weight.requires_grad_(False)
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        fully_shard(module, mesh=mesh("dp"), mp_policy=policy)
        trained = [one for name, one in module.named_parameters() if name not in ("embed.weight", "final.bias")]
        return from_torch(module, torch.optim.AdamW(trained))

    text, report = checked(build)
    assert "freeze embed, final_bias\n" in text
    assert "#   final_bias: no optimizer holds it: taken as frozen" in text
    assert "precision { params fp32, compute bf16, gradients fp32, moments fp32 }" in text
    assert "place embed over dp { params gathered on rows, reshard_after_forward false }" in text
    assert "proved" in report


def test_micro_batches_of_a_loop() -> None:
    def build() -> Any:
        module = DistributedDataParallel(models.Net())
        return from_torch(module, models.adam(module), microbatches=4, open_sizes=True)

    text, report = checked(build)
    assert "microbatches M    # 4 in this run" in text and "  scale by 1/M" in text
    assert "#   the training loop combines gradients in the last micro-batch only: no_sync()" in text
    assert "for every dp, M" in report


def pipeline(scale_grads: bool = True, clip: bool = False) -> str:
    rank = dist.get_rank()
    module = models.Net(rank)
    stage = PipelineStage(module, rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 2, loss_fn=models.loss_of, scale_grads=scale_grads)
    return from_torch(schedule, models.adam(module), clip=clip).text


def test_a_pipeline_that_does_not_divide() -> None:
    text = run(2, pipeline, False)[0]
    assert "scale by" not in text
    assert "error[GI03]" in str(placelogic.check(text))


def test_a_norm_of_each_stage_by_itself() -> None:
    text = run(2, pipeline, True, True)[0]
    assert "# clip_grad_norm_ on each stage by itself\nclip global_norm {\n" in text
    assert "error[GI07]" in str(placelogic.check(text))


def interleaved() -> str:
    rank = dist.get_rank()
    setup_mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("pp",))
    blocks = [nn.ModuleDict({"layers": nn.ModuleDict({str(rank + 2 * number): models.Block()})}) for number in range(2)]
    stages = [
        PipelineStage(block, rank + 2 * number, 4, torch.device("cpu"), group=setup_mesh.get_group())
        for number, block in enumerate(blocks)
    ]
    schedule = ScheduleInterleaved1F1B(stages, 4, loss_fn=models.loss_of)
    return from_torch(schedule, [models.adam(block) for block in blocks], setup_mesh).text


def test_several_stages_on_one_rank() -> None:
    text = run(2, interleaved)[0]
    assert "stages over pp { schedule interleaved_1f1b, chunks 2 }    # the schedule" in text
    assert "weights up { size 4*32*8, layers 4, dims out in, kind matrix }    # layers.0.up.weight and 3 more" in text
    assert placelogic.check(text).exit_code == 0


def test_a_gradient_tells_what_no_plan_does() -> None:
    def build() -> Any:
        module = models.Net()
        over = mesh("tp")
        module.head.weight = nn.Parameter(distribute_tensor(module.head.weight, over, [Replicate()]))
        gradient = torch.zeros_like(module.head.weight.to_local())
        module.head.weight.grad = DTensor.from_local(gradient, over, [Replicate()])
        return from_torch(module, models.adam(module), over, splits={"tp": "batch"})

    assert "weights head" in told(build)
