"""What is left of a block when some of its weights, or the axes of a collective, are none.

A bias without its vector and a collective over no axis leave their input as it is; any other operation
vanishes with its weights, what is made from it vanishes too, and a sum goes on without it.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from placelogic.program import block as bl
from placelogic.program.operations import reading, reads
from placelogic.syntax import ast


def prune(block: ast.BlockStmt, gone: Collection[str]) -> ast.BlockStmt:
    """The block without the weights in `gone`."""
    stands_for: dict[str, str | None] = {}
    lines: list[ast.BlockLine] = []
    for line in block.lines:
        match line:
            case ast.InputLine():
                lines.append(line)
            case ast.OperationLine():
                lines += _line(line, gone, stands_for)
            case ast.CheckpointLine(inner):
                kept = tuple(new for one in inner for new in _line(one, gone, stands_for))
                if kept:
                    lines.append(line if kept == inner else replace(line, lines=kept))
    return replace(block, lines=tuple(lines)) if stands_for else block


def _line(
    line: ast.OperationLine, gone: Collection[str], stands_for: dict[str, str | None]
) -> tuple[ast.OperationLine, ...]:
    """The line as it is now, if it is still there. `stands_for`: what to read instead of a tensor."""

    def now(name: str) -> str | None:
        return stands_for.get(name, name)

    op = line.operator
    match op:
        case bl.Add(inputs=inputs):
            kept = tuple(new for name in inputs if (new := now(name)) is not None)
            if len(kept) > 1 or kept == inputs:
                return (line if kept == inputs else replace(line, operator=replace(op, inputs=kept)),)
            stands_for[line.output] = kept[0] if kept else None
            return ()
        case bl.Collective(axes=()):
            stands_for[line.output] = now(op.input)
            return ()
        case bl.Bias(weights=weights) if weights in gone:
            stands_for[line.output] = now(op.input)
            return ()
    if getattr(op, "weights", None) in gone or any(now(name) is None for name in reads(op)):
        stands_for[line.output] = None
        return ()
    changed = reading(op, now)
    return (line if changed == op else replace(line, operator=changed),)
