"""The small transformer, given to the components that the spec calls for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from msgspec import Struct
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from placelogic.replay.native.clipping import Clip, by_torch, clipped
from placelogic.replay.native.recognise import SCHEDULES, Native
from placelogic.replay.native.tied import Ends
from placelogic.replay.native.transformer import Transformer, Widths, mean_loss, started

Split = Callable[[torch.Tensor], torch.Tensor]


class Parallel(Struct):
    """A job on this rank. `step(tokens, targets)`: forward and backward of this rank's share of the
    global batch, gradients left in the parameters. `held`: what this rank holds of a whole tensor. `clip`: what
    is done to the gradients then, if anything; returns their norm."""

    modules: list[nn.Module]
    step: Callable[[torch.Tensor, torch.Tensor], None]
    optimizer: Any
    held: Callable[[str, torch.Tensor], torch.Tensor] = lambda name, tensor: tensor
    clip: Clip | None = None

    def named(self) -> Iterator[tuple[str, nn.Parameter]]:
        for module in self.modules:
            for name, parameter in module.named_parameters():
                yield name.removeprefix("module."), parameter


def needed_microbatches(native: Native) -> int:
    """Pipeline schedules need enough micro-batches to fill the stages, in rounds."""
    if native.schedule is None:
        return native.microbatches
    stages = native.size("stages") * native.chunks
    least = stages if native.schedule in ("dualpipe_v", "zbv", "interleaved_zero_bubble") else native.size("stages")
    count = max(native.microbatches, least)
    return -(-count // native.size("stages")) * native.size("stages")


def mesh_of(native: Native, device: str) -> DeviceMesh:
    """The mesh of the spec, its axes named by what they do."""
    roles = [role for role in native.roles.values() if role != "idle"]
    sizes = [native.sizes[axis] for axis, role in native.roles.items() if role != "idle"]
    return init_device_mesh(device, tuple(sizes), mesh_dim_names=tuple(roles))


def optimizer_of(name: str, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False)
    return torch.optim.Adam(parameters, lr=0.01, foreach=False)


def parallel(native: Native, sizes: Widths, mesh: DeviceMesh, optimizer: str, seed: int, loss: bool = False) -> Parallel:
    """Build it. All ranks call this together. `loss`: tensor parallelism up to the loss."""
    if native.schedule is not None:
        return _pipeline(native, sizes, mesh, optimizer, seed)
    from torch.distributed.tensor.parallel import loss_parallel

    model = Transformer(sizes)
    started(model, seed)
    names = mesh.mesh_dim_names or ()
    if "tensor" in names:
        tensor_parallel(model, mesh["tensor"], native.sequence, loss)
    if "shard" in names:
        shard(model, _data_mesh(mesh), native)
    elif native.replicated:
        replicated(model, mesh["replicate"])
    count = needed_microbatches(native)
    wrapped: nn.Module = model
    if "shard" not in names and not native.replicated and ("replicate" in names or "zero1" in names):
        group = mesh.get_group("zero1" if "zero1" in names else "replicate")
        wrapped = nn.parallel.DistributedDataParallel(model, process_group=group)

    def step(tokens: torch.Tensor, targets: torch.Tensor) -> None:
        turns = list(zip(tokens.chunk(count), targets.chunk(count)))
        for number, (x, y) in enumerate(turns):
            if native.replicated:
                model.set_requires_gradient_sync(number == count - 1)  # type: ignore[operator]
            if isinstance(wrapped, nn.parallel.DistributedDataParallel) and number < count - 1:
                with wrapped.no_sync():
                    (mean_loss(wrapped(x), y) / count).backward()
            else:
                with loss_parallel() if loss else nullcontext():
                    (mean_loss(wrapped(x), y) / count).backward()

    made: Any
    if "zero1" in names:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        settings = {"lr": 0.1, "momentum": 0.9} if optimizer == "sgd" else {"lr": 0.01}
        kind = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
        made = ZeroRedundancyOptimizer(
            model.parameters(), kind, process_group=mesh.get_group("zero1"), foreach=False, **settings
        )
    else:
        made = optimizer_of(optimizer, list(model.parameters()))
    return Parallel([model], step, made, clip=partial(by_torch, list(model.parameters())) if native.clip else None)


def _data_mesh(mesh: DeviceMesh) -> DeviceMesh:
    names = mesh.mesh_dim_names or ()
    return mesh["replicate", "shard"] if "replicate" in names else mesh["shard"]


def shard(model: Transformer, mesh: DeviceMesh, native: Native) -> None:
    """FSDP2: one unit for each block, one for the rest."""
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    policies: dict[str, Any] = {"reshard_after_forward": native.reshard}
    if native.master:
        policies["mp_policy"] = MixedPrecisionPolicy(param_dtype=NARROW, cast_forward_inputs=False)
    if native.offload:
        policies["offload_policy"] = CPUOffloadPolicy(pin_memory=False)
    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh, **policies)
    fully_shard(model, mesh=mesh, **policies)


NARROW = torch.float32
"""What is computed with where parameters are master copies."""


def replicated(model: Transformer, mesh: DeviceMesh) -> None:
    """Whole parameters by the machinery of FSDP2, which takes DTensors and works under every schedule."""
    from torch.distributed._composable.replicate_with_fsdp import replicate

    for layer in model.layers.values():
        replicate(layer, mesh=mesh)
    replicate(model, mesh=mesh)


def tensor_parallel(model: Transformer, mesh: DeviceMesh, sequence: bool, loss: bool = False) -> None:
    """Columns, then rows; with `sequence`, norms on shares of the sequence; with `loss`, scores stay cut
    by vocabulary."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        ParallelStyle,
        PrepareModuleInput,
        RowwiseParallel,
        SequenceParallel,
        parallelize_module,
    )

    between = Shard(1) if sequence else Replicate()
    plan: dict[str, ParallelStyle] = {}
    if model.embed is not None:
        plan["embed"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=between)
    if model.output is not None:
        scores = Shard(-1) if loss else Replicate()
        plan["output"] = ColwiseParallel(input_layouts=between, output_layouts=scores, use_local_output=not loss)
        if sequence:
            plan["norm"] = SequenceParallel()
    for number in model.layers:
        at = f"layers.{number}"
        plan |= {f"{at}.attention.{w}": ColwiseParallel() for w in ("wq", "wk", "wv")}
        plan[f"{at}.ffn.w1"] = ColwiseParallel()
        plan |= {f"{at}.{w}": RowwiseParallel(output_layouts=between) for w in ("attention.wo", "ffn.w2")}
        if sequence:
            plan |= {f"{at}.{norm}": SequenceParallel() for norm in ("attention_norm", "ffn_norm")}
            whole = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
            plan |= {f"{at}.{inner}": whole for inner in ("attention", "ffn")}
    parallelize_module(model, mesh, plan)


