"""Lines beside a step: what is said of weights again that a step block speaks of already."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.steps import StatedStep
from placelogic.syntax import ast

Line = tuple[Item, ast.SyncStmt | ast.ScaleStmt]


class Beside(Struct):
    """The `sync` and `scale` lines that steps do not replace, as they name weights no less specifically.
    `found`: per step, the first of its weights and all such lines."""

    found: dict[int, tuple[str, StatedStep, list[Line]]] = field(default_factory=dict)

    def add(
        self, weights: str, step: StatedStep, lines: Sequence[tuple[int, Item, ast.SyncStmt | ast.ScaleStmt]]
    ) -> None:
        kept: list[Line] = [(item, node) for level, item, node in lines if level >= step.level]
        if kept:
            known = self.found.setdefault(id(step.statement), (weights, step, []))[2]
            known += [line for line in kept if all(line[1] is not other for _, other in known)]

    def tell(self, log: Log) -> None:
        """One problem (PL323) for each step, at the first of its lines."""
        for weights, step, lines in self.found.values():
            (item, node), *rest = lines
            word = "sync" if isinstance(node, ast.SyncStmt) else "scale"
            line = step.item.at(step.statement.span).line
            others = sorted({other.at(one.span).line for other, one in rest} - {item.at(node.span).line})
            more = f" and line{'s' * (len(others) > 1)} {', '.join(map(str, others))}" if others else ""
            message = (
                f"`{weights}` has a step of its own (line {line}), which replaces only less specific `{word}` lines"
            )
            out = "these lines or the step" if others else "one of them"
            hint = f"say {'them' if others else 'it'} in the step, or leave {out} out"
            log.at(item, "PL323", f"{message} than this one{more}", node.span, hint)
