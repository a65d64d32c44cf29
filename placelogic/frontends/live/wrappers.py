"""What DDP, FSDP2, ZeroRedundancyOptimizer and tensor-parallel plans leave on a model.

Read from PyTorch 2.13: torch/nn/parallel/distributed.py, torch/distributed/fsdp/_fully_shard,
torch/distributed/optim/zero_redundancy_optimizer.py, torch/distributed/tensor/parallel/style.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from msgspec import Struct
from torch import nn
from torch.distributed._composable.contract import _get_registry
from torch.nn.parallel import DistributedDataParallel

from placelogic.frontends.live.axes import Axes, MeshAxes
from placelogic.frontends.live.problems import refuse

MEAN_HOOKS = {"allreduce_hook": None, "fp16_compress_hook": "fp16", "bf16_compress_hook": "bf16"}
"""DDP communication hooks that are one all-reduce by mean, and the dtype on the wire."""

REFUSED = {
    "FullyShardedDataParallel": "FSDP1 keeps flat parameters; wrap the model with fully_shard (FSDP2) instead",
    "DataParallel": "DataParallel is one process; use DistributedDataParallel",
    "DeepSpeedEngine": "import its configuration: placelogic import deepspeed ds.json",
}
COUPLED = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


class Replicas(Struct, frozen=True):
    """The parameters of one DistributedDataParallel. `ignored`: ids of those that it does not reduce. `reduce`: the
    dtype on the wire, where it is another than that of the gradients."""

    axes: Axes
    covered: frozenset[int]
    ignored: frozenset[int]
    reduce: str | None


class Shards(Struct, frozen=True):
    """One parameter under fully_shard. `divide`: the number gradients are divided by, where it is not the
    number of devices. `reshard`: as the language says it, None where it is the default (true). `compute`, `reduce`:
    dtypes of the gathered parameters and of the reduction, None where it is that of the parameter. `padded`: how
    much larger its messages are than the parameter, because every shard is as large as the first."""

    shard: Axes
    replicate: Axes
    divide: float | None
    reshard: str | None
    compute: Any
    reduce: Any
    offloaded: bool
    padded: Fraction


def check_modules(model: nn.Module) -> None:
    """Refuse wrappers whose behaviour is not modelled. Raises SpecError (PL524)."""
    for name, module in model.named_modules():
        if "replicate" in (_get_registry(module) or {}) and _state(module) is None:
            raise refuse("PL524", f"{_shown(name, 'replicate()')} of an old kind, which is not read",
                         "use DistributedDataParallel, or a newer PyTorch")  # fmt: skip
        kind = type(module).__name__
        if kind in REFUSED and type(module).__module__.split(".")[0] in ("torch", "deepspeed"):
            raise refuse("PL524", f"{_shown(name, kind)}, which is not read", REFUSED[kind])


def check_coupling(model: nn.Module) -> None:
    """Refuse modules that couple samples. Raises SpecError (PL524)."""
    for name, module in model.named_modules():
        if type(module).__name__ in COUPLED and module.training:
            raise refuse(
                "PL524",
                f"{_shown(name, type(module).__name__)}: statistics of the batch couple the samples of one device, and "
                "the loss is no sum over them any more; this is not modelled",
                "use a norm that looks at one sample, or put the module in evaluation mode",
            )


def _shown(name: str, kind: str) -> str:
    return f"`{name}` is a {kind}" if name else f"the model is a {kind}"


def replicas(model: nn.Module, axes: MeshAxes) -> list[Replicas]:
    """Every DistributedDataParallel in the model. Raises SpecError."""
    found = []
    for name, module in model.named_modules():
        if not isinstance(module, DistributedDataParallel):
            continue
        shown = f"DistributedDataParallel `{name}`" if name else "DistributedDataParallel"
        hooks = [getattr(hook, "__name__", repr(hook)) for hook, _ in getattr(module, "_comm_hooks", ())]
        for hook in hooks:
            if hook not in MEAN_HOOKS:
                raise refuse("PL524", f"{shown} has the communication hook {hook}, which is not modelled",
                             "hooks that are one all-reduce by mean are: " + ", ".join(sorted(MEAN_HOOKS)))  # fmt: skip
        if getattr(module, "mixed_precision", None) is not None:
            raise refuse("PL524", f"{shown} has mixed_precision, which is not modelled", "leave it out")
        if not module.require_backward_grad_sync:
            raise refuse("PL525", f"{shown} is inside no_sync()", "call from_torch outside of it")
        ignored = set(getattr(module, "parameters_to_ignore", ()))
        named = list(module.module.named_parameters())
        found.append(
            Replicas(
                axes.of_group(module.process_group, shown),
                frozenset(id(parameter) for _, parameter in named),
                frozenset(id(parameter) for inner, parameter in named if inner in ignored),
                MEAN_HOOKS[hooks[0]] if hooks else None,
            )
        )
    return found


def shards(model: nn.Module, axes: MeshAxes) -> dict[int, Shards]:
    """Parameters under fully_shard, by id. Raises SpecError."""
    wrapped = [(name, module) for name, module in model.named_modules() if _state(module) is not None]
    inside = {id(inner) for _, module in wrapped for inner in module.modules() if inner is not module}
    found: dict[int, Shards] = {}
    for name, module in wrapped:
        state = _state(module)
        groups = getattr(state, "_fsdp_param_groups", None)
        if groups is None:  # before PyTorch 2.11 there was one
            groups = [state._fsdp_param_group] if state._fsdp_param_group is not None else []
        shown = f"fully_shard of `{name}`" if name else "fully_shard of the model"
        for group in groups:
            _check_flags(group, shown)
            for one in group.fsdp_params:
                found[id(one.sharded_param)] = _sharded(one, group, state, id(module) not in inside, axes, shown)
    return found


def _state(module: nn.Module) -> Any:
    """What fully_shard, or `replicate` that is built on it, keeps of a module; None for others."""
    from torch.distributed.fsdp._fully_shard._fsdp_state import _get_module_fsdp_state

    return _get_module_fsdp_state(module)


def class_name(module: nn.Module) -> str:
    """The class of a module, as it was before fully_shard or replicate made one of its own of it."""
    if _state(module) is None:
        return type(module).__name__
    return type(module).__name__.removeprefix("FSDP").removeprefix("Replicate")


def _check_flags(group: Any, shown: str) -> None:
    if not group.reduce_grads or not getattr(group, "all_reduce_grads", True):
        raise refuse("PL525", f"{shown}: set_requires_gradient_sync or set_requires_all_reduce is off",
                     "call from_torch when they are on, as they are in the last micro-batch")  # fmt: skip
    if getattr(group, "_all_reduce_hook", None) is not None:
        raise refuse("PL524", f"{shown} has an all-reduce hook, which is not modelled", "remove the hook")


def _sharded(one: Any, group: Any, state: Any, root: bool, axes: MeshAxes, shown: str) -> Shards:
    info = getattr(one, "mesh_info", None) or group.mesh_info
    shard = getattr(info, "shard_process_group", None)
    replicate = getattr(info, "replicate_process_group", None)
    policy = group.mp_policy
    return Shards(
        axes.of_group(shard, shown) if shard is not None else (),
        axes.of_group(replicate, shown) if replicate is not None else (),
        group.gradient_divide_factor,
        _reshard(one, group, state, root) if shard is not None else None,
        policy.param_dtype,
        policy.reduce_dtype or policy.param_dtype,
        bool(getattr(one, "offload_to_cpu", False)),
        _padded(one, axes.size(axes.of_group(shard, shown))) if shard is not None else Fraction(1),
    )


def _padded(one: Any, shards: int) -> Fraction:
    elements = one._orig_size.numel()
    return Fraction(one.padded_sharded_param_size.numel() * shards, elements) if elements else Fraction(1)


def _reshard(one: Any, group: Any, state: Any, root: bool) -> str | None:
    """What reshard_after_forward comes to; on the root it is false unless somebody asked for it."""
    after = getattr(one, "post_forward_mesh_info", None) or group.post_forward_mesh_info
    if after is None or (root and getattr(state, "_auto_reshard_after_forward", False)):
        return "false"
    size = getattr(after, "shard_mesh_size", None)
    return None if size == group.mesh_info.shard_mesh_size else str(size)


def sequence_parallel(model: nn.Module, axes: MeshAxes) -> tuple[dict[int, Axes], set[int]]:
    """Parameters whose module works on a share of the sequence (id -> axes), and those whose module has any
    other style of torch.distributed.tensor.parallel, so that its activations are whole where it is."""
    cut: dict[int, Axes] = {}
    other: set[int] = set()
    for _, module in model.named_modules():
        for style, mesh in _styles(module):
            if style == "SequenceParallel":
                along = axes.of_group(mesh.get_group(), "SequenceParallel")
                cut.update((id(parameter), along) for parameter in module.parameters())
            else:
                other.update(id(parameter) for parameter in module.parameters(recurse=False))
    return cut, other


def _styles(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """`distribute_module` keeps a style as a partial in the closure of a forward hook."""
    for hook in module._forward_pre_hooks.values():
        cells = [cell.cell_contents for cell in getattr(hook, "__closure__", None) or ()]
        meshes = [cell for cell in cells if hasattr(cell, "mesh_dim_names")]
        for cell in cells:
            name = getattr(cell.func, "__qualname__", "") if isinstance(cell, partial) else ""
            if name.endswith("._prepare_input_fn") and meshes:
                yield name.split(".")[0], meshes[0]
