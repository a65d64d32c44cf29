"""How many elements weights have, as the operations that use them say."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from placelogic.elaborate.log import Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import Groups, WeightsGroup
from placelogic.program import block as bl
from placelogic.program import expr as ex
from placelogic.program.expr import Binary, Expr, number
from placelogic.program.operations import sides, weights_of
from placelogic.syntax import ast

if TYPE_CHECKING:
    from placelogic.program.block import Block, Layers

POINTS = 24
"""How many values of the open sizes are drawn when two sizes are compared."""

ENOUGH = 8
"""How many of them are compared: the first that meet the assumptions."""


def count_weights(groups: Groups, layers: Layers, sizes: Declared, log: Log) -> Groups:
    """The groups, with the size that the blocks give where none is declared; logs a declared one that differs, and
    a number of layers that is not theirs."""
    counted = {name: sizes_of for name, sizes_of in counts(layers).items() if sizes_of is not None}
    least = counts(layers, exact=False)
    members = []
    points: list[Mapping[str, Fraction]] | None = None
    for group in groups.members:
        _check_layers(group, layers, sizes, log)
        size = counted.get(group.name) or (least.get(group.name) if group.size is None else None)
        if size is None:
            members.append(group)
            continue
        if group.size is not None:
            points = _points(sizes) if points is None else points
            if any(_differ(group.size, size, point) for point in points):
                log.at(group.item, "PL379", f"`{group.name}` is declared with {ex.show(group.size)} elements, and the "
                       f"operations of the blocks use {ex.show(size)}", group.statement.span,
                       "leave the size out, or say what the operations are")  # fmt: skip
        members.append(group if group.size is not None else replace(group, size=size))
    return Groups.of(members)


def _check_layers(group: WeightsGroup, layers: Layers, sizes: Declared, log: Log) -> None:
    """Weights have the layers of the repeated blocks that use them; what other blocks use (the last norm) may count
    as one layer each, or not."""
    from placelogic.layers.stages import used

    using = [block.repeat for block in layers.blocks if group.name in used(block)]
    if group.layers is None or not using:
        return
    repeated: list[Expr | None] = [repeat for repeat in using if repeat is not None]
    once = len(using) - len(repeated)
    every = _sum([*repeated, *([number(once)] if once else [])])
    allowed = [every, _sum(repeated) if repeated else number(1)]
    if all(there is not None and differs(group.layers, there, sizes) for there in allowed):
        log.at(group.item, "PL379", f"`{group.name}` is declared with {ex.show(group.layers)} layers, and the blocks that "
               f"use it have {ex.show(allowed[-1])}", group.statement.span,
               f"say `layers {ex.show(allowed[-1])}`, or repeat the blocks as often")  # fmt: skip


def differs(one: Expr, other: Expr, sizes: Declared) -> bool:
    """Whether two sizes are not the same for all sizes that the assumptions allow: found by trying some."""
    return one != other and any(_differ(one, other, point) for point in _points(sizes))


def counts(layers: Layers, exact: bool = True) -> dict[str, Expr | None]:
    """Weights -> their elements in all blocks; None where that is not known (a table of positions may be longer
    than the sequence). Not `exact`: then as many as there are at least."""
    terms: dict[str, list[Expr | None]] = {}
    tables = {
        (op.weights, (op.vocabulary,), op.produced)
        for block in layers.blocks
        for op in block.operations
        if isinstance(op, bl.Embedding)
    }
    for block in layers.blocks:
        for op in block.operations:
            if isinstance(op, bl.Linear) and (op.weights, op.produced, op.contracted) in tables:
                continue  # the table of the embedding, turned round
            if (name := weights_of(op)) is not None:
                terms.setdefault(name, []).append(_elements(op, block, layers, exact))
    return {name: _sum(found) for name, found in terms.items()}


def _elements(op: bl.Operation, block: Block, layers: Layers, exact: bool) -> Expr | None:
    produced, contracted = sides(op)
    experts = (block.tensors[op.input][0],) if getattr(op, "grouped", False) else ()
    dims = (*experts, *contracted, *produced)
    if exact and not contracted and "sequence" in dims:
        return None
    factors = [layers.sizes[dim] for dim in dims]
    return _product(factors if block.repeat is None else [block.repeat, *factors])


def _product(factors: Sequence[Expr]) -> Expr:
    result = factors[0]
    for factor in factors[1:]:
        result = Binary("*", result, factor)
    return result


def _sum(terms: Sequence[Expr | None]) -> Expr | None:
    """Equal terms are counted: `4*(h*h)` rather than the same product four times."""
    if None in terms:
        return None
    distinct = dict.fromkeys(term for term in terms if term is not None)
    parts = [term if terms.count(term) == 1 else Binary("*", number(terms.count(term)), term) for term in distinct]
    result = parts[0]
    for part in parts[1:]:
        result = Binary("+", result, part)
    return result


# --- are two sizes the same? ------------------------------------------------------------------


def _points(sizes: Declared) -> list[Mapping[str, Fraction]]:
    """Values of all names that meet the assumptions: random ones, always the same; none where the
    assumptions are too tight for that, and then nothing is compared."""
    chance = random.Random(0)
    allowed = (point for n in range(POINTS) if _allowed(point := _point(sizes, chance, n), sizes))
    return list(islice(allowed, ENOUGH))


def _point(sizes: Declared, chance: random.Random, n: int) -> Mapping[str, Fraction]:
    def draw() -> Fraction:
        # Powers of two meet assumptions on divisors, other numbers tell more sizes apart.
        return Fraction(chance.randrange(2, 10**6) if n % 2 else 2 ** chance.randrange(1, 14))

    point: dict[str, Fraction] = {}
    for let in sizes.lets.values():
        value = None if let.value is None else _value(let.value, point)
        point[let.name] = draw() if value is None else value
    for atom in sizes.atoms.values():
        value = None if atom.size is None else _value(atom.size, point)
        point[atom.name] = draw() if value is None else value
    return point


def _allowed(point: Mapping[str, Fraction], sizes: Declared) -> bool:
    try:
        return all(ex.holds(assumption.condition, point) for assumption in sizes.assumptions)
    except (KeyError, ZeroDivisionError, ValueError):
        return False


def _differ(one: Expr, other: Expr, point: Mapping[str, Fraction]) -> bool:
    a, b = _value(one, point), _value(other, point)
    return a is not None and b is not None and a != b


def _value(expr: Expr, point: Mapping[str, Fraction]) -> Fraction | None:
    try:
        return ex.evaluate(expr, point)
    except (KeyError, ZeroDivisionError, ValueError):
        return None


def used_weights(statements: Sequence[object]) -> Iterator[str]:
    """Names of weights that operations of blocks use."""
    for _, operation in _operations(statements):
        if (name := weights_of(operation.operator)) is not None:
            yield name


def dims_in_use(statements: Sequence[object]) -> dict[str, set[str]]:
    """Weights -> the dimensions that operations of blocks give their matrices and vectors."""
    found: dict[str, set[str]] = {}
    experts: dict[str, set[str]] = {}
    for block, operation in _operations(statements):
        operator = operation.operator
        if isinstance(operator, bl.Router):
            experts.setdefault(block, set()).add(operator.experts)
        if (name := weights_of(operator)) is not None:
            produced, contracted = sides(operator)
            grouped = experts.get(block, ()) if getattr(operator, "grouped", False) else ()
            found.setdefault(name, set()).update((*contracted, *produced, *grouped))
    return found


def _operations(statements: Sequence[object]) -> Iterator[tuple[str, ast.OperationLine]]:
    """Every line of every block, with the name of the block."""
    for node in statements:
        if isinstance(node, ast.BlockStmt):
            for line in node.lines:
                for one in line.lines if isinstance(line, ast.CheckpointLine) else (line,):
                    if isinstance(one, ast.OperationLine):
                        yield node.name, one
