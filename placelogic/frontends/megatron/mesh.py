"""The mesh of a Megatron-LM run."""

from __future__ import annotations

from placelogic.frontends.config import Config
from placelogic.frontends.draft import Draft
from placelogic.frontends.megatron.sizes import ModelSizes
from placelogic.frontends.ranks import Groups, Mesh, RanksDoNotFit, refine


def mesh_of(config: Config, sizes: ModelSizes) -> Mesh:
    """The axes of a run; instances of the distributed optimizer are set apart. Raises SpecError PL504."""
    ranks = None if sizes.world is None else sizes.world // sizes.pp.value
    groups = Groups(sizes.tp.value, sizes.cp.value, sizes.etp.value, sizes.ep.value, bool(sizes.experts.value),
                    sizes.instances.value, ranks)  # fmt: skip
    try:
        return refine(groups, "instance")
    except RanksDoNotFit as error:
        raise config.wrong("PL504", sizes.ep if sizes.ep.given else sizes.tp, str(error)) from None


def write_mesh(spec: Draft, sizes: ModelSizes, mesh: Mesh) -> None:
    """Declare the axes, and `dp`, `cp`, `tp` where they are products."""
    for atom in mesh.atoms:
        spec.axis(atom.name, atom.size, _origin(atom.name, atom.dense, atom.expert, sizes, mesh))
    mesh.products(spec)
    if sizes.pp.value > 1:
        spec.axis("pp", sizes.pp.value, sizes.pp)


def _origin(name: str, dense: str, expert: str, sizes: ModelSizes, mesh: Mesh) -> str:
    if name == mesh.outer:
        return sizes.instances.origin
    if dense == "tp":
        return sizes.tp.origin
    if dense == "cp":
        return sizes.cp.origin
    if expert == "ep":
        axes = mesh.names(expert="ep")
        return sizes.ep.origin + ("" if axes == [name] else f", which is {' * '.join(axes)}")
    return "the number of devices is not in the file" if sizes.world is None else "from the number of devices"
