"""Pieces of one dimension over several axes nest in one order everywhere, that of the mesh."""

from __future__ import annotations

from placelogic.layers.values import Shape
from placelogic.problem import Problem, SpecError
from placelogic.program.ops import Axes
from placelogic.source import Span


def check_order(tensor: str, shape: Shape, axes: Axes, split: frozenset[str], span: Span) -> None:
    """Raises PL386 where a tensor is cut in another order than shards of weights are. `split`: the axes that
    split the work; where weights are cut over them too, their operation looks."""
    cut: dict[str, list[str]] = {}
    for axis, dim in shape.items():
        if axis not in split:
            cut.setdefault(dim, []).append(axis)
    for dim, several in cut.items():
        if several != sorted(several, key=axes.index):
            order = f"{several[0]} first and then over {', '.join(several[1:])}"
            raise disorder(tensor, f"it is cut on {dim} over {order}, and weights the other way round", span)


def disorder(tensor: str, reason: str, span: Span) -> SpecError:
    """PL386."""
    hint = "list these axes in `mesh` in the order in which they cut, or cut other dimensions over one of them"
    return SpecError(Problem("PL386", f"`{tensor}` does not fit over several axes: {reason}", span, hint))
