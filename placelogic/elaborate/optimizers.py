"""The optimizer of weights: what it needs of a tensor for one element of it, and what it gathers for that."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import Groups, WeightsGroup, settle, speaking
from placelogic.problem import closest
from placelogic.program.catalog import OPTIMIZERS, Needs
from placelogic.program.program import Optimizer, Origin
from placelogic.source import NOWHERE
from placelogic.syntax import ast

_DEFAULT = Optimizer("adamw", OPTIMIZERS["adamw"], Origin(NOWHERE, False))


_NEEDS = {
    "nothing": Needs.ELEMENT, "blocks": Needs.BLOCK, "row": Needs.ROW, "matrix": Needs.MATRIX, "whole": Needs.TENSOR,
}  # fmt: skip


def _need(name: str, needs: ast.Need | None) -> Needs:
    """What is said, or else what the catalogue has; blocks of one element are elements."""
    if needs is None:
        return OPTIMIZERS[name]
    return Needs.ELEMENT if needs.size == 1 else _NEEDS[needs.unit]


def check(node: ast.OptimizerStmt, item: Item, groups: Groups, sizes: Declared, log: Log) -> None:
    """Whether it is known, or says what it needs."""
    name, needs = node.name, node.needs
    groups.check(node.target, item, log, "no optimizer")
    sizes.axes(node.gathers or (), item)
    if needs is None and name not in OPTIMIZERS:
        known = closest(name, OPTIMIZERS) or f"optimizers: {', '.join(OPTIMIZERS)}"
        log.at(item, "PL214", f"there is no optimizer `{name}`", node.span,
               f"{known}; one of your own says what it needs: `optimizer {name} needs matrix`")  # fmt: skip
    elif node.gathers and _need(name, needs) is Needs.ELEMENT:
        log.at(item, "PL349", f"`{name}` updates each element by itself, and gathers nothing for that", node.span,
               "leave out `gathers`, or say what it needs: `needs matrix`")  # fmt: skip
    if needs is not None and needs.size == 0:
        log.at(item, "PL352", "a block has at least one element", needs.span, "say `needs nothing`, or a size")


def optimizer_of(group: WeightsGroup, items: Sequence[Item], groups: Groups, sizes: Declared, log: Log) -> Optimizer:
    """adamw where nothing is said."""
    if group.frozen:
        return _DEFAULT
    claims = [(level, (item, node)) for level, item, node in speaking(items, ast.OptimizerStmt, group, groups)]
    won = settle(claims, lambda c: _said(c[1]), lambda c: c[0], f"the optimizer of `{group.name}`", log)
    if won is None or (won[1].needs is None and won[1].name not in OPTIMIZERS):
        return _DEFAULT
    item, node = won
    needs, along = _need(node.name, node.needs), ()
    if needs is Needs.ROW:
        along = _row(group, item, node.needs, log)
    block = node.needs.size if node.needs is not None and needs is Needs.BLOCK else None
    return Optimizer(node.name, needs, item.origin(node.span), block, along, sizes.axes(node.gathers or (), item))


def _said(node: ast.OptimizerStmt) -> tuple[object, ...]:
    needs, gathers = node.needs, node.gathers
    return (
        node.name,
        None if needs is None else (needs.unit, needs.size, needs.along),
        None if gathers is None else tuple(ref.names for ref in gathers),
    )


def _row(group: WeightsGroup, item: Item, need: ast.Need, log: Log) -> tuple[str, ...]:
    """Along which dimensions a row of these weights runs: the last one that they declare, where nothing is said. A
    vector is one row."""
    wrong = next((name for name in need.along if name not in group.dims), None)
    if wrong is not None:
        log.at(item, "PL218", f"`{group.name}` declares no dimension `{wrong}`", need.span,
               closest(wrong, group.dims) or "declare it with `dims`, or name the weights that have it with `for`")  # fmt: skip
    elif not need.along and not group.dims and group.kind != "vector":
        log.at(item, "PL352", f"along which dimension a row of `{group.name}` runs is not known", need.span,
               f"say it, `needs row along in`, or declare `dims out in` in `{group.name}`")  # fmt: skip
    return need.along or group.dims[-1:]
