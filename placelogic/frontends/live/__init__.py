"""A live PyTorch model as a spec, and the collectives of a real training step held against one.

    spec = placelogic.from_torch(model, optimizer, mesh)     # read.py finds, groups.py sorts, write.py writes
    print(spec)                                              # a .place file, with what each line was read from

    with placelogic.trace(mesh) as t:                        # record.py sees every collective of the step
        train_step()
    print(t.compare(spec))                                   # expected.py, compare.py

What is not modelled is refused (problems.py lists the codes). torch is loaded when one of the two is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placelogic.frontends.live.problems import need_torch
from placelogic.frontends.live.results import Comparison, LiveSpec

if TYPE_CHECKING:
    from placelogic.frontends.live.tracing import Trace

__all__ = ["Comparison", "LiveSpec", "from_torch", "trace"]


def from_torch(
    model: Any,
    optimizer: Any,
    mesh: Any = None,
    *,
    microbatches: int | None = None,
    loss: str = "mean local",
    tokens: str = "even",
    splits: Mapping[str, str] | None = None,
    clip: bool = False,
    no_sync: bool | None = None,
    open_sizes: bool = False,
) -> LiveSpec:
    """The spec of a constructed model: what its wrappers, placements and optimizer will do in a step.

    `model`: a module (with DDP, fully_shard, parallelize_module), or for a pipeline its schedule or stages.
    With a pipeline every rank must call, because stages tell each other their weights. `optimizer`: one or
    several. `mesh`: the DeviceMesh with named axes; left out where the model shows it.

    A model does not tell the rest: `microbatches` (that of a schedule is known), `loss` ("mean local", "mean
    global", "sum" or "mean over dp"), `tokens` ("even", "uneven"), `splits` (axis -> batch, sequence or tokens,
    where wrappers do not show it), `clip` (whether the loop calls clip_grad_norm_), `no_sync` (whether gradients
    are combined in the last of several micro-batches only; by default DDP does, fully_shard does not, and
    pipeline schedules have both do it). `open_sizes` leaves mesh sizes and micro-batches open, to be checked for all
    of them. Raises SpecError (PL520 to PL528).
    """
    need_torch()
    from placelogic.frontends.live.spec import read_model

    return read_model(
        model, optimizer, mesh,
        microbatches=microbatches, loss=loss, tokens=tokens, splits=splits, clip=clip, no_sync=no_sync,
        open_sizes=open_sizes,
    )  # fmt: skip


def trace(mesh: Any = None) -> Trace:
    """Record the collectives of one training step:

        with placelogic.trace(mesh) as t:
            train_step()
        print(t.compare("spec.place"))

    `mesh`: the DeviceMesh, its axes named as in the spec; left out, one axis `dp` of all ranks. Works with any
    backend, the fake one included. Raises SpecError (PL520 to PL522)."""
    need_torch()
    from placelogic.frontends.live.tracing import start

    return start(mesh)
