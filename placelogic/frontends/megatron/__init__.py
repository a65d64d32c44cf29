"""Megatron-LM's arguments as a spec.

How gradients are scaled and summed is in placelogic/std/frameworks/megatron_*.place, with its sources. The mesh
is that of the rank generators: dense and expert groups are two ways to cut the same ranks, so the axes of the
spec are their common refinement (ranks.py)."""

from __future__ import annotations

from placelogic.frontends.config import Config
from placelogic.frontends.draft import Draft
from placelogic.frontends.megatron.facts import facts_of
from placelogic.frontends.megatron.mesh import mesh_of, write_mesh
from placelogic.frontends.megatron.sizes import ModelSizes, sizes_of
from placelogic.frontends.megatron.step import write_step
from placelogic.frontends.megatron.weights import write_weights
from placelogic.frontends.request import Request
from placelogic.frontends.values import Value

VERSIONS = ("0.5", "0.20")
"""Of Megatron core: the first and the last that the strategies were compared with."""

__all__ = ["VERSIONS", "ModelSizes", "config", "draft"]


def config(root: Value, path: str, request: Request) -> Config:
    """The arguments as this importer reads them: from a shell they are all text."""
    return Config(path, root, loose=True)


def draft(config: Config, request: Request) -> tuple[Draft, dict[str, object]]:
    """The spec of a set of arguments, and what it amounts to."""
    spec = Draft()
    sizes = sizes_of(config, request)
    mesh = mesh_of(config, sizes)
    write_mesh(spec, sizes, mesh)
    write_weights(config, spec, sizes, mesh)
    write_step(config, spec, sizes, mesh, request)
    fixed = next((line.split()[1] for line, _ in spec.lines["work"] if line.startswith("microbatches")), "M")
    return spec, facts_of(config, sizes) | {"microbatches": fixed}
