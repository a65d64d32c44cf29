"""The ranks of one pipeline stage, cut in two ways at once: for dense weights and for experts.

Dense ranks count tensor parallelism fastest, then context, then data parallelism; experts count expert tensor
parallelism fastest, then expert parallelism, then the rest. (Megatron-LM core 0.9 to 0.20, megatron/core/
parallel_state.py, RankGenerator, order "tp-cp-ep-dp-pp"; torchtitan 0.2, torchtitan/distributed/parallel_dims.py.)
The axes of a spec are the common refinement of both, so each has a dense role and an expert role."""

from __future__ import annotations

from msgspec import Struct

from placelogic.frontends.draft import Draft


class RanksDoNotFit(ValueError):
    """The sizes do not divide; the message says which."""


class Groups(Struct, frozen=True):
    """Sizes of the groups. `experts`: whether there are any, else `etp` and `ep` do not count. `outer`: how many
    parts the outermost axis is set apart for, 1 for none. `ranks`: of a stage, None where open."""

    tp: int
    cp: int
    etp: int
    ep: int
    experts: bool
    outer: int = 1
    ranks: int | None = None


class Atom(Struct, frozen=True):
    """An axis of the mesh. `dense`: tp, cp or dp. `expert`: etp, ep or edp. `size`: None where open."""

    name: str
    size: int | None
    dense: str
    expert: str


class Mesh(Struct, frozen=True):
    """The axes, slowest first. `outer`: the name of the outermost one that is set apart, if any."""

    atoms: tuple[Atom, ...]
    outer: str | None

    def names(self, *, dense: str | None = None, expert: str | None = None) -> list[str]:
        """The axes with a role, slowest first."""
        return [one.name for one in self.atoms if dense in (None, one.dense) and expert in (None, one.expert)]

    def inner(self, names: list[str]) -> list[str]:
        """Those that are not set apart."""
        return [name for name in names if name != self.outer]

    def routed(self) -> list[str]:
        """The axes along which tokens are exchanged between devices that hold different experts, or different
        parts of them and different tokens."""
        return [one.name for one in self.atoms if one.expert == "ep" or (one.expert == "etp" and one.dense != "tp")]

    def products(self, spec: Draft) -> None:
        """Declare tp, cp and dp where they are products."""
        for role in ("tp", "cp", "dp"):
            names = self.names(dense=role)
            if len(names) > 1:
                spec.add("mesh", f"axis {role} = {' * '.join(names)}")


def refine(groups: Groups, outer: str) -> Mesh:
    """The axes. Raises RanksDoNotFit where the groups cross each other, or the ranks are no multiple of them."""
    etp, ep = (groups.etp, groups.ep) if groups.experts else (groups.tp, 1)
    bounds = sorted({1, groups.tp, groups.tp * groups.cp, etp, etp * ep})
    for low, high in zip(bounds, bounds[1:]):
        if high % low:
            raise RanksDoNotFit(f"the groups of tensor {groups.tp} and context parallelism {groups.cp}, and of expert tensor "
                                f"{etp} and expert parallelism {ep}, cross each other: they have no common mesh")  # fmt: skip
    rest = None
    if groups.ranks is not None:
        if groups.ranks % (bounds[-1] * groups.outer):
            raise RanksDoNotFit(f"{groups.ranks} devices of a stage are not a multiple of {bounds[-1] * groups.outer}")
        rest = groups.ranks // (bounds[-1] * groups.outer)
    atoms = [_atom(low, high // low, groups, etp, ep) for low, high in zip(bounds, bounds[1:])]
    atoms.append(_atom(bounds[-1], rest, groups, etp, ep))
    if groups.outer > 1:
        atoms.append(Atom(outer, groups.outer, "dp", "edp"))
    atoms.reverse()
    return Mesh(tuple(_named(one, atoms, groups.experts) for one in atoms), outer if groups.outer > 1 else None)


def _atom(start: int, size: int | None, groups: Groups, etp: int, ep: int) -> Atom:
    dense = "tp" if start < groups.tp else "cp" if start < groups.tp * groups.cp else "dp"
    expert = "etp" if start < etp else "ep" if start < etp * ep else "edp"
    return Atom("", size, dense, expert)


def _named(one: Atom, atoms: list[Atom], experts: bool) -> Atom:
    """By its dense role where it is alone in it, else by its expert role, or `shard` without experts."""
    if one.name:
        return one
    alone = sum(other.dense == one.dense for other in atoms) == 1
    own = one.dense == "dp" and one.expert != "etp"
    name = one.dense if alone else (one.expert if experts else "shard") if own else f"{one.dense}_{one.expert}"
    return Atom(name, one.size, one.dense, one.expert)
