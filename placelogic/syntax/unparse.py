"""Syntax tree to text: what other parts of placelogic say in the language.

The text parses back to an equal tree (but for fractions that a tree holds as one number: `1/2` comes
back as a division)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placelogic.compat import assert_never
from placelogic.program.expr import Compare, Expr, show
from placelogic.syntax import ast
from placelogic.syntax.unparse_block import block_text

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
            return pad + _block(f"init {target_text(target)}", (INDENT + pad + _init(op) for op in ops), indent)
        case ast.ClipStmt(norm, entries) if entries is not None:
            lines = (f"{INDENT}{pad}{target_text(e.target)} over {axes_text(e.axes)}" for e in entries)
            return pad + _block(f"clip {norm}", lines, indent)
        case ast.ModelDef(name, params, body):
            return pad + _definition(f"model {name}({_params(params)})", body, indent)
        case ast.StrategyDef(name, params, body):
            return pad + _definition(f"strategy {name}({_params(params)})", body, indent)
        case ast.SpecDef(name, body):
            return pad + _definition(f"spec {name}", body, indent)
        case ast.BlockStmt():
            return pad + block_text(stmt, indent)
        case ast.WeightsStmt(name, props):
            return pad + _properties(f"weights {name}", map(_weights_prop, props), indent)
        case ast.ModelStmt(name, arguments):
            return pad + _properties(f"model {name}", (f"{a.name} {show(a.value)}" for a in arguments), indent)
        case ast.PlaceStmt(target, axes, entries, reshard):
            states = [f"{entry.state} {mode_text(entry.mode)}" for entry in entries]
            more = [] if reshard is None else [f"reshard_after_forward {show(reshard)}"]
            over = f" over {axes_text(axes)}" if axes or any(entry.mode.letter in ast.CUT for entry in entries) else ""
            return pad + _properties(f"place {target_text(target)}{over}", states + more, indent)
        case ast.PrecisionStmt(target, entries):
            head = "precision" if target is None else f"precision {target_text(target)}"
            return pad + _properties(head, (f"{entry.state} {entry.dtype}" for entry in entries), indent)
        case ast.StagesStmt(axis, schedule, chunks):
            named = (("schedule", schedule), ("chunks", chunks))
            props = [f"{word} {show(value)}" for word, value in named if value is not None]
            head = f"stages over {axes_text((axis,))}"
            return pad + (_properties(head, props, indent) if props else head)
        case _:
            return pad + _line(stmt)


def op_text(op: ast.StepOp, indent: int = 0) -> str:
    """One operation of a step, a loop with its body, indented like `statement_text`."""
    pad = INDENT * indent
    match op:
        case ast.LoopOp(subset, index, body):
            heads = {
                "each": "each microbatch", "but_last": "each microbatch but last",
                "but_first": "each microbatch but first", "first": "first microbatch",
                "last": "last microbatch", "index": f"microbatch {index}",
            }  # fmt: skip
            if len(body) == 1:
                return f"{pad}{heads[subset]} {{ {op_text(body[0])} }}"
            return pad + _block(heads[subset], (op_text(inner, indent + 1) for inner in body), indent)
        case ast.AccumulateOp(replace, buffer):
            return pad + ("replace" if replace else "accumulate") + (f" into {buffer}" if buffer else "")
        case ast.ReduceOp(buffer, scattered, axes, how):
            words = ["reduce", *([buffer] if buffer else []), *(["scattered"] if scattered else [])]
            return f"{pad}{' '.join(words)} over {axes_text(axes)} by {how}"
        case ast.GatherGradientsOp(axes):
            return f"{pad}gather gradients over {axes_text(axes)}"
        case ast.GatherParamsOp(axes):
            return f"{pad}gather params over {axes_text(axes)}"
        case ast.ScaleOp(buffer, factor):
            return f"{pad}scale {buffer + ' ' if buffer else ''}by {show(factor)}"
        case ast.ScaleLossOp(term, factor):
            return f"{pad}scale loss {term + ' ' if term else ''}by {show(factor)}"
        case ast.ClipOp():
            return f"{pad}clip"
        case ast.SkipOp(axes):
            return f"{pad}skip on overflow over {axes_text(axes)}"
        case ast.UpdateOp(buffer):
            return f"{pad}update{' from ' + buffer if buffer else ''}"
        case ast.BroadcastParamsOp(axis, root):
            return f"{pad}broadcast params over {axes_text((axis,))} from {root}"
        case ast.RefreshOp():
            return f"{pad}refresh params from master"
        case ast.OffloadGradientsOp():
            return f"{pad}offload gradients"
        case ast.FetchParamsOp():
            return f"{pad}fetch params"
        case _:
            assert_never(op)


def target_text(target: ast.Target) -> str:
    return ", ".join(target.names)


def axes_text(axes: Sequence[ast.AxisRef], microbatches: bool = False) -> str:
    """`edp*ep, tp`; `none` where there is no axis."""
    parts = ["*".join(axis.names) for axis in axes] + (["microbatches"] if microbatches else [])
    return ", ".join(parts) if parts else "none"


def mode_text(mode: ast.Mode) -> str:
    """In words: `sharded on out offloaded`."""
    if mode.letter in ("S", "S*"):
        words = "sharded" if mode.letter == "S" else "gathered"
        return words + (f" on {mode.dim}" if mode.dim else "") + (" offloaded" if mode.host else "")
    if mode.letter == "M":
        return "materialized"
    return "offloaded" if mode.host else "replicated"


def mode_letters(mode: ast.Mode) -> str:
    """As in the tuple of a placement: `O(S(out))`."""
    if mode.letter == "R":
        return "O" if mode.host else "R"
    cut = mode.letter + (f"({mode.dim})" if mode.dim else "")
    return f"O({cut})" if mode.host else cut


def _line(stmt: ast.Statement) -> str:
    match stmt:
        case ast.MeshStmt(axes):
            return "mesh " + ", ".join(map(_axis_decl, axes))
        case ast.AxisStmt(name, factors):
            return f"axis {name} = {' * '.join(factors.names)}"
        case ast.LetStmt(items):
            return "let " + ", ".join(_with_value(item.name, item.value) for item in items)
        case ast.AssumeStmt(conditions):
            return "assume " + ", ".join(map(show, conditions))
        case ast.ImportStmt(path):
            return f'import "{path}"'
        case ast.SplitStmt(dim, axes):
            return f"{dim} over {axes_text(axes)}"
        case ast.MicrobatchesStmt(count):
            return f"microbatches {show(count)}"
        case ast.TokensStmt(even):
            return "tokens even" if even else "tokens uneven"
        case ast.ObjectiveStmt(kind):
            return f"objective {kind}"
        case ast.FeedStmt(kind, axes):
            return f"feed {kind} over {axes_text(axes)}"
        case ast.LossStmt(name, scope, axes, microbatches):
            how = {"local": "mean local", "global": "mean global", "sum": "sum"}
            over = f"mean over {axes_text(axes, microbatches)}"
            return f"loss {name + ' ' if name else ''}{how.get(scope, over)}"
        case ast.SyncStmt(target, axes, microbatches, op):
            return f"sync {target_text(target)} over {axes_text(axes, microbatches)} by {op}"
        case ast.ScaleStmt(target, factor):
            return f"scale {target_text(target)} by {show(factor)}"
        case ast.InitStmt(target, ops):
            return f"init {target_text(target)} " + " ".join(map(_init, ops))
        case ast.ClipStmt(norm):
            return f"clip {norm}"
        case ast.OptimizerStmt(name, target):
            return f"optimizer {name}" + (f" for {target_text(target)}" if target else "")
        case ast.RandomStmt(target, axes, kind):
            return f"random {target_text(target)} over {axes_text(axes)} {kind}"
        case ast.FreezeStmt(target):
            return f"freeze {target_text(target)}"
        case ast.UseStmt(calls):
            return "use " + " * ".join(map(call_text, calls))
        case ast.DimsStmt(sizes):
            return "dims " + ", ".join(_with_value(dim.name, dim.size) for dim in sizes)
        case ast.CheckpointStmt(block, first, last, every):
            part = "" if first is None else f"{first}{f' to {last}' if last else ''} of "
            return f"checkpoint {part}{block}" + ("" if every is None else f" every {show(every)}")
        case ast.OverrideStmt(direction, tensor, block, axes, by, scale):
            of = f" of {block}" if block else ""
            scaled = "" if scale is None else f" scale {show(scale)}"
            return f"{direction} {tensor}{of} over {axes_text(axes)} by {by}{scaled}"
        case ast.DrawnStmt(tensor, block, axes, kind):
            return f"random {tensor} of {block} over {axes_text(axes)} {kind}"
        case ast.PositionsStmt(tensor, block, axes, kind):
            return f"positions {tensor} of {block} over {axes_text(axes)} {kind}"
        case ast.AttentionStmt(axes, by):
            return f"attention over {axes_text(axes)} by {by}"
        case ast.BudgetStmt(amount, unit):
            return f"budget {show(amount)} {unit}"
        case ast.ClaimStmt(condition):
            return f"claim {show(condition)}"
        case ast.ExpectStmt(verdict, code, weights):
            return " ".join(word for word in ("expect", verdict, code, weights) if word)
        case _:
            assert_never(stmt)


def _axis_decl(axis: ast.AxisDecl) -> str:
    if not axis.bounds:
        return _with_value(axis.name, axis.size)
    first, *others = axis.bounds
    return show(first) + "".join(f" {bound.op} {show(bound.right)}" for bound in others)


def _with_value(name: str, value: Expr | Compare | None) -> str:
    return name if value is None else f"{name} = {show(value)}"


def _params(params: Iterable[ast.Param]) -> str:
    return ", ".join(_with_value(param.name, param.default) for param in params)


def call_text(call: ast.StrategyCall) -> str:
    given = (f"{arg.name} = {show(arg.value)}" if arg.name else show(arg.value) for arg in call.arguments)
    return f"{call.name}({', '.join(given)})"


def _init(op: ast.InitOp) -> str:
    match op:
        case ast.InitSame():
            return "same"
        case ast.InitDifferent(axes):
            return f"different over {axes_text(axes)}"
        case ast.InitBroadcast(axis, root):
            return f"broadcast over {axes_text((axis,))} from {root}"
        case _:
            assert_never(op)


def _weights_prop(prop: ast.WeightsProp) -> str:
    match prop:
        case ast.SizeProp(value):
            return f"size {show(value)}"
        case ast.LayersProp(value):
            return f"layers {show(value)}"
        case ast.DimsProp(names):
            return f"dims {' '.join(names)}"
        case ast.KindProp(name):
            return f"kind {name}"
        case ast.UsedOnProp(stages, axis):
            return f"used on {' and '.join(stages)}" + (f" of {axes_text((axis,))}" if axis else "")
        case ast.RoutedProp(axis):
            return f"routed over {axes_text((axis,))}"
        case _:
            assert_never(prop)


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
