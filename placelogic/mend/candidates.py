"""What a person would try: edits that could mend a finding, most likely first.

A candidate promises nothing; only a proof of the edited spec makes it a fix.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from placelogic.mend import layers
from placelogic.mend.edits import Edit, after, before, delete, replace
from placelogic.program import block as bl
from placelogic.program import ops
from placelogic.program.expr import Num
from placelogic.report.diagnostic import Finding
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.unparse import axes_text, op_text, statement_text, target_text


class Site(Struct, frozen=True):
    """Where a finding points: the innermost statement or operation, and the step block around it."""

    source: str
    node: object
    step: ast.StepStmt | None
    body: tuple[ast.Statement, ...]
    finding: Finding


def locate(file: ast.File, source: str, spec: str, finding: Finding) -> Site | None:
    """None when the finding lies in another file, or on nothing that an edit could change."""
    if finding.span.path != file.path:
        return None
    block = next((s for s in file.statements if isinstance(s, ast.SpecDef) and s.name == spec), None)
    shared = tuple(s for s in file.statements if not isinstance(s, (ast.SpecDef, ast.StrategyDef, ast.ModelDef)))
    body = (*shared, *block.body) if block is not None else shared
    for statement in body:
        node = _at(statement, finding.span)
        if node is not None:
            step = statement if isinstance(statement, ast.StepStmt) else None
            return Site(source, node, step, body, finding)
    return None


def _at(node: object, span: Span) -> object | None:
    """The innermost node with exactly this place, if any lies in it."""
    if not isinstance(node, Struct) or isinstance(node, ops.Origin) or not hasattr(node, "span"):
        return None
    for name in node.__struct_fields__:
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            found = _at(child, span)
            if found is not None:
                return found
    return node if node.span == span else None


def candidates(place: Site) -> Iterator[Edit]:
    """In the order in which they are tried."""
    source, finding, node = place.source, place.finding, place.node
    axes = ", ".join(finding.axes)
    for statement in place.body if finding.code == "SC06" else ():
        if isinstance(statement, ast.OptimizerStmt):
            gathers = (*(statement.gathers or ()), *(_ref(axis, statement.span) for axis in finding.axes))
            yield replace(statement.span, statement_text(_with(statement, gathers=gathers)))
    match node:
        case ast.SyncStmt():
            for op in ("mean", "sum"):
                if op != node.op:
                    yield replace(node.span, statement_text(_with(node, op=op)))
            if len(node.axes) > 1:
                for axis in node.axes:
                    rest = tuple(other for other in node.axes if other != axis)
                    yield replace(node.span, statement_text(_with(node, axes=rest)))
            yield delete(source, node.span)
        case ast.ScaleStmt() | ast.RandomStmt():
            yield delete(source, node.span)
        case ast.AxisDecl(_, Num(size), _) if finding.code == "FW07":
            near = {n for n in range(1, int(size)) if size % n == 0 or n + 3 >= size}
            for smaller in sorted(near, reverse=True):  # the largest that divides
                yield replace(node.span, f"{node.name} = {smaller}")
        case ast.DrawnStmt() | ast.PositionsStmt():
            fixed = "global" if isinstance(node, ast.PositionsStmt) else "same"
            yield replace(node.span, statement_text(_with(node, kind=fixed)))
            yield delete(source, node.span)
        case ast.OverrideStmt() | bl.Collective() | bl.CrossEntropy():
            yield from layers.candidates(source, node, place.body, finding)
        case ast.FeedStmt():
            return  # what the loader does is a fact: the loader has to change, not the spec
        case ast.LossStmt():
            yield from _losses(node)
        case ast.InitStmt() | ast.InitDifferent() | ast.InitBroadcast():
            yield from _start(place)
        case ast.ClipEntry():
            yield from _norm(node, finding)
        case ast.ClipStmt():
            yield replace(node.span, f"clip {node.norm}")
        case ast.PlaceStmt():
            yield from _placement(node, finding)
        case ast.PlaceEntry() | ast.Mode():
            mode = node.mode if isinstance(node, ast.PlaceEntry) else node
            yield replace(mode.span, "sharded on param")
            yield replace(mode.span, "gathered")
            yield replace(mode.span, "replicated")
    if place.step is not None:
        yield from _in_step(place, place.step)
    elif finding.code == "GI03" and finding.weights:
        last = place.body[-1]
        if axes:  # a bias that is divided where shares wait for their sum
            yield after(source, last.span, f"sync {finding.weights} over {axes} by sum")
        for factor in _factors(place):
            yield after(source, last.span, f"scale {finding.weights} by {factor}")
    if finding.code == "GI01" and axes and place.step is None and finding.weights and not isinstance(node, ast.SyncStmt):
        for op in ("mean", "sum"):
            yield after(source, place.body[-1].span, f"sync {finding.weights} over {axes} by {op}")
    for statement in place.body:
        if isinstance(statement, ast.LossStmt) and statement is not node:
            yield from _losses(statement)
        if isinstance(statement, ast.ScaleStmt) and statement is not node:
            yield delete(source, statement.span)


def _losses(node: ast.LossStmt) -> Iterator[Edit]:
    for scope in ("global", "local"):
        yield replace(node.span, statement_text(_with(node, scope=scope, axes=(), microbatches=False)))


def _with(node, **changes):
    from msgspec.structs import replace as changed

    return changed(node, **changes)


def _start(place: Site) -> Iterator[Edit]:
    statement = next((s for s in place.body if isinstance(s, ast.InitStmt) and _inside(place.node, s)), None)
    if statement is None:
        return
    axes = " * ".join(place.finding.axes)
    target = target_text(statement.target)
    ops = [
        *statement.ops,
        *(ast.InitBroadcast(_ref(axis, statement.span), 0, statement.span) for axis in place.finding.axes),
    ]
    yield replace(statement.span, statement_text(_with(statement, ops=tuple(ops), block=True)))
    kept = tuple(op for op in statement.ops if op != place.node)
    if kept and len(kept) < len(statement.ops):
        yield replace(statement.span, statement_text(_with(statement, ops=kept, block=True)))
    if axes:
        yield replace(statement.span, f"init {target} same")


def _inside(node: object, statement: ast.Statement) -> bool:
    return node is statement or any(node is op for op in getattr(statement, "ops", ()))


def _ref(axis: str, span: Span) -> ast.AxisRef:
    return ast.AxisRef((axis,), span)


def _norm(entry: ast.ClipEntry, finding: Finding) -> Iterator[Edit]:
    target = target_text(entry.target)
    named = [axes_text((axis,)) for axis in entry.axes]
    fewer = [axis for axis in named if axis not in finding.axes]
    more = [*named, *(axis for axis in finding.axes if axis not in named)]
    for axes in (more, fewer):
        if axes != named:
            yield replace(entry.span, f"{target} over {', '.join(axes) or 'none'}")


def _placement(node: ast.PlaceStmt, finding: Finding) -> Iterator[Edit]:
    for index, entry in enumerate(node.entries):
        modes = []
        if finding.code == "FW01" and entry.state == "params":
            modes = [("S*", entry.mode.dim), ("R", None)]
        elif finding.code in ("SC06", "SC03", "CC02") and entry.state in ("optimizer", "gradients", "params"):
            modes = [("S", "param"), ("S", None), ("R", None)]
        elif entry.mode.letter == "M":
            modes = [("R", None)]
        for letter, dim in modes:
            changed = _with(entry, mode=_with(entry.mode, letter=letter, dim=dim))
            entries = (*node.entries[:index], changed, *node.entries[index + 1 :])
            yield replace(node.span, statement_text(_with(node, entries=entries)))
    if finding.code == "SC06":
        entries = tuple(
            _with(e, mode=_with(e.mode, dim="param"))
            if e.mode.letter in ("S", "S*") and e.state != "activations"
            else e
            for e in node.entries
        )
        yield replace(node.span, statement_text(_with(node, entries=entries)))


# --- inside a step block --------------------------------------------------------------------


def _in_step(place: Site, step: ast.StepStmt) -> Iterator[Edit]:
    source, finding, node = place.source, place.finding, place.node
    axes = ", ".join(finding.axes)
    end = next((op for op in step.body if isinstance(op, (ops.Clip, ops.Update))), None)
    update = next((op for op in step.body if isinstance(op, ops.Update)), None)
    loop = next((op for op in step.body if isinstance(op, ops.Loop)), None)
    if isinstance(node, ops.Reduce):
        flipped = "mean" if node.op == "sum" else "sum"
        yield replace(node.span, op_text(_with(node, op=flipped)))
        rest = tuple(axis for axis in node.axes if not set(axis.names) & set(finding.axes))
        if rest and rest != node.axes:
            yield replace(node.span, op_text(_with(node, axes=rest)))
        yield delete(source, node.span)
    if isinstance(node, (ops.Scale, ops.ScaleLoss)):
        yield delete(source, node.span)
    if isinstance(node, ops.Accumulate) and node.replace:
        yield replace(node.span, op_text(_with(node, replace=False)))
    if isinstance(node, ops.Skip):
        every = ", ".join(dict.fromkeys([*(axes_text((axis,)) for axis in node.axes), *finding.axes]))
        yield replace(node.span, f"skip on overflow over {every}")
    if finding.code in ("GI01", "GI05") and axes and end is not None:
        for op in ("mean", "sum"):
            yield before(source, end.span, f"reduce over {axes} by {op}")
    if finding.code == "GI07" and update is not None:
        clip = next((op for op in step.body if isinstance(op, ops.Clip)), None)
        if clip is None:
            yield before(source, update.span, "clip")
        else:
            yield from _moved(source, step, clip, update)
    if finding.code == "SC02":
        yield after(source, step.body[-1].span, "update")
    if finding.code == "SC04" and update is not None:
        last = step.body[-1]
        for op in step.body[:-1]:
            if isinstance(op, (ops.GatherParams, ops.FetchParams)):
                rest = tuple(other for other in step.body if other is not op)
                yield _rewritten(source, step, (*rest, op), f"move `{op_text(op)}` to the end")
        yield after(source, update.span, "refresh params from master")
        yield after(source, last.span, "fetch params")
        if axes:
            yield after(source, last.span, f"gather params over {axes}")
    if finding.code in ("GI02", "GI03", "GI05", "GI06", "GI04"):
        yield from _reordered(source, step, loop)
        for op in step.body:
            if isinstance(op, ops.Reduce) and op is not node:
                yield replace(op.span, op_text(_with(op, op="mean" if op.op == "sum" else "sum")))
            if isinstance(op, ops.Scale) and op is not node:
                yield delete(source, op.span)
    if finding.code == "GI03" and end is not None:
        for factor in _factors(place):
            yield before(source, end.span, f"scale by {factor}")


def _moved(source: str, step: ast.StepStmt, op: ops.Op, ahead_of: ops.Op) -> Iterator[Edit]:
    """The step with one operation moved to just before another."""
    rest = [other for other in step.body if other is not op]
    index = rest.index(ahead_of)
    yield _rewritten(
        source, step, (*rest[:index], op, *rest[index:]), f"move `{op_text(op)}` to just before `{op_text(ahead_of)}`"
    )


def _reordered(source: str, step: ast.StepStmt, loop: ops.Loop | None) -> Iterator[Edit]:
    """Reductions and scales of a loop, before `accumulate` or after the loop."""
    if loop is None:
        return
    for op in loop.body:
        if isinstance(op, (ops.Reduce, ops.Scale)):
            inner = tuple(other for other in loop.body if other is not op)
            index = step.body.index(loop)
            changed = _with(loop, body=inner)
            body = (*step.body[:index], changed, op, *step.body[index + 1 :])
            yield _rewritten(source, step, body, f"move `{op_text(op)}` out of the loop")
            yield _rewritten(
                source, step, (*step.body[:index], _with(loop, body=(op, *inner)), *step.body[index + 1 :]),
                f"move `{op_text(op)}` to before `accumulate`",
            )  # fmt: skip


def _rewritten(source: str, step: ast.StepStmt, body: tuple[ops.Op, ...], says: str) -> Edit:
    line = source[: source.find("\n")] if "\n" not in source else source.split("\n")[step.span.line - 1]
    indent = len(line) - len(line.lstrip())
    text = statement_text(_with(step, body=body)).replace("\n", "\n" + " " * indent)
    return Edit(step.span, text, f"{says}, in the step of line {step.span.line}")


def _factors(place: Site) -> Iterator[str]:
    """Factors that a forgotten or surplus division usually is."""
    names = list(place.finding.axes)
    for statement in place.body:
        if isinstance(statement, ast.MicrobatchesStmt):
            from placelogic.program.expr import show

            names.append(show(statement.count))
    for name in dict.fromkeys(names):
        yield f"1/{name}"
        yield name
    yield "1/tokens"
    yield "tokens"
    if len(names) > 1:
        yield "1/(" + "*".join(dict.fromkeys(names)) + ")"
