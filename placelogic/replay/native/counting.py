"""What collectives carry, counted where torch dispatches them: also those of C++ reducers and of DTensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KINDS = {
    "allreduce_": "all-reduce",
    "all_reduce": "all-reduce",
    "all_reduce_": "all-reduce",
    "all_reduce_coalesced": "all-reduce",
    "allreduce_coalesced_": "all-reduce",
    "_allgather_base_": "all-gather",
    "allgather_": "all-gather",
    "allgather_into_tensor_coalesced_": "all-gather",
    "all_gather_into_tensor": "all-gather",
    "all_gather_into_tensor_out": "all-gather",
    "all_gather_into_tensor_coalesced": "all-gather",
    "_reduce_scatter_base_": "reduce-scatter",
    "reduce_scatter_": "reduce-scatter",
    "reduce_scatter_tensor": "reduce-scatter",
    "reduce_scatter_tensor_coalesced": "reduce-scatter",
    "reduce_scatter_tensor_coalesced_": "reduce-scatter",
    "broadcast_": "broadcast",
    "broadcast": "broadcast",
    "alltoall_": "all-to-all",
    "alltoall_base_": "all-to-all",
    "all_to_all_single": "all-to-all",
    "send": "point to point",
}
"""Operators of the namespaces below; receiving is the other side of sending."""

_SILENT = {"wait_tensor", "_wrap_tensor_autograd", "recv_", "barrier", "monitored_barrier_", "recv_any_source_"}
_NAMESPACES = ("c10d", "_c10d_functional", "c10d_functional", "_dtensor")


class Payload(TorchDispatchMode):
    """Bytes per kind of collective: the whole tensor that it is about."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # what they do inside comes here again
        result = func(*args, **(kwargs or {}))
        space, name = func.namespace, func._schema.name.split("::")[1]
        if space in _NAMESPACES and name not in _SILENT:
            kind = KINDS.get(name, name)
            inputs = sum(map(_bytes, _tensors((args, kwargs))))
            outputs = sum(map(_bytes, _tensors(result)))
            self.bytes[kind] += self._whole(kind, name, args, inputs, outputs)
            self.calls[kind] += 1
        return result

    def _whole(self, kind: str, name: str, args: tuple[Any, ...], inputs: int, outputs: int) -> int:
        """Operators of c10d take their outputs as arguments: the full-sized side is counted once."""
        if kind in ("all-gather", "reduce-scatter", "all-to-all"):
            if name.endswith("_"):
                sides = [sum(map(_bytes, _tensors(arg))) for arg in args[:2]]
                return max(sides) if kind != "all-to-all" else sides[1]
            return max(inputs, outputs) if kind != "all-to-all" else inputs
        return sum(map(_bytes, _tensors(args[:1])))


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
