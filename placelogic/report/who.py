"""Who splits, who sums, who divides, and where: one table per spec, for a reviewer's eye.

Reads a complete program (facts and steps filled) and states nothing that is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from placelogic.program.expr import show
from placelogic.program.facts import Fact
from placelogic.program.program import (
    BroadcastParams,
    GatherParams,
    Layout,
    Loop,
    Op,
    Origin,
    Program,
    Reduce,
    Scale,
    ScaleLoss,
    Step,
    Weights,
)

HEADINGS = ("weights", "over", "gradient starts as", "combined by", "params", "optimizer", "gradients", "new params")


class Row(Struct, frozen=True):
    """One weight group along one axis, or (axis "") what multiplies its whole gradient."""

    weights: str
    axis: str
    starts: str
    combined: str
    params: str
    optimizer: str
    gradients: str
    published: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.weights, self.axis, self.starts, self.combined,
            self.params, self.optimizer, self.gradients, self.published,
        )  # fmt: skip


def rows(program: Program) -> Iterator[Row]:
    """Weights in written order; along each axis in mesh order."""
    for weights in program.weights:
        step = program.step(weights.name)
        for axis in program.mesh.axes:
            fact = program.facts[weights.name][axis]
            yield Row(
                weights.name,
                axis,
                "frozen" if step is None else _starts(fact),
                "" if step is None else _combined(step, axis, fact),
                _stages(weights, axis) or _mode(weights.params, axis),
                "" if step is None else _mode(weights.optimizer_state, axis),
                "" if step is None else _mode(weights.gradients, axis),
                "" if step is None else _published(step, axis),
            )
        scales = "" if step is None else _scales(step)
        if scales:
            yield Row(weights.name, "", "", scales, *_residency(weights), "")


def _starts(fact: Fact) -> str:
    match fact.kind, fact.part:
        case "partial", "item":
            text = "share of the work"
        case "partial", "activation":
            text = "part of the activations"
        case "partial", _:
            text = "one of two uses"
        case "shard", _:
            text = "own shard, whole"
        case "absent", _:
            text = "cannot be computed"
        case _:
            text = "whole copy"
    return text + (", routed to owners" if fact.routed else "")


def _ops(ops: tuple[Op, ...], inside: str = "") -> Iterator[tuple[Op, str]]:
    """Every operation, and in which loop it runs."""
    names = {
        "each": "every micro-batch", "but_last": "every micro-batch but the last",
        "but_first": "every micro-batch but the first", "first": "first micro-batch", "last": "last micro-batch",
    }  # fmt: skip
    for op in ops:
        if isinstance(op, Loop):
            yield from _ops(op.body, names.get(op.subset, f"micro-batch {op.index}"))
        else:
            yield op, inside


def _combined(step: Step, axis: str, fact: Fact) -> str:
    found = []
    for op, inside in _ops(step.ops):
        if isinstance(op, Reduce) and axis in op.axes:
            words = [op.op, *(["scattered"] if op.scattered else []), *([inside] if inside else [])]
            found.append(f"{', '.join(words)} {_where(op.origin)}")
    if found:
        return "; ".join(found)
    said = next((line.origin for line in step.lines if line.axis == axis), None)
    if said is not None:
        return f"not combined {_where(said)}" if not fact.routed else f"as stated {_where(said)}"
    if fact.routed:
        return "summed at the owner"
    return "NOT COMBINED" if fact.kind == "partial" else "nothing to combine"


def _published(step: Step, axis: str) -> str:
    found = [
        f"{'gather' if isinstance(op, GatherParams) else f'broadcast from {op.root}'} {_where(op.origin)}"
        for op, _ in _ops(step.ops)
        if isinstance(op, (GatherParams, BroadcastParams)) and axis in op.axes
    ]
    return "; ".join(found)


def _scales(step: Step) -> str:
    found = []
    for op, inside in _ops(step.ops):
        if isinstance(op, Scale):
            found.append(f"times {show(op.factor)}{f', {inside}' if inside else ''} {_where(op.origin)}")
        if isinstance(op, ScaleLoss):
            found.append(f"loss {op.term or 'main'} times {show(op.factor)} {_where(op.origin)}")
    return "; ".join(found)


def _where(origin: Origin) -> str:
    return f"(line {origin.span.line})" if origin.stated else "(derived)"


def _mode(layout: Layout, axis: str) -> str:
    cut = layout.cut(axis)
    if cut is None:
        return "R"
    return cut.letter + (f"({cut.dim})" if cut.dim else "") + (f" of {'*'.join(cut.axes)}" if len(cut.axes) > 1 else "")


def _stages(weights: Weights, axis: str) -> str:
    """Where weights used on end stages live along the axis of stages."""
    uses = weights.uses
    if uses is None or uses.axis != axis:
        return ""
    return "first and last" if uses.first and uses.last else "first" if uses.first else "last"


def _residency(weights: Weights) -> tuple[str, str, str]:
    def one(layout: Layout) -> str:
        return ", ".join([*(["host"] if layout.host else []), *(["M"] if layout.materialized else [])])

    return one(weights.params), one(weights.optimizer_state), one(weights.gradients)


def table(program: Program) -> str:
    """The rows as aligned text, a blank line between weight groups; columns that are empty are left out."""
    every = [row.cells for row in rows(program)]
    kept = [index for index in range(len(HEADINGS)) if any(cells[index] for cells in every)]
    widths = [max(len(HEADINGS[index]), *(len(cells[index]) for cells in every)) for index in kept]
    lines = [_line([HEADINGS[index] for index in kept], widths), _line(["-" * width for width in widths], widths)]
    last = None
    for cells in every:
        if last is not None and cells[0] != last:
            lines.append("")
        lines.append(_line([cells[index] if index or cells[0] != last else "" for index in kept], widths))
        last = cells[0]
    return "\n".join(lines) + "\n"


def _line(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
