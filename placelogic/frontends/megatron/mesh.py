"""The mesh of a Megatron-LM run: the common refinement of its dense and its expert rank groups.

Ranks are counted tp fastest, then cp, then dp (megatron/core/parallel_state.py, RankGenerator, order
"tp-cp-ep-dp-pp"), and for experts etp fastest, then ep, then expert dp. Both cut the same ranks of one pipeline
stage, so each axis of the spec has a dense role and an expert role."""

from __future__ import annotations

from dataclasses import dataclass

from placelogic.frontends.config import Config
from placelogic.frontends.draft import Draft
from placelogic.frontends.megatron.sizes import Sizes


@dataclass(frozen=True, slots=True)
class Atom:
    """An axis of the mesh. `dense`: tp, cp or dp. `expert`: etp, ep or edp. `size`: None where open."""

    name: str
    size: int | None
    dense: str
    expert: str


@dataclass(frozen=True, slots=True)
class Mesh:
    """The axes, slowest first. `instances`: the axis of distributed optimizer instances, if there is one."""

    atoms: tuple[Atom, ...]
    instances: str | None

    def names(self, *, dense: str | None = None, expert: str | None = None) -> list[str]:
        """The axes with a role, slowest first."""
        return [one.name for one in self.atoms if dense in (None, one.dense) and expert in (None, one.expert)]

    def shards(self, names: list[str]) -> list[str]:
        """Those along which one optimizer instance cuts its states."""
        return [name for name in names if name != self.instances]

    def write(self, spec: Draft, sizes: Sizes) -> None:
        """Declare the axes, and `dp`, `cp`, `tp` where they are products."""
        origins = {"tp": sizes.tp, "cp": sizes.cp}
        for atom in self.atoms:
            origin = "the number of devices is not in the file" if atom.size is None else origins.get(atom.name, "")
            if atom.name == self.instances:
                origin = sizes.instances
            elif atom.dense == "tp":
                origin = sizes.tp
            elif atom.expert == "ep" and atom.dense == "dp":
                origin = sizes.ep.origin + ("" if self.names(expert="ep") == [atom.name] else f", which is {' * '.join(self.names(expert='ep'))}")
            elif atom.dense == "dp" and atom.size is not None and not origin:
                origin = "from the number of devices"
            spec.axis(atom.name, atom.size, origin)
        for role in ("tp", "cp", "dp"):
            names = self.names(dense=role)
            if len(names) > 1:
                spec.add("mesh", f"axis {role} = {' * '.join(names)}")
        if sizes.pp.value > 1:
            spec.axis("pp", sizes.pp.value, sizes.pp)


def mesh_of(config: Config, sizes: Sizes) -> Mesh:
    """Refine the two ways to cut a stage's ranks into common axes. Raises SpecError PL504 where the groups cross."""
    tp, cp = sizes.tp.value, sizes.cp.value
    moe = bool(sizes.experts.value)
    etp, ep = (sizes.etp.value, sizes.ep.value) if moe else (tp, cp)
    bounds = sorted({1, tp, tp * cp, etp, etp * ep})
    for low, high in zip(bounds, bounds[1:]):
        if high % low:
            raise config.wrong("PL504", sizes.ep, f"the groups of tensor {tp} and context parallelism {cp}, and of expert tensor {etp} "
                               f"and expert parallelism {ep}, cross each other: no common mesh")  # fmt: skip
    ranks = None if sizes.world is None else sizes.world // sizes.pp.value
    atoms = []
    for low, high in zip(bounds, bounds[1:]):
        atoms.append(_atom(low, high // low, tp, cp, etp, ep, moe))
    rest = None if ranks is None else ranks // bounds[-1]
    if ranks is not None and ranks % bounds[-1]:
        raise config.wrong("PL504", sizes.ep, f"{ranks} devices of a stage are not a multiple of {bounds[-1]}")
    count = sizes.instances.value
    if rest is not None and rest % count:
        raise config.wrong("PL504", sizes.instances, f"{rest} replicas are not a multiple of {count} optimizer instances")
    atoms.append(_atom(bounds[-1], None if rest is None else rest // count, tp, cp, etp, ep, moe))
    if count > 1:
        atoms.append(Atom("instance", count, "dp", "edp"))
    return Mesh(tuple(_named(list(reversed(atoms)))), "instance" if count > 1 else None)


def _atom(start: int, size: int | None, tp: int, cp: int, etp: int, ep: int, moe: bool) -> Atom:
    dense = "tp" if start < tp else "cp" if start < tp * cp else "dp"
    expert = "etp" if start < etp else "ep" if start < etp * ep else "edp"
    return Atom("", size, dense, expert if moe else ("etp" if dense == "tp" else "edp"))


def _named(atoms: list[Atom]) -> list[Atom]:
    """Names by role: the dense one where it is alone, else the expert one."""
    result = []
    for one in atoms:
        alone = sum(other.dense == one.dense for other in atoms) == 1
        name = one.name or (one.dense if alone else one.expert if one.dense == "dp" else f"{one.dense}_{one.expert}")
        if not one.name and not alone and one.dense == "dp" and one.expert == "etp":
            name = "dp_etp"
        result.append(Atom(name, one.size, one.dense, one.expert))
    return result
