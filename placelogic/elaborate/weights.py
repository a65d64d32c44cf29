"""Weights as declared: size, kind, dimensions, where they are used, whether they are trained."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from placelogic.elaborate.count import used_weights
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared, check_name
from placelogic.elaborate.targets import Groups, WeightsGroup, select
from placelogic.problem import closest
from placelogic.program.catalog import KINDS, STATE_DIMS
from placelogic.program.expr import Expr
from placelogic.program.program import Axes, Split, Stages, Uses
from placelogic.source import Span
from placelogic.syntax import ast


def read_weights(
    items: Sequence[Item], sizes: Declared, stages: Stages | None, splits: tuple[Split, ...], log: Log
) -> Groups:
    """All weights, trained or frozen; logs when there are none."""
    members: dict[str, WeightsGroup] = {}
    for item in select(items, ast.WeightsStmt):
        node = item.statement
        assert isinstance(node, ast.WeightsStmt)
        if not check_name(node.name, "weights", item, node.span, log):
            continue
        if node.name in members:
            line = members[node.name].item.at(members[node.name].statement.span).line
            log.at(item, "PL210", f"weights `{node.name}` are declared twice, first in line {line}", node.span,
                   "rename one of them")  # fmt: skip
            continue
        members[node.name] = _group(node, item, sizes, stages, splits, log)
    used = set(used_weights([item.statement for item in items]))
    for group in members.values():
        if group.size is None and group.name not in used and ast.SizeProp not in map(type, group.statement.props):
            log.at(group.item, "PL307", f"weights `{group.name}` have no size", group.statement.span,
                   "say how many elements: `size P` with `let P`, or `size 4*h*h`; or use them in a block")  # fmt: skip
    groups = Groups.of(members.values())
    return _freeze(groups, items, log)


def _group(
    node: ast.WeightsStmt, item: Item, sizes: Declared, stages: Stages | None, splits: tuple[Split, ...], log: Log
) -> WeightsGroup:
    kind = "matrix"
    size: Expr | None = None
    layers: Expr | None = None
    dims: tuple[str, ...] = ()
    uses: Uses | None = None
    routed: Axes = ()
    for prop in node.props:
        match prop:
            case ast.SizeProp(value, span):
                size = sizes.expr(value, item, span)
                sizes.positive(size, f"the size of `{node.name}`", item, span)
            case ast.LayersProp(value, span):
                layers = sizes.expr(value, item, span)
                sizes.positive(layers, f"the number of layers of `{node.name}`", item, span)
            case ast.DimsProp(names, span):
                dims = names
                _check_dims(names, item, span, log)
            case ast.KindProp(name, span):
                kind = name
                if name not in KINDS:
                    log.at(item, "PL213", f"there is no kind `{name}` of weights", span,
                           closest(name, KINDS) or f"kinds: {', '.join(KINDS)}")  # fmt: skip
            case ast.UsedOnProp():
                uses = _uses(node.name, prop, item, sizes, stages, splits, log)
            case ast.RoutedProp(axis):
                routed = sizes.product(axis, item)
    return WeightsGroup(node.name, kind, size, layers, dims, uses, routed, False, item)


def _check_dims(names: tuple[str, ...], item: Item, span: Span, log: Log) -> None:
    for index, name in enumerate(names):
        if name in STATE_DIMS:
            log.at(item, "PL211", f"every weights have `{name}`: it cannot be declared", span, "choose another name")
        elif name in names[:index]:
            log.at(item, "PL210", f"dimension `{name}` is declared twice", span, "name every dimension once")


def _uses(
    name: str,
    prop: ast.UsedOnProp,
    item: Item,
    sizes: Declared,
    stages: Stages | None,
    splits: tuple[Split, ...],
    log: Log,
) -> Uses | None:
    """First and/or last stage. Without `of`, of the stages' axis; without stages, nothing is split."""
    if prop.axis is not None:
        axes = sizes.product(prop.axis, item)
    else:
        axes = () if stages is None else (stages.axis,)
    if len(axes) > 1:
        log.at(item, "PL312", f"`{name}` is used on stages of one axis of the mesh, not of a product", prop.span,
               "name the pipeline axis")  # fmt: skip
    if not axes:
        return None
    axis = axes[0]
    split = next((split for split in splits if split.axis == axis), None)
    if split is not None:
        log.at(item, "PL313", f"axis `{axis}` splits {split.dim} (line {split.span.line}), so it holds no stages "
               f"that `{name}` could be used on", prop.span, "give the pipeline an axis of its own")  # fmt: skip
    vee = stages is not None and stages.axis == axis and stages.vee
    return Uses(axis, "first" in prop.stages, "last" in prop.stages, vee, item.at(prop.span))


def _freeze(groups: Groups, items: Sequence[Item], log: Log) -> Groups:
    frozen: set[str] = set()
    for item in select(items, ast.FreezeStmt):
        node = item.statement
        assert isinstance(node, ast.FreezeStmt)
        groups.check(node.target, item, log)
        frozen |= {group.name for group in groups.members if groups.level(node.target, item, group)}
    return Groups.of(replace(group, frozen=group.name in frozen) for group in groups.members)
