"""What is left of a block when some of its weights, or the axes of a collective, are none.

A bias without its vector and a collective over no axis leave their input as it is; any other operation
vanishes with its weights, what is made from it vanishes too, and a sum goes on without it.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

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
        case ast.AddTensorsOp(inputs):
            kept = tuple(new for name in inputs if (new := now(name)) is not None)
            if len(kept) > 1 or kept == inputs:
                return (line if kept == inputs else replace(line, operator=replace(op, inputs=kept)),)
            stands_for[line.output] = kept[0] if kept else None
            return ()
        case ast.CollectiveOp(axes=()):
            stands_for[line.output] = now(op.input)
            return ()
        case ast.BiasOp(weights=weights) if weights in gone:
            stands_for[line.output] = now(op.input)
            return ()
        case ast.MultiplyOp(inputs) | ast.ConcatOp(inputs):
            changed = {"inputs": tuple(map(now, inputs))}
        case ast.AttentionOp():
            changed = {"query": now(op.query), "key": now(op.key), "value": now(op.value)}
        case ast.DispatchOp():
            changed = {"input": now(op.input), "router": now(op.router)}
        case _:
            changed = {"input": now(op.input)}
    read = [name for value in changed.values() for name in (value if isinstance(value, tuple) else (value,))]
    if getattr(op, "weights", None) in gone or None in read:
        stands_for[line.output] = None
        return ()
    if all(getattr(op, name) == value for name, value in changed.items()):
        return (line,)
    return (replace(line, operator=replace(op, **changed)),)
