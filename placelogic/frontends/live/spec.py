"""From a model to the text of its spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from placelogic.frontends.live import axes as live_axes
from placelogic.frontends.live import pipeline as stages
from placelogic.frontends.live.axes import MeshAxes
from placelogic.frontends.live.found import Model
from placelogic.frontends.live.groups import grouped
from placelogic.frontends.live.optimizers import measure, updates
from placelogic.frontends.live.problems import refuse
from placelogic.frontends.live.read import Reader, merged
from placelogic.frontends.live.results import LiveSpec
from placelogic.frontends.live.wrappers import check_coupling, check_modules
from placelogic.frontends.live.write import Said, write
from placelogic.program.catalog import SPLITS

LOSSES = ("mean local", "mean global", "sum")


def read_model(
    model: Any,
    optimizer: Any,
    mesh: Any,
    *,
    microbatches: int | None,
    loss: str,
    tokens: str,
    splits: Mapping[str, str] | None,
    clip: bool,
    no_sync: bool | None,
    open_sizes: bool,
) -> LiveSpec:
    """`placelogic.from_torch`, which see."""
    if not dist.is_initialized():
        raise refuse("PL521", "torch.distributed is not initialised", "call init_process_group first")
    given = stages.unpack(model)
    axes = live_axes.from_mesh(mesh) if mesh is not None else _mesh_of(given)
    pipeline = stages.described(given, axes)
    splits = dict(splits or {})
    said = Said(_count(microbatches, given.microbatches), _loss(loss), tokens, clip, open_sizes)
    _check_said(splits, said, axes)
    for module, _ in given.modules:
        check_modules(module)
    reader = Reader(axes, updates(optimizer, axes), True if pipeline is not None and no_sync is None else no_sync)
    parameters = [record for module, stage in given.modules for record in reader.read(module, stage)]
    if reader.batch or splits:
        for module, _ in given.modules:
            check_coupling(module)
    if pipeline is not None:
        parameters = stages.gathered(parameters, given, pipeline)
    if not parameters:
        raise refuse("PL521", "the model has no parameters", "pass the model that is trained")
    _check_axes(reader, splits, pipeline.axis if pipeline else None)
    found = Model(
        axes.names, axes.sizes, tuple(merged(splits, reader.batch)), tuple(parameters), pipeline,
        tuple(_remarks(given, reader)),
    )  # fmt: skip
    groups = grouped(found)
    title = f"Read from a model by placelogic.from_torch, PyTorch {torch.__version__}."
    names = {group.name: tuple(member.name for member in group.members) for group in groups}
    held = measure((module for module, _ in given.modules), optimizer, axes)
    padded = {group.name: group.padded for group in groups if group.padded[0] != 1}
    return LiveSpec(write(found, groups, said, title), names, held, padded)


def _mesh_of(given: stages.Given) -> MeshAxes:
    """The mesh that the model itself shows: that of its DTensors, else one axis of all ranks."""
    from torch.distributed.tensor import DTensor

    meshes = [
        parameter.device_mesh
        for module, _ in given.modules
        for parameter in module.parameters()
        if isinstance(parameter, DTensor)
    ]
    if meshes:
        roots = [getattr(mesh, "_get_root_mesh", lambda mesh=mesh: mesh)() for mesh in meshes]
        return live_axes.from_mesh(max(roots, key=lambda mesh: mesh.size()))
    return live_axes.of_world(given.group, "pp" if given.schedule or given.stages > 1 else "dp")


def _count(said: int | None, scheduled: int | None) -> int:
    if said is not None and (isinstance(said, bool) or not isinstance(said, int) or said < 1):
        raise refuse("PL521", f"microbatches must be a positive whole number, not {said!r}", "leave it out for 1")
    if said is not None and scheduled is not None and said != scheduled:
        raise refuse("PL521", f"microbatches = {said}, but the schedule has {scheduled}", "leave it out")
    return said or scheduled or 1


def _loss(loss: str) -> str:
    if loss not in LOSSES and not loss.startswith("mean over "):
        raise refuse("PL521", f"`{loss}` is no way to divide a loss", f"use {', '.join(LOSSES)} or mean over AXES")
    return loss


def _check_said(splits: Mapping[str, str], said: Said, axes: MeshAxes) -> None:
    if said.tokens not in ("even", "uneven"):
        raise refuse("PL521", f"tokens are even or uneven, not `{said.tokens}`", "leave it out for even")
    for axis, dim in splits.items():
        if axis not in axes.names:
            raise refuse("PL522", f"the mesh has no axis `{axis}`: {axes.describe()}", "name its axes in `splits`")
        if dim not in SPLITS:
            raise refuse("PL521", f"nothing is split along `{dim}`", f"use {', '.join(SPLITS)}")


def _check_axes(reader: Reader, splits: Mapping[str, str], pipeline: str | None) -> None:
    """Every axis must have a purpose, and parameters that are computed with in pieces no split of the batch."""
    for axis, size in zip(reader.axes.names, reader.axes.sizes, strict=True):
        if size > 1 and axis != pipeline and not {axis} & {*reader.batch, *reader.tensor, *splits}:
            raise refuse(
                "PL523", f"nothing in the model says what the axis `{axis}` (size {size}) is for",
                f'say what it splits: from_torch(..., splits={{"{axis}": "batch"}})',
            )  # fmt: skip
        if axis in reader.tensor and axis in {**reader.batch, **splits}:
            raise refuse(
                "PL524", f"parameters are cut over `{axis}`, which also splits the work: expert weights, whose tokens "
                "travel, are not read from a model", "write the spec of the experts by hand: `routed over`",
            )  # fmt: skip


def _remarks(given: stages.Given, reader: Reader) -> list[str]:
    dropping = [
        name
        for module, _ in given.modules
        for name, inner in module.named_modules()
        if isinstance(inner, torch.nn.modules.dropout._DropoutNd) and inner.p > 0
    ]
    remarks = []
    if dropping and reader.tensor:
        remarks.append(f"random streams of {dropping[0]} ({len(dropping)} dropouts) are as they must be: not read")
    if given.group is not None:
        remarks.append("weights of different stages are different weights: none are tied across stages")
    if reader.tensor:
        remarks.append("parameters outside of the plan see whole activations")
    return remarks
