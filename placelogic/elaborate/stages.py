"""Blocks against the stages of a pipeline: on which stages the weights of their operations are, said and derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from placelogic.elaborate.log import Log
from placelogic.elaborate.targets import Groups, WeightsGroup
from placelogic.layers.operations import tied
from placelogic.layers.stages import Ends, Place, places, used
from placelogic.program.block import Block, Layers, Operation
from placelogic.program.operations import weights_of
from placelogic.program.program import Layout, Stages, Uses
from placelogic.syntax import ast


class _Use(Struct, frozen=True):
    """The first operation of a block with some weights, and where the block lies."""

    place: Place
    block: Block
    operation: Operation


def on_stages(groups: Groups, layers: Layers, stages: Stages | None, log: Log) -> Groups:
    """The groups, with the end stages that follow from blocks where nothing is said of them; logs what is said
    otherwise (PL391), blocks that may lie on any stage (PL392), and tables used on several (PL393)."""
    axes = dict.fromkeys(group.uses.axis for group in groups.members if group.uses is not None)
    if stages is not None:
        axes = {stages.axis: None}
    for axis in axes:
        groups = _along(axis, groups, layers.blocks, stages, log)
    return groups


def _along(axis: str, groups: Groups, blocks: Sequence[Block], stages: Stages | None, log: Log) -> Groups:
    """`axis`: that of the stages, or one that `used on` names in a spec without stages: there blocks are only
    held against what is said."""
    said = {
        group.name: _ends(group.uses) for group in groups.members if group.uses is not None and group.uses.axis == axis
    }
    lie = places(blocks, lambda name: said.get(name, frozenset()))
    if stages is not None and not _settled(axis, blocks, lie, said, log):
        return groups
    _ordered(axis, blocks, lie, log)
    uses = _uses(blocks, lie)
    both = tied(blocks)
    members = []
    for group in groups.members:
        mine = uses.get(group.name, [])
        if not mine:
            members.append(group)
        elif group.uses is not None:
            _held(axis, group, group.uses, mine, stages, log)
            members.append(group)
        elif stages is None:
            members.append(group)
        else:
            members.append(_derived(stages, group, mine, group.name in both, log))
    return Groups.of(members)


def _ends(uses: Uses) -> Ends:
    return frozenset(end for end, there in (("first", uses.first), ("last", uses.last)) if there)


def _uses(blocks: Sequence[Block], lie: Sequence[Place]) -> dict[str, list[_Use]]:
    found: dict[str, list[_Use]] = {}
    for place, block in zip(lie, blocks):
        for name in used(block):
            op = next(op for op in block.operations if weights_of(op) == name)
            found.setdefault(name, []).append(_Use(place, block, op))
    return found


# --- blocks -----------------------------------------------------------------------------------


def _settled(axis: str, blocks: Sequence[Block], lie: Sequence[Place], said: Mapping[str, Ends], log: Log) -> bool:
    """Whether it is known of every block on which stages it lies."""
    repeated = any(block.repeat is not None for block in blocks)
    for place, block in zip(lie, blocks):
        if place != "unknown" and (repeated or any(name in said for name in used(block))):
            continue
        why = "stands between repeated ones" if repeated else "is not repeated, and no other block is"
        log.add("PL392", f"block `{block.name}` {why}: nothing says on which of the stages over {axis} it lies", block.span,
                "say `repeat 1`, or how many layers it stands for, and it is shared out with the others"
                + ("" if repeated else "; or say of its weights that they are `used on first`, or `last`"))  # fmt: skip
        return False
    return True


def _ordered(axis: str, blocks: Sequence[Block], lie: Sequence[Place], log: Log) -> None:
    """Data goes through the stages from the first to the last."""
    for (before, one), (after, other) in zip(zip(lie, blocks), list(zip(lie, blocks))[1:]):
        if before == "last" and after == "first":
            log.add("PL391", f"the weights of block `{other.name}` are used on the first stage of {axis}, and block "
                    f"`{one.name}` before it is on the last", other.span, "blocks follow each other in written order")  # fmt: skip


# --- what is said -----------------------------------------------------------------------------


def _held(axis: str, group: WeightsGroup, uses: Uses, mine: list[_Use], stages: Stages | None, log: Log) -> None:
    """Holds `used on` against the blocks."""
    ends = _ends(uses)
    words = f"`used on {' and '.join(end for end in ('first', 'last') if end in ends)}` (line {uses.span.line})"
    if uses.axis != axis:
        if stages is not None:
            log.at(group.item, "PL391", f"`{group.name}` is {words} of {uses.axis}, and the stages of blocks lie over {axis} "
                   f"(line {stages.span.line})", group.statement.span, f"say `of {axis}`")  # fmt: skip
        return
    wrong = next((use for use in mine if not _there(use.place, ends, uses.vee)), None)
    if wrong is not None:
        where = f"on the {wrong.place} stage of {axis}"
        if wrong.place == "shared":
            where = f"in layers that are shared out over the stages of {axis}"
        log.add("PL391", f"`{group.name}` is {words}, and block `{wrong.block.name}` uses it {where}",
                wrong.operation.origin.span,
                f"leave `used on` out: it follows from the blocks; or give what block `{wrong.block.name}` uses a group of its own")  # fmt: skip
        return
    idle = [end for end in ("first", "last") if end in ends and all(use.place != end for use in mine)]
    if idle and not uses.vee and all(use.place != "unknown" for use in mine):
        names = ", ".join(f"`{use.block.name}`" for use in mine)
        log.add("PL391", f"`{group.name}` is {words}, and no block on the {idle[0]} stage of {axis} uses it: "
                f"it is used in {names}", mine[0].operation.origin.span,
                "leave `used on` out: it follows from the blocks")  # fmt: skip


def _there(place: Place, ends: Ends, vee: bool) -> bool:
    """Whether a stage that holds the weights computes there; in a V the two ends are one device."""
    return place == "unknown" or place in ends or (vee and place != "shared")


# --- what follows -----------------------------------------------------------------------------


def _derived(stages: Stages, group: WeightsGroup, mine: list[_Use], table: bool, log: Log) -> WeightsGroup:
    """The end stages that hold weights of which nothing is said; None of them for weights with matrices of their
    own in several places, which are dealt out with the layers."""
    if any(isinstance(prop, ast.UsedOnProp) for prop in group.statement.props):
        return group
    found = {use.place for use in mine}
    span = group.item.at(group.statement.span)
    shared = next((use for use in mine if use.place == "shared"), None)
    if table and shared is not None:
        log.add("PL393", f"the table of `{group.name}` is used twice, and block `{shared.block.name}` is shared out over the "
                f"stages of {stages.axis}: which stages need it is not known", shared.operation.origin.span,
                "use it before the layers and after them only, or give each use weights of its own")  # fmt: skip
        return group
    if shared is not None or (len(found) > 1 and not table):
        return group
    return replace(group, uses=Uses(stages.axis, "first" in found, "last" in found, stages.vee, span))


def check_dealt(
    groups: Groups, layers: Layers | None, stages: Stages, layouts: Mapping[str, Mapping[str, Layout]], log: Log
) -> None:
    """Weights without end stages are on the stage of their layer only (PL393): elsewhere nothing is computed for
    them."""
    first = {name: (block, op) for block in reversed(layers.blocks if layers is not None else ())
             for op in reversed(block.operations) if (name := weights_of(op)) is not None}  # fmt: skip
    for group in groups.members:
        cut = layouts[group.name]["params"].cut(stages.axis)
        dealt = cut is not None and cut.letter == "S"
        if group.uses is not None or (group.frozen and not dealt):  # frozen copies compute no gradient
            continue
        if group.name not in first:
            if not dealt:
                _whole_on_stages(group, stages, log)
            continue
        if cut is not None and cut.letter == "S" and cut.dim == "layer":
            continue
        block, op = first[group.name]
        how = "whole on every stage" if cut is None else "cut otherwise"
        log.add("PL393", f"the layers of `{group.name}` are on several stages of {stages.axis}, and its params are {how}: a stage "
                f"computes only with those of its own layers (block `{block.name}`)",
                op.origin.span if cut is None else cut.origin.span,
                f"place them `over {stages.axis} {{ params sharded on layer, optimizer sharded on layer, gradients sharded on "
                f"layer }}`, as `use pipeline({stages.axis})` does")  # fmt: skip


def _whole_on_stages(group: WeightsGroup, stages: Stages, log: Log) -> None:
    """What no block uses, of which it is not said where it is used."""
    log.at(group.item, "PL393", f"`{group.name}` is whole on every stage of {stages.axis} (line {stages.span.line}), and "
           "nothing says which of them uses it", group.statement.span,
           f"write `used on first` or `used on last`, or deal out its layers: `place {group.name} over {stages.axis} "
           "{ params sharded on layer, optimizer sharded on layer, gradients sharded on layer }`")  # fmt: skip
