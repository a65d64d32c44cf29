"""What is told of a fault in the layers' operations: FW03 to FW05 forward, FW06 backward."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

from msgspec import Struct

from placelogic.layers.operations import inputs
from placelogic.program.block import Collective
from placelogic.program.facts import Crossing, Need
from placelogic.program.program import Program
from placelogic.prove.factor import named_factor
from placelogic.prove.layers import term_of
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.table import Table, fault_of, rows_of, tabulate, tabulated
from placelogic.prove.values import Term
from placelogic.report.diagnostic import DeviceRow
from placelogic.source import Span


class Told(Struct, frozen=True):
    code: str
    axes: tuple[str, ...]
    message: str
    label: str
    help: str
    fault: Literal["wrong", "scale", "nonuniform"]
    rows: tuple[DeviceRow, ...]
    span: Span


def told_of_need(program: Program, sizes: Sizes, one: Obligation, env: Mapping[str, int]) -> Told:
    """The finding for a condition of the forward pass that does not hold at these sizes."""
    need = one.need
    assert need is not None
    if need.axis is not None:
        return _misfit(program, need, need.axis)
    axes = program.mesh.axes
    tables: list[tuple[tuple[Term, ...], Table]] = []
    for times, paths in need.parts:
        terms = tuple(term_of(axes, path, sizes) for path in paths)
        table = tabulated(axes, sizes.size, sizes, terms, env)
        if any(factor != times for items in table.factors.values() for factor in items.values()):
            tables.append((terms, table))
    # Shares are told before factors: they are further from right.
    terms, table = next((pair for pair in tables if pair[1].axes), tables[0])
    span = _stated(program, need, table.axes or _counted(terms))
    return _shares(need, table, span) if table.axes else _factor(need, terms, table, sizes, span)


def _shares(need: Need, table: Table, span: Span) -> Told:
    axes = ", ".join(table.axes)
    reads = f"`{need.operation}` is not linear, and reads" if need.nonlinear else f"block `{need.block}` ends with"
    return Told(
        "FW03",
        table.axes,
        f"{reads} `{need.tensor}` in shares: along {axes} each device has only a part of every number",
        f"`{need.tensor}` is not summed over {axes} here",
        f"sum `{need.tensor}` over {axes} before it is used",
        "nonuniform",
        rows_of(table, need.tensor),
        span,
    )


def _factor(need: Need, terms: tuple[Term, ...], table: Table, sizes: Sizes, span: Span) -> Told:
    factor = next((f for items in table.factors.values() for f in items.values()), Fraction(0))
    counted = _counted(terms)
    name = named_factor(terms, sizes) or str(factor)
    axes = ", ".join(counted)
    if counted:
        message = f"a part of `{need.tensor}` is counted {name} times: along {axes} copies of it are added to shares, and summed with them"
        help_ = f"add it after the sum over {axes}, or on one device, or divided by {axes}"
    else:
        message = f"a part of `{need.tensor}` is multiplied by {name} on the way here"
        help_ = "drop or change the factor that is wrong"
    return Told(
        "FW04",
        counted,
        message,
        f"`{need.tensor}` is not what one device has",
        help_,
        "wrong",
        rows_of(table, "part"),
        span,
    )


def _misfit(program: Program, need: Need, axis: str) -> Told:
    """A stated line is blamed before what reads the tensor: without such lines everything lies as it must."""
    line = _line_before(program, need, axis)
    what = need.operation if need.operation.startswith("the ") else f"`{need.operation}`"
    gets = need.reason.rpartition("gets ")[2].replace("pieces of it", f"pieces of `{need.tensor}`")
    label = f"`{need.tensor}` does not lie along {axis} as it has to"
    help_ = f"gather `{need.tensor}` over {axis} before, or cut it on another dimension"
    if line is not None:
        here = line.tensor == need.tensor or need.operation == f"the boundary of `{need.tensor}`"
        reader = "" if here else f" for `{need.operation}` in line {need.origin.span.line}"
        label = f"`{line.tensor}` does not lie along {axis} as it has to{reader}"
        word = f"say `by {line.usual}`, or " if line.usual is not None else ""
        help_ = f"{word}leave this line out: then `{line.tensor}` is brought to where it has to lie"
    return Told(
        "FW05",
        (axis,),
        f"{what} {need.reason}",
        label,
        help_,
        "wrong",
        (DeviceRow({}, gets.removesuffix(f" over {axis}"), "whole tensors"),),
        line.origin.span if line is not None else need.origin.span,
    )


def _counted(terms: tuple[Term, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(axis for term in terms for axis in term.counted))


def _line_before(program: Program, need: Need, axis: str) -> Crossing | None:
    """The `forward` line that changes how a tensor lies along the axis, nearest before what needs it: at one of
    the tensors that the operation reads, or at one that those are made of."""
    layering, layers = program.layering, program.layers
    if layering is None or layers is None:
        return None
    lines = [c for c in layering.crossings if (c.axis, c.direction) == (axis, "forward") and c.changes]
    block = next(block for block in layers.blocks if block.name == need.block)
    made = {op.output: op for op in block.operations}
    reader = next((op for op in block.operations if op.origin == need.origin), None)
    waiting, seen = [need.tensor, *(inputs(reader) if reader is not None else ())], set()
    for tensor in waiting:  # grows: nearest first
        found = next((line for line in lines if (line.block, line.tensor) == (block.name, tensor)), None)
        if found is not None:
            return found
        if tensor not in seen and tensor in made:
            waiting += inputs(made[tensor])
        seen.add(tensor)
    if block.input not in seen or isinstance(reader, Collective):
        return None
    return lines[0] if len(lines) == 1 else None  # in a block before, or in the layer before


def _stated(program: Program, need: Need, axes: tuple[str, ...]) -> Span:
    """The statement that the values went through last; else the one line that changes along these axes what
    happens before they are read; else the operation that reads them."""
    through = [place for _, paths in need.parts for path in paths for place in path.through]
    if through:
        return through[-1].span
    layering, layers = program.layering, program.layers
    crossings = layering.crossings if layering is not None else ()
    names = [block.name for block in layers.blocks] if layers is not None else []
    upto = names[: names.index(need.block) + 1] if need.block in names else names
    forward = [
        crossing
        for crossing in crossings
        if crossing.direction == "forward" and crossing.changes and crossing.axis in axes and crossing.block in upto
    ]
    return forward[0].origin.span if len(forward) == 1 else need.origin.span


# --- backward ---------------------------------------------------------------------------------


def told_of_flow(program: Program, sizes: Sizes, one: Obligation, env: Mapping[str, int]) -> Told | None:
    """FW06 for a gradient that is wrong because of a boundary; None where the step alone is wrong, or where
    no boundary was stated."""
    assert one.through is not None and one.values is not None and one.weights is not None
    weights = program.group(one.weights)
    usual = one.through.usual.get(one.values.term, ())
    if any(f != 1 for items in tabulate(program, weights, sizes, usual, env).factors.values() for f in items.values()):
        return None
    acting = frozenset(axis for axis in program.mesh.axes if sizes.size(axis).at(env) > 1)
    crossing = _crossing(program, one, acting)
    if crossing is None:
        return None
    table = tabulate(program, weights, sizes, one.values.terms, env)
    followed = not any("*" in path.lost for path in one.through.flow.paths)
    return Told(
        "FW06",
        (crossing.axis,),
        f"{_wrong(one, crossing, table, sizes) if followed else _again(one, crossing)}{_wanted(program, crossing)}",
        f"forward, {crossing.done}",
        f"say `by {crossing.usual}`, the transpose of what happens forward, or leave this line out: that is derived"
        if crossing.usual is not None
        else "leave this line out: then its transpose is derived",
        fault_of(table),
        rows_of(table) if followed else (),
        crossing.origin.span,
    )


def _wanted(program: Program, crossing: Crossing) -> str:
    """What would be the transpose, in words."""
    axis = crossing.axis
    wanted = {
        "none": f"what arrives {'is a piece' if _in_pieces(program, crossing) else 'is whole'} on every device along {axis}, "
        "and nothing has to be added up",
        "sum": f"what arrives are shares, to be added up over {axis}",
        "slice": f"along {axis} each device keeps its own piece of what arrives, which is complete there",
        "gather": f"what arrives are pieces, to be put together over {axis}",
    }.get(crossing.usual or "")
    return f": {wanted}" if wanted is not None and crossing.direction == "backward" else ""


def _in_pieces(program: Program, crossing: Crossing) -> bool:
    """Whether the tensor, and so the gradient where nothing crosses, is cut along the axis."""
    layering, layers = program.layering, program.layers
    block = next((block for block in layers.blocks if block.name == crossing.block), None) if layers else None
    if layering is None or block is None:
        return False
    lies = layering.plan.shapes.get((block.name, crossing.tensor), {}).get(crossing.axis)
    return lies in block.tensors[crossing.tensor]


def _crossing(program: Program, one: Obligation, acting: frozenset[str]) -> Crossing | None:
    """The override that the gradient came through: of several a backward one, along an axis that something acts on
    at these sizes (`acting`: those of more than one device)."""
    assert one.through is not None and program.layering is not None
    flow = one.through.flow
    beyond = [path for _, paths in flow.beyond or () for path in paths]
    through = [origin for path in (*flow.paths, *beyond) for origin in path.through]
    met = [crossing for crossing in program.layering.crossings if crossing.origin in through]
    blamed = _blamed(one) & acting or acting
    met.sort(key=lambda c: (not c.changes, c.axis not in acting, c.direction != "backward", c.axis not in blamed))
    return met[0] if met else None


def _blamed(one: Obligation) -> frozenset[str]:
    """Axes along which the gradient is other than the facts have it."""
    assert one.through is not None
    found: set[str] = set()
    for path in one.through.flow.paths:
        found |= path.tied | path.lost | path.counted | set(path.kinds)
    return frozenset(found)


def _again(one: Obligation, crossing: Crossing) -> str:
    """For a gradient that comes through more layers than are followed one by one."""
    return f"the gradient that reaches `{one.weights}` through `{crossing.tensor}` is changed again by every layer on its way"


def _wrong(one: Obligation, crossing: Crossing, table: Table, sizes: Sizes) -> str:
    assert one.values is not None
    what = f"the gradient that reaches `{one.weights}`{f' through `{crossing.tensor}`' if crossing.block else ''}"
    terms, axis = one.values.terms, crossing.axis
    factors = {f for items in table.factors.values() for f in items.values()}
    if None in factors:
        return _mixture(one, what, axis)
    if factors == {Fraction(0)}:
        return f"nothing is left of {what}"
    if any(kind.value == "share" for term in terms for kind in term.kinds) and Fraction(0) in factors:
        return f"{what} stays in shares that nothing adds up along {axis}"
    if len(factors) == 1:
        (factor,) = factors
        counted = any(term.counted for term in terms)
        name = named_factor(terms, sizes) or str(factor)
        return f"{what} is counted {name} times" if counted else f"{what} is multiplied by {name}"
    return f"{what} is not that of one device"


def _mixture(one: Obligation, what: str, axis: str) -> str:
    """Why nobody can say of which work it is the gradient."""
    assert one.through is not None
    paths = one.through.flow.paths
    if any(axis in path.tied for path in paths):
        return f"of {what}, each device keeps only its own piece of its own share along {axis}"
    if any(axis in path.lost & path.heaped for path in paths):
        return f"of {what}, pieces of different places are added up along {axis}, place by place"
    return f"{what} is combined along {axis} as what it is not"
