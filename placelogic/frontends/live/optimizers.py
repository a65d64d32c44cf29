"""Who updates which parameter, and where the optimizer's state lies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from msgspec import Struct
from torch import nn
from torch.distributed.tensor import DTensor

from placelogic.frontends.live.axes import Axes, MeshAxes
from placelogic.frontends.live.problems import refuse
from placelogic.program.catalog import OPTIMIZERS


class Updated(Struct, frozen=True):
    """`zero`: the axes whose devices share the state, a whole parameter each; `moments`: the dtype of the
    state where there is one already."""

    name: str
    zero: Axes
    moments: Any


class Updates(Struct, frozen=True):
    """By id of the parameter. Raises SpecError when asked for one that two optimizers hold."""

    found: dict[int, Updated]

    def of(self, parameter: Any) -> Updated | None:
        return self.found.get(id(parameter))


def updates(given: Any, axes: MeshAxes) -> Updates:
    """`given`: an optimizer, or several. Raises SpecError (PL521, PL524, PL527)."""
    found: dict[int, Updated] = {}
    for one in given if isinstance(given, Iterable) else (given,):
        for optimizer, zero in _plain(one, axes):
            name = _name(optimizer)
            for group in optimizer.param_groups if not zero else one.param_groups:
                for parameter in group["params"]:
                    if id(parameter) in found:
                        raise refuse("PL524", "one parameter is held by two optimizers", "give it to one of them")
                    found[id(parameter)] = Updated(name, zero, _dtype(optimizer.state.get(parameter, {})))
    return Updates(found)


def measure(modules: Iterable[nn.Module], given: Any, axes: MeshAxes) -> dict[str, int]:
    """Bytes of each state that this rank holds now."""
    parameters = {id(one): one for module in modules for one in module.parameters()}.values()
    held = {"params": 0, "gradients": 0, "optimizer": 0}
    for parameter in parameters:
        held["params"] += _bytes(parameter)
        held["gradients"] += _bytes(parameter.grad) if parameter.grad is not None else 0
    for one in given if isinstance(given, Iterable) else (given,):
        for optimizer, _ in _plain(one, axes):
            held["optimizer"] += sum(_bytes(value) for state in optimizer.state.values() for value in _moments(state))
    return held


def _bytes(tensor: Any) -> int:
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return int(local.numel() * local.element_size())


def _plain(one: Any, axes: MeshAxes) -> list[tuple[torch.optim.Optimizer, Axes]]:
    """The optimizer proper, and the axes along which its state is dealt out."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    if isinstance(one, ZeroRedundancyOptimizer):
        if one._overlap_with_ddp:
            raise refuse("PL524", "ZeroRedundancyOptimizer with overlap_with_ddp updates in hooks of DDP, which is "
                         "not modelled", "leave overlap_with_ddp out")  # fmt: skip
        return [(one.optim, axes.of_group(one.process_group, "ZeroRedundancyOptimizer"))]
    if not isinstance(one, torch.optim.Optimizer):
        raise refuse("PL521", f"`optimizer` is a {type(one).__name__}, not a torch.optim.Optimizer",
                     "pass the optimizer itself, or a list of optimizers")  # fmt: skip
    return [(one, ())]


def _name(optimizer: torch.optim.Optimizer) -> str:
    kind = type(optimizer).__name__.lower()
    if kind == "sgd" and any(group.get("momentum") for group in optimizer.param_groups):
        kind = "sgd_momentum"
    name = kind if kind in OPTIMIZERS else None
    if name is None:
        raise refuse("PL527", f"the optimizer {type(optimizer).__name__} is not known",
                     "known ones: " + ", ".join(OPTIMIZERS))  # fmt: skip
    return name


def _dtype(state: dict[str, Any]) -> Any:
    kept = _moments(state)
    return kept[0].dtype if kept else None


def _moments(state: dict[str, Any]) -> list[Any]:
    """Whatever has the form of a tensor; counters of steps are none."""
    return [value for value in state.values() if torch.is_tensor(value) and value.dim() > 0]
