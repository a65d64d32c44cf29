"""How the states lie: who wins where statements overlap, and what is placed twice in conflict.

Statements are judged by atoms. Per (state, weights, atom) the most specific one wins; equally
specific ones that differ are a conflict (CC01), which is recorded, not an error. A cut by a product
of which a more specific statement takes some factors goes on cutting by the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from placelogic.elaborate.count import dims_in_use
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import NAME, Groups, WeightsGroup, agree, select, strongest
from placelogic.problem import closest
from placelogic.program.catalog import ACTIVATION_DIMS, STATE_DIMS
from placelogic.program.expr import Expr, Name
from placelogic.program.program import Axes, Conflict, Cut, Layout, Letter, Origin, Split, Stages
from placelogic.syntax import ast


class Placement(Struct, frozen=True):
    """One entry of a `place` statement, its axes resolved (one tuple of atoms per axis reference)."""

    item: Item
    statement: ast.PlaceStmt
    entry: ast.PlaceEntry
    products: tuple[Axes, ...]

    @property
    def origin(self) -> Origin:
        return self.item.origin(self.entry.span)


class _Say(Struct, frozen=True):
    """What one entry says along one atom: `order` is the place of its cut among all cuts."""

    placed: Placement
    order: tuple[int, int]
    product: Axes

    @property
    def what(self) -> object:
        mode = self.placed.entry.mode
        return "R" if mode.letter in ("R", "M") else (mode.letter, mode.dim, mode.buffer, self.product)


def read_places(items: Sequence[Item], sizes: Declared, groups: Groups, log: Log) -> tuple[Placement, ...]:
    """Every entry of every `place` statement, checked for words that do not exist."""
    result = []
    in_use = dims_in_use([item.statement for item in items])
    for item in select(items, ast.PlaceStmt):
        node = item.statement
        assert isinstance(node, ast.PlaceStmt)
        trains = any(e.state in ("optimizer", "gradients") and _says_more(e.mode) for e in node.entries)
        groups.check(node.target, item, log, "no gradient and no optimizer state" if trains else None, places=True)
        products = tuple(sizes.product(ref, item) for ref in node.axes)
        flat = [atom for product in products for atom in product]
        for atom in sorted({atom for atom in flat if flat.count(atom) > 1}):
            log.at(item, "PL314", f"axis `{atom}` is named twice here", node.span, "name every axis once")
        for entry in node.entries:
            _check_dim(item, node, entry, groups, in_use, log)
            result.append(Placement(item, node, entry, products))
    return tuple(result)


def _says_more(mode: ast.Mode) -> bool:
    return mode.letter != "R" or mode.host


def _check_dim(
    item: Item, node: ast.PlaceStmt, entry: ast.PlaceEntry, groups: Groups, in_use: Mapping[str, set[str]], log: Log
) -> None:
    """`in_use`: the dimensions that operations give weights, which need not declare them."""
    dim = entry.mode.dim
    if dim is None:
        return
    if entry.mode.buffer is not None and dim != "flat":
        log.at(item, "PL353", f"`on {dim} of {entry.mode.buffer}` names a buffer, and only flat ones have names", entry.span,
               f"write `on {dim}`, or `on flat of {entry.mode.buffer}`")  # fmt: skip
    if entry.state == "activations":
        if dim not in ACTIVATION_DIMS:
            log.at(item, "PL218", f"activations have no dimension `{dim}`", entry.span,
                   closest(dim, ACTIVATION_DIMS) or f"dimensions: {', '.join(ACTIVATION_DIMS)}")  # fmt: skip
        return
    if dim in STATE_DIMS:
        return
    dims = {group.name: {*group.dims, *in_use.get(group.name, ())} for group in groups.members}
    declared = sorted({name for names in dims.values() for name in names})
    if dim not in declared:
        known = [*STATE_DIMS, *declared]
        log.at(item, "PL218", f"no weights declare a dimension `{dim}`", entry.span,
               closest(dim, known) or f"known: {', '.join(known)}; `weights NAME {{ dims {dim} }}` declares it")  # fmt: skip
        return
    without = [g.name for g in groups.members if groups.level(node.target, item, g) and dim not in dims[g.name]]
    if without:
        log.at(item, "PL316", f"`{without[0]}` has no dimension `{dim}`", entry.span,
               f"name the weights that have it, or declare `dims {dim}` in `{without[0]}`")  # fmt: skip


def layout(
    group: WeightsGroup, state: str, placed: Sequence[Placement], groups: Groups, sizes: Declared
) -> tuple[Layout, list[Conflict]]:
    """How one state of one group lies, and where it is placed twice in conflict."""
    if group.frozen and state in ("optimizer", "gradients"):
        return Layout(), []
    mine = [
        (level, index, p)
        for index, p in enumerate(placed)
        if p.entry.state == state and (level := groups.level(p.statement.target, p.item, group))
    ]
    says: dict[str, list[tuple[int, _Say]]] = {}
    for level, index, p in mine:
        for position, product in enumerate(p.products):
            for atom in product:
                # Whoever lives on the first or last stage only is not spread over the stages by a
                # statement that does not name it.
                if group.uses is not None and group.uses.axis == atom and level < NAME:
                    continue
                # Recomputing says nothing about cuts: see _residency.
                if p.entry.mode.letter == "M":
                    continue
                says.setdefault(atom, []).append((level, _Say(p, (index, position), product)))
    winners: dict[str, _Say] = {}
    conflicts: dict[tuple[Origin, Origin], Conflict] = {}
    for atom, claims in says.items():
        top = strongest(claims)
        winners[atom] = top[0]
        differ = agree(top, lambda say: say.what)
        if differ is not None:
            conflict = _conflict(group, state, atom, *differ, sizes)
            conflicts.setdefault((conflict.first, conflict.second), conflict)
    host, materialized = _residency(mine)
    return Layout(_cuts(winners, sizes.mesh().axes), host, materialized, None), list(conflicts.values())


def with_members(layouts: Mapping[str, Mapping[str, Layout]]) -> dict[str, dict[str, Layout]]:
    """The layouts of all weights, by state, with what is in every flat buffer that has a name."""
    inside: dict[tuple[str, str | None, Axes], tuple[str, ...]] = {}
    for name, states in layouts.items():
        for state, found in states.items():
            for cut in found.cuts:
                key = state, cut.buffer, cut.axes
                inside[key] = (*inside.get(key, ()), name)

    def named(state: str, cut: Cut) -> Cut:
        return cut if cut.buffer is None else replace(cut, members=inside[state, cut.buffer, cut.axes])

    return {
        name: {state: replace(found, cuts=tuple(named(state, cut) for cut in found.cuts)) for state, found in states.items()}
        for name, states in layouts.items()
    }


def check_loose_ends(groups: Groups, stages: Stages | None, layouts: Mapping[str, Mapping[str, Layout]], log: Log) -> None:
    """`used on first` without an axis, in a spec that deals out layers by hand: which axis is meant?"""
    if stages is not None:
        return
    cut = next((c for states in layouts.values() for c in states["params"].cuts if c.dim == "layer"), None)
    for group in groups.members:
        loose = next((p for p in group.statement.props if isinstance(p, ast.UsedOnProp) and p.axis is None), None)
        if cut is not None and loose is not None:
            axis = "*".join(cut.axes)
            log.at(group.item, "PL346", f"layers are dealt out over {axis}, and nothing says on which axis `{group.name}` "
                   "is used first or last", loose.span, f"write `of {axis}`, or `stages over {axis}`")  # fmt: skip


def check_routed(group: WeightsGroup, params: Layout, splits: tuple[Split, ...], log: Log) -> None:
    """Routing sends tokens to whole experts: what it deals out are experts, not pieces of their matrices, of a flat
    buffer, nor one matrix of an expert here and another there. Whole layers only where no tokens are sent."""
    for axis in group.routed:
        cut = params.cut(axis)
        layers = ("layer",) if any(split.axis == axis for split in splits) else ()
        if cut is not None and cut.letter == "S" and cut.dim in (*group.dims, "flat", "param", *layers):
            log.add("PL347", f"`{group.name}` is routed over {axis}, which deals out whole experts, and cut `on {cut.dim}` "
                    "there, which does not", cut.origin.span, "say `sharded` without a dimension, or drop `routed over`")  # fmt: skip


def check_stages(group: WeightsGroup, layouts: Mapping[str, Layout], log: Log) -> None:
    """Weights that live on end stages compute there whole: their stages cannot cut that work too.
    What is only kept (optimizer states, gradients, gathered parameters) the holders may share out, but
    not by position in a flat buffer: the weights lie elsewhere in the buffer of each stage."""
    if group.uses is None:
        return
    for state, found in layouts.items():
        cut = found.cut(group.uses.axis)
        if cut is not None and (cut.dim == "flat" or (cut.letter == "S" and state in ("params", "activations"))):
            said = any(isinstance(prop, ast.UsedOnProp) for prop in group.statement.props)
            why = "drop `used on` from the weights" if said else "use it in layers: this follows from the blocks that use it"
            log.add("PL319", f"`{group.name}` lives on the end stages of {group.uses.axis}, so its {state} "
                    f"cannot be cut over {group.uses.axis} as well", cut.origin.span,
                    f"leave {group.uses.axis} out, or {why}")  # fmt: skip


def _cuts(winners: dict[str, _Say], mesh: Axes) -> tuple[Cut, ...]:
    """In written order; what strategies of a `use` cut in the order of the mesh, since these have no order."""
    says = list({say.order: say for say in sorted(winners.values(), key=lambda say: say.order)}.values())
    used = [place for place, say in enumerate(says) if say.placed.item.use is not None]
    ordered = sorted((says[place] for place in used), key=lambda say: min(map(mesh.index, say.product)))
    for place, say in zip(used, ordered):
        says[place] = say
    cuts: dict[tuple[int, int], Cut] = {}
    for say in says:
        mode = say.placed.entry.mode
        if mode.letter == "R":
            continue
        letter: Letter = "S" if mode.letter == "S" else "S*"
        kept = tuple(atom for atom in say.product if atom in winners and winners[atom].order == say.order)
        cuts[say.order] = Cut(kept, letter, mode.dim, say.placed.origin, mode.buffer)
    return tuple(cuts.values())


def _residency(mine: Sequence[tuple[int, int, Placement]]) -> tuple[Origin | None, Origin | None]:
    """On the host, and recomputed: whatever any statement says, unless a more specific one without
    axes says plainly `replicated`, or a more specific one without axes says another residency."""
    floor = max((level for level, _, p in mine if not p.products and p.entry.mode.letter in ("R", "M")), default=0)
    counted = [(level, p) for level, _, p in mine if level >= floor]
    host = next((p.origin for _, p in counted if p.entry.mode.host), None)
    materialized = next((p.origin for _, p in counted if p.entry.mode.letter == "M"), None)
    return host, materialized


def _conflict(group: WeightsGroup, state: str, atom: str, first: _Say, second: _Say, sizes: Declared) -> Conflict:
    a, b = first.placed, second.placed
    mesh = sizes.mesh()
    how = (
        f"{_mode(first, mesh.label(first.product))} (line {a.origin.span.line}) and "
        f"{_mode(second, mesh.label(second.product))} (line {b.origin.span.line})"
    )
    return Conflict(group.name, state, atom, a.origin, b.origin, how)  # type: ignore[arg-type]


_WORDS = {"R": "replicated", "S": "sharded", "S*": "gathered", "M": "materialized"}


def _mode(say: _Say, axes: str) -> str:
    mode = say.placed.entry.mode
    buffer = f" of {mode.buffer}" if mode.buffer else ""
    return f"{_WORDS[mode.letter]}{f' on {mode.dim}{buffer}' if mode.dim else ''} over {axes}"


# --- what goes with placements ----------------------------------------------------------------


def read_reshards(items: Sequence[Item], sizes: Declared, groups: Groups, log: Log) -> dict[str, Expr]:
    """`reshard_after_forward` per weights: true, false, or a number of devices."""
    result: dict[str, Expr] = {}
    resolved: list[tuple[Item, ast.PlaceStmt, Expr]] = []
    for item in select(items, ast.PlaceStmt):
        node = item.statement
        assert isinstance(node, ast.PlaceStmt)
        if node.reshard is None:
            continue
        word = node.reshard
        gathers = any(entry.state == "params" and entry.mode.letter == "S*" for entry in node.entries)
        if node.axes and not gathers:
            log.at(item, "PL317", "`reshard_after_forward` is about gathered params, and this statement does not "
                   "gather any over its axes", node.span,
                   "write it beside `params gathered`, or in a `place` without `over`")  # fmt: skip
        if not (isinstance(word, Name) and word.name in ("true", "false")):
            word = sizes.expr(word, item, node.span)
            sizes.positive(word, "the number of devices to reshard to", item, node.span)
        resolved.append((item, node, word))
    for group in groups.members:
        found = [(level, (i, n, e)) for i, n, e in resolved if (level := groups.level(n.target, i, group))]
        if not found:
            continue
        top = strongest(found)
        differ = agree(top, lambda say: say[2])
        if differ is not None:
            item, node, _ = differ[1]
            log.once(item, "PL322", f"`reshard_after_forward` of `{group.name}` is stated differently in line "
                   f"{differ[0][0].at(differ[0][1].span).line}", node.span, "state it once")  # fmt: skip
        result[group.name] = top[0][2]
    return result


def check_activations(group: WeightsGroup, activations: Layout, splits: tuple[Split, ...], log: Log) -> None:
    """An axis that splits work may not also cut activations along another dimension."""
    for split in splits:
        cut = activations.cut(split.axis)
        if cut is None or cut.dim is None or cut.dim == split.dim:
            continue
        pair = {cut.dim, split.dim}
        if "tokens" in pair and pair <= {"tokens", "batch", "sequence"}:
            continue
        log.add("PL315", f"axis `{split.axis}` splits {split.dim} (line {split.span.line}) and cannot also cut the "
                f"activations of `{group.name}` on {cut.dim}", cut.origin.span,
                "cut activations over an axis that does not split the work")  # fmt: skip
