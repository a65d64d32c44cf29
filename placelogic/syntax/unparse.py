"""Syntax tree to text: what other parts of placelogic say in the language.

The text parses back to an equal tree (but for fractions that a tree holds as one number: `1/2` comes
back as a division)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placelogic.program.expr import show
from placelogic.program.ops import Loop, Op
from placelogic.syntax import ast
from placelogic.syntax.forms import text_of

INDENT = "  "
WIDTH = 100
"""Property blocks that fit into this many columns stay on one line."""


def statement_text(stmt: ast.Statement, indent: int = 0) -> str:
    """The statement as a person writes it, every line indented by `indent` levels; no line end after it."""
    pad = INDENT * indent
    match stmt:
        case ast.StepStmt(target, body):
            return pad + _block(f"step {target_text(target)}", (op_text(op, indent + 1) for op in body), indent)
        case ast.InitStmt(target, ops, block) if block or len(ops) != 1:
            return pad + _block(f"init {target_text(target)}", (INDENT + pad + text_of(op) for op in ops), indent)
        case ast.ClipStmt(norm, entries) if entries is not None:
            return pad + _block(f"clip {norm}", (INDENT + pad + text_of(entry) for entry in entries), indent)
        case ast.ModelDef(name, params, body):
            return pad + _definition(f"model {name}({', '.join(map(text_of, params))})", body, indent)
        case ast.StrategyDef(name, params, body):
            return pad + _definition(f"strategy {name}({', '.join(map(text_of, params))})", body, indent)
        case ast.SpecDef(name, body):
            return pad + _definition(f"spec {name}", body, indent)
        case ast.BlockStmt(name, repeat, lines):
            head = f"block {name}" + ("" if repeat is None else f" repeat {show(repeat)}")
            return pad + _block(head, (line_text(line, indent + 1) for line in lines), indent)
        case ast.WeightsStmt(name, props):
            return pad + _properties(f"weights {name}", map(text_of, props), indent)
        case ast.ModelStmt(name, arguments):
            return pad + _properties(f"model {name}", (f"{a.name} {show(a.value)}" for a in arguments), indent)
        case ast.PlaceStmt(target, axes, entries, reshard):
            states = [f"{entry.state} {mode_text(entry.mode)}" for entry in entries]
            more = [] if reshard is None else [f"reshard_after_forward {show(reshard)}"]
            over = f" over {axes_text(axes)}" if axes or any(entry.mode.letter in ast.CUT for entry in entries) else ""
            return pad + _properties(f"place {target_text(target)}{over}", states + more, indent)
        case ast.PrecisionStmt(target, entries):
            head = "precision" if target is None else f"precision {target_text(target)}"
            return pad + _properties(head, map(text_of, entries), indent)
        case ast.StagesStmt(axis, schedule, chunks):
            named = (("schedule", schedule), ("chunks", chunks))
            props = [f"{word} {show(value)}" for word, value in named if value is not None]
            head = f"stages over {axes_text((axis,))}"
            return pad + (_properties(head, props, indent) if props else head)
        case ast.TokensStmt(even):
            return pad + ("tokens even" if even else "tokens uneven")
        case ast.LossStmt(name, scope, axes, microbatches):
            how = {"local": "mean local", "global": "mean global", "sum": "sum"}
            over = f"mean over {axes_text(axes, microbatches)}"
            return f"{pad}loss {name + ' ' if name else ''}{how.get(scope, over)}"
        case ast.SyncStmt(target, axes, microbatches, op):
            return f"{pad}sync {target_text(target)} over {axes_text(axes, microbatches)} by {op}"
        case _:
            return pad + text_of(stmt)


def op_text(op: Op, indent: int = 0) -> str:
    """One operation of a step, a loop with its body, indented like `statement_text`."""
    pad = INDENT * indent
    if not isinstance(op, Loop):
        return pad + text_of(op)
    head = f"microbatch {op.index}" if op.subset == "index" else _LOOPS[op.subset]
    if len(op.body) == 1:
        return f"{pad}{head} {{ {op_text(op.body[0])} }}"
    return pad + _block(head, (op_text(inner, indent + 1) for inner in op.body), indent)


_LOOPS = {
    "each": "each microbatch", "but_last": "each microbatch but last", "but_first": "each microbatch but first",
    "first": "first microbatch", "last": "last microbatch",
}  # fmt: skip


def line_text(line: ast.BlockLine, indent: int = 0) -> str:
    """One line of a block, a checkpoint with its lines, indented like `statement_text`."""
    pad = INDENT * indent
    if not isinstance(line, ast.CheckpointLine):
        return pad + text_of(line)
    return pad + _block("checkpoint", (line_text(one, indent + 1) for one in line.lines), indent)


def target_text(target: ast.Target) -> str:
    return ", ".join(target.names)


def axes_text(axes: Sequence[ast.AxisRef], microbatches: bool = False) -> str:
    """`edp*ep, tp`; `none` where there is no axis."""
    parts = [*map(text_of, axes), *(["microbatches"] if microbatches else [])]
    return ", ".join(parts) if parts else "none"


def _dimension(mode: ast.Mode) -> str:
    return f"{mode.dim} of {mode.buffer}" if mode.buffer else str(mode.dim)


def mode_text(mode: ast.Mode) -> str:
    """In words: `sharded on out offloaded`."""
    if mode.letter in ("S", "S*"):
        words = "sharded" if mode.letter == "S" else "gathered"
        return words + (f" on {_dimension(mode)}" if mode.dim else "") + (" offloaded" if mode.host else "")
    if mode.letter == "M":
        return "materialized"
    return "offloaded" if mode.host else "replicated"


def mode_letters(mode: ast.Mode) -> str:
    """As in the tuple of a placement: `O(S(out))`."""
    if mode.letter == "R":
        return "O" if mode.host else "R"
    cut = mode.letter + (f"({_dimension(mode)})" if mode.dim else "")
    return f"O({cut})" if mode.host else cut


def _definition(head: str, body: Sequence[ast.Statement], indent: int) -> str:
    return _block(head, (statement_text(stmt, indent + 1) for stmt in body), indent)


def _block(head: str, lines: Iterable[str], indent: int) -> str:
    text = "\n".join(lines)
    return f"{head} {{\n{text}\n{INDENT * indent}}}" if text else f"{head} {{ }}"


def _properties(head: str, props: Iterable[str], indent: int) -> str:
    listed = list(props)
    one = f"{head} {{ {', '.join(listed)} }}" if listed else f"{head} {{ }}"
    if len(one) + len(INDENT) * indent <= WIDTH:
        return one
    return _block(head, (INDENT * (indent + 1) + prop for prop in listed), indent)
