"""What is told of a fault in the layers' operations: FW03 to FW05 forward, FW06 backward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from placelogic.program.block import Collective
from placelogic.program.facts import Crossing, Need
from placelogic.program.operations import inputs
from placelogic.program.program import Program
from placelogic.prove.factor import named_factor
from placelogic.prove.layers import term_of
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.table import Table, fault_of, rows_of, tabulate, tabulated
from placelogic.prove.values import Term
from placelogic.report.diagnostic import DeviceRow
from placelogic.report.sentences import Sentence, Words
from placelogic.source import Span

About = tuple[Sentence, tuple[DeviceRow, ...], Span]
"""What is told, what devices have, and where."""


def of_need(program: Program, sizes: Sizes, one: Obligation, env: Mapping[str, int]) -> About:
    """A condition of the forward pass that does not hold at these sizes."""
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
    counted = _counted(terms)
    span = _stated(program, need, table.axes or counted)
    if table.axes:
        words = {"tensor": f"`{need.tensor}`", "operation": need.operation, "block": need.block}
        variant = "nonlinear" if need.nonlinear else "end"
        return Sentence("FW03", variant, None, table.axes, words), rows_of(table, need.tensor), span
    factor = next((f for items in table.factors.values() for f in items.values()), Fraction(0))
    words = {"tensor": f"`{need.tensor}`", "factor": named_factor(terms, sizes) or str(factor)}
    return Sentence("FW04", "copies" if counted else "factor", None, counted, words), rows_of(table, "part"), span


def _misfit(program: Program, need: Need, axis: str) -> About:
    """A stated line is blamed before what reads the tensor: without such lines everything lies as it must."""
    line = _line_before(program, need, axis)
    words: dict[str, str | bool] = {**dict(need.words), "tensor": f"`{need.tensor}`"}
    words["what"] = f"the boundary of `{need.tensor}`" if need.boundary else f"`{need.operation}`"
    if line is None:
        words |= {"blamed": f"`{need.tensor}`", "gather": True}
    else:
        words |= {"blamed": f"`{line.tensor}`", "leave": True, "usual": line.usual is not None, "by": line.usual or ""}
        if line.tensor != need.tensor and not need.boundary:
            words |= {"reader": True, "operation": need.operation, "line": str(need.origin.span.line)}
    sentence = Sentence("FW05", need.reason, None, (axis,), words)
    shown = sentence.shown()
    assert shown is not None
    return sentence, (DeviceRow({}, *shown),), line.origin.span if line is not None else need.origin.span


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


def of_flow(program: Program, sizes: Sizes, one: Obligation, env: Mapping[str, int]) -> About | None:
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
    followed = not any("*" in path.lost for path in one.through.flow.paths)  # else through too many layers
    variant, words = _wrong(one, crossing, table, sizes) if followed else ("again", {})
    words = {
        **words,
        **_wanted(program, crossing),
        "tensor": f"`{crossing.tensor}`",
        "through": bool(crossing.block),
        "done": crossing.done,
        "by": crossing.usual or "",
    }
    if crossing.done in _RETURNS:
        words |= {"written": True, f"of_{crossing.done}": True, "written_help": True}
        words |= {"plain": crossing.tensor, "instead": _RETURNS[crossing.done]}
    else:
        words |= {"line": True, "usual" if crossing.usual is not None else "leave": True}
    sentence = Sentence("FW06", variant, one.weights, (crossing.axis,), words, fault_of(table))
    return sentence, rows_of(table) if followed else (), crossing.origin.span


_RETURNS = {"gather": "slice", "slice": "gather", "broadcast": "none", "reduce": "sum"}
"""What an implementation may hand back instead of the transpose of a collective."""


def _wanted(program: Program, crossing: Crossing) -> Words:
    """What would be the transpose."""
    if crossing.usual not in ("none", "sum", "slice", "gather") or crossing.direction != "backward":
        return {}
    whole = "piece" if _in_pieces(program, crossing) else "whole"
    return {"wanted": True, whole if crossing.usual == "none" else crossing.usual: True}


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
    every = (*program.layering.crossings, *_written(program))
    met = [crossing for crossing in every if crossing.origin in through]
    blamed = _blamed(one) & acting or acting
    met.sort(key=lambda c: (not c.changes, c.axis not in acting, c.direction != "backward", c.axis not in blamed))
    return met[0] if met else None


def _written(program: Program) -> Iterator[Crossing]:
    """The collectives of blocks of which no line says what comes back, and something may."""
    layers, layering = program.layers, program.layering
    assert layers is not None and layering is not None
    said = {(line.block, line.tensor, axis) for line in layers.overrides for axis in line.axes}
    for block in layers.blocks:
        for op in block.operations:
            if isinstance(op, Collective) and (op.kind in ("gather", "slice", "broadcast") or op.op == "mean"):
                for axis in op.axes:
                    if (block.name, op.output, axis) not in said:
                        yield Crossing(block.name, op.output, axis, "backward", op.kind, None, True, op.origin)


def _blamed(one: Obligation) -> frozenset[str]:
    """Axes along which the gradient is other than the facts have it."""
    assert one.through is not None
    found: set[str] = set()
    for path in one.through.flow.paths:
        found |= path.tied | path.lost | path.counted | path.partial | path.copies
    return frozenset(found)


def _wrong(one: Obligation, crossing: Crossing, table: Table, sizes: Sizes) -> tuple[str, Words]:
    """What became of the gradient, and by which factor."""
    assert one.values is not None and one.through is not None
    terms, axis = one.values.terms, crossing.axis
    factors = {f for items in table.factors.values() for f in items.values()}
    if None in factors:  # nobody can say of which work it is the gradient
        paths = one.through.flow.paths
        if any(axis in path.tied for path in paths):
            return "tied", {}
        return "summed_in_place" if any(axis in path.lost & path.summed_in_place for path in paths) else "combined", {}
    if factors == {Fraction(0)}:
        return "nothing", {}
    if any(kind.value == "partial" for term in terms for kind in term.kinds) and Fraction(0) in factors:
        return "shares", {}
    if len(factors) == 1:
        (factor,) = factors
        words = {"factor": named_factor(terms, sizes) or str(factor)}
        return "counted" if any(term.counted for term in terms) else "factor", words
    return "other", {}