def _pipeline(native: Native, sizes: Widths, mesh: DeviceMesh, optimizer: str, seed: int) -> Parallel:
    from torch.distributed import pipelining

    names = mesh.mesh_dim_names or ()
    group = mesh.get_group("stages")
    rank, devices = dist.get_rank(group), native.size("stages")
    total = devices * native.chunks
    own = [rank + devices * chunk for chunk in range(native.chunks)]
    if native.vee:
        own = [rank, total - 1 - rank]
    per_stage = sizes.layers // total
    modules = []
    for number in own:
        layers = range(number * per_stage, (number + 1) * per_stage)
        module = Transformer(sizes, layers, number == 0, number == total - 1)
        started(module, seed, native.tied)
        if "tensor" in names:
            tensor_parallel(module, mesh["tensor"], native.sequence)
        if "shard" in names:
            shard(module, _data_mesh(mesh), native)
        elif native.replicated:
            replicated(module, mesh["replicate"])
        modules.append(module)
    device = torch.device(mesh.device_type)
    stages = [pipelining.PipelineStage(m, n, total, device, group=group) for m, n in zip(modules, own)]
    count = needed_microbatches(native)
    kind = getattr(pipelining.schedules, SCHEDULES[native.schedule or "gpipe"])
    several = native.chunks > 1
    schedule = kind(stages if several else stages[0], count, loss_fn=mean_loss)
    first, last = 0 in own, total - 1 in own
    ends = Ends(modules, mesh) if native.tied else None

    def step(tokens: torch.Tensor, targets: torch.Tensor) -> None:
        # Losses are asked for where the last stage is; the schedule divides gradients by the micro-batches.
        schedule.step(*([tokens] if first else []), **({"target": targets, "losses": []} if last else {}))
        if ends is not None:
            ends.sum()

    parameters = [p for m in modules for p in m.parameters()]
    # Of tied ends the norm has one.
    counted = [p for p in parameters if ends is None or p is not ends.last]
    clip = partial(clipped, parameters, counted, [], group) if native.clip else None
    return Parallel(list(modules), step, optimizer_of(optimizer, parameters), clip=clip)
