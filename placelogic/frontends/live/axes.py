"""The axes of a device mesh, and which of them a process group runs along."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch.distributed as dist
from msgspec import Struct

from placelogic.frontends.live.problems import refuse

Axes = tuple[str, ...]


class MeshAxes(Struct, frozen=True):
    """Names and sizes of a mesh, as this rank sees it. `groups`: for every set of axes longer than 1, the
    ranks that differ from this one along these axes only; the longest set of names for equal ranks is
    impossible, because axes of size 1 take no part."""

    names: Axes
    sizes: tuple[int, ...]
    rank: int
    groups: dict[frozenset[int], Axes]
    along: dict[str, tuple[int, ...]]

    def size(self, axes: Iterable[str]) -> int:
        product = 1
        for axis in axes:
            product *= self.sizes[self.names.index(axis)]
        return product

    def of_ranks(self, ranks: Sequence[int]) -> Axes | None:
        """The axes along which these ranks differ; () for one rank, None when they are no group of the mesh."""
        if len(set(ranks)) == 1:
            return ()
        return self.groups.get(frozenset(ranks))

    def of_group(self, group: Any, what: str) -> Axes:
        """As above, for a process group. Raises SpecError (PL522)."""
        ranks = ranks_of(group)
        axes = self.of_ranks(ranks)
        if axes is None:
            shown = ", ".join(map(str, ranks[:16])) + (", ..." if len(ranks) > 16 else "")
            raise refuse(
                "PL522",
                f"{what} works in the group of ranks {shown}, which does not run along axes of the mesh "
                f"({self.describe()})",
                "pass the mesh that the groups were made from: from_torch(model, optimizer, mesh)",
            )
        return axes

    def between(self, one: int) -> Axes | None:
        """The axes along which another rank differs from this one, for transfers from point to point; None
        for a rank outside the mesh."""
        best: Axes | None = None
        for ranks, axes in self.groups.items():
            if one in ranks and (best is None or len(axes) < len(best)):
                best = axes
        return best

    def describe(self) -> str:
        return ", ".join(f"{name} = {size}" for name, size in zip(self.names, self.sizes, strict=True))


def ranks_of(group: Any) -> list[int]:
    """The global ranks of a process group; None is the group of all."""
    return list(dist.get_process_group_ranks(group if group is not None else dist.group.WORLD))


def from_mesh(mesh: Any) -> MeshAxes:
    """Raises SpecError (PL521, PL522)."""
    if not all(hasattr(mesh, name) for name in ("mesh", "mesh_dim_names", "get_rank")):
        raise refuse(
            "PL521", f"`mesh` is a {type(mesh).__name__}, not a DeviceMesh",
            'make one: init_device_mesh("cuda", (4, 2), mesh_dim_names=("dp", "tp"))',
        )  # fmt: skip
    names = mesh.mesh_dim_names
    if names is None and mesh.ndim == 1:
        names = ("dp",)
    if names is None:
        raise refuse("PL522", "the axes of the mesh have no names", "pass mesh_dim_names to init_device_mesh")
    return build(tuple(names), mesh.mesh.tolist(), tuple(mesh.mesh.shape), mesh.get_rank())


def of_world(group: Any, name: str = "dp") -> MeshAxes:
    """One axis: the ranks of one process group."""
    ranks = ranks_of(group)
    return build((name,), ranks, (len(ranks),), dist.get_rank())


def build(names: Axes, layout: Any, shape: tuple[int, ...], rank: int) -> MeshAxes:
    """`layout`: the ranks, as nested lists of that shape."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise refuse("PL522", f"`{name}` is no name for an axis", "use letters, digits and underscores")
    placed = {_at(layout, index): index for index in itertools.product(*map(range, shape))}
    if rank not in placed:
        raise refuse("PL522", f"rank {rank} is not part of the mesh", "pass the mesh on its own ranks only")
    here = placed[rank]
    real = [number for number, size in enumerate(shape) if size > 1]
    groups: dict[frozenset[int], Axes] = {}
    for count in range(1, len(real) + 1):
        for chosen in itertools.combinations(real, count):
            groups[frozenset(_along(layout, shape, here, chosen))] = tuple(names[number] for number in chosen)
    along = {name: tuple(_along(layout, shape, here, (number,))) for number, name in enumerate(names)}
    return MeshAxes(names, shape, rank, groups, along)


def _along(layout: Any, shape: tuple[int, ...], here: tuple[int, ...], chosen: tuple[int, ...]) -> list[int]:
    spans = [range(size) if number in chosen else (here[number],) for number, size in enumerate(shape)]
    return [_at(layout, index) for index in itertools.product(*spans)]


def _at(layout: Any, index: tuple[int, ...]) -> int:
    for number in index:
        layout = layout[number]
    return int(layout)
