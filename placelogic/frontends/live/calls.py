"""One call to torch.distributed as the dispatcher sees it, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from msgspec import Struct

from placelogic.frontends.live.axes import ranks_of

NAMESPACES = ("c10d", "_c10d_functional", "_dtensor")

OPERATIONS = {
    "allreduce_": "all-reduce", "allreduce_coalesced_": "all-reduce",
    "all_reduce": "all-reduce", "all_reduce_": "all-reduce",
    "all_reduce_coalesced": "all-reduce", "all_reduce_coalesced_": "all-reduce",
    "_allgather_base_": "all-gather", "allgather_": "all-gather", "allgather_coalesced_": "all-gather",
    "allgather_into_tensor_coalesced_": "all-gather", "all_gather_into_tensor": "all-gather",
    "all_gather_into_tensor_out": "all-gather", "all_gather_into_tensor_coalesced": "all-gather",
    "_reduce_scatter_base_": "reduce-scatter", "reduce_scatter_": "reduce-scatter",
    "reduce_scatter_tensor_coalesced_": "reduce-scatter", "reduce_scatter_tensor": "reduce-scatter",
    "reduce_scatter_tensor_out": "reduce-scatter", "reduce_scatter_tensor_coalesced": "reduce-scatter",
    "broadcast_": "broadcast", "broadcast": "broadcast",
    "alltoall_": "all-to-all", "alltoall_base_": "all-to-all", "all_to_all_single": "all-to-all",
    "shard_dim_alltoall": "all-to-all",
    "reduce_": "reduce", "gather_": "gather", "scatter_": "scatter",
    "send": "send", "recv_": "receive", "recv_any_source_": "receive",
    "barrier": "barrier", "monitored_barrier_": "barrier",
}  # fmt: skip
"""Dispatcher name -> operation. What has a process group and is not here is recorded under its own name."""

SILENT = {"wait_tensor", "_wrap_tensor_autograd"}

WHOLE = {
    "all-gather": ("output_tensors", "output_tensor", "output_lists", "outputs", "output", "out"),
    "gather": ("output_tensors",),
}
"""Where the whole message is what comes out; for functional operations that is the result."""


class Call(Struct, frozen=True):
    """`sources` are what is sent, `results` what comes of it; `whole` the tensors of the whole message."""

    operation: str
    op: str | None
    ranks: tuple[int, ...]
    sources: tuple[torch.Tensor, ...]
    results: tuple[torch.Tensor, ...]
    whole: tuple[torch.Tensor, ...]
    root: int | None
    peer: int | None


def read(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Call | None:
    """None for what communicates nothing."""
    name = function._schema.name.split("::")[-1]
    if name in SILENT:
        return None
    names = [argument.name for argument in function._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    group = _group(given)
    if group is None:
        return None
    ranks = tuple(ranks_of(group))
    operation = OPERATIONS.get(name, name)
    inputs, outputs = _sides(given, result)
    whole = outputs if operation in WHOLE else inputs
    root = given.get("root_rank", given.get("src") if operation == "broadcast" else None)
    peer = given.get("dst") if operation == "send" else given.get("src") if operation == "receive" else None
    return Call(
        operation, _op(given), ranks, inputs, outputs, whole,
        None if root is None else ranks[root], None if peer is None or peer < 0 else ranks[peer],
    )  # fmt: skip


def _sides(given: dict[str, Any], result: Any) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """What goes in, and what comes out."""
    outputs = tuple(t for key, value in given.items() if key.startswith("out") for t in tensors(value))
    inputs = tuple(t for key, value in given.items() if not key.startswith("out") for t in tensors(value))
    if not outputs:
        in_place = "tensors" in given
        outputs = inputs if in_place else tuple(tensors(result)) or inputs
    return inputs, outputs


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from tensors(inner)


def _group(given: dict[str, Any]) -> Any:
    """The process group of a call, whichever way it is named."""
    boxed = given.get("process_group")
    if boxed is not None:
        return boxed if isinstance(boxed, dist.ProcessGroup) else dist.ProcessGroup.unbox(boxed)
    named = given.get("group_name")
    if isinstance(named, str):
        from torch.distributed.distributed_c10d import _resolve_process_group

        return _resolve_process_group(named)
    return named if isinstance(named, dist.ProcessGroup) else None


def _op(given: dict[str, Any]) -> str | None:
    op = given.get("reduce_op")
    if op is None or isinstance(op, str):
        return op
    return KINDS.get(int(op.op()), "unknown")


def _kinds() -> Iterable[tuple[int, str]]:
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
        kind = getattr(dist.ReduceOp.RedOpType, name, None)
        if kind is not None:
            yield int(getattr(kind, "value", kind)), name.lower()


KINDS = dict(_kinds())
