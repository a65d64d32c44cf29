"""Step programs back to syntax: every name resolved, everything stated, every step written out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from placelogic.elaborate.tree_layers import UNWRITTEN, layer_statements, refs, written
from placelogic.program import program as pg
from placelogic.program.catalog import OPTIMIZERS, STATES, Needs
from placelogic.program.expr import TOKENS, Name, number, substitute, tokens_of
from placelogic.program.program import Axes, Layout, Op, Program, Weights
from placelogic.source import NOWHERE
from placelogic.syntax import ast

T = TypeVar("T")


def to_ast(program: Program) -> ast.File:
    """The syntax tree of what `show` prints. One `spec` block, where the program's name can name one."""
    views = {axes: name for name, axes in program.mesh.views if len(axes) > 1}
    body = tuple(_named(statement, views) for statement in _statements(program))
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", program.name):
        body = (ast.SpecDef(program.name, body, NOWHERE),)
    return ast.File("", body, NOWHERE)


def _named(node: Any, views: Mapping[Axes, str]) -> Any:
    """Products of axes by the name that the mesh gives them."""
    match node:
        case ast.AxisStmt():
            return node
        case ast.AxisRef(names, span):
            return ast.AxisRef((views[names],), span) if names in views else node
        case tuple() if node and all(isinstance(part, ast.AxisRef) for part in node):
            return tuple(_ref((name,)) if isinstance(name, str) else _named(name, views) for name in _runs(node, views))
        case tuple():
            return tuple(_named(part, views) for part in node)
        case _ if isinstance(node, Struct):
            return replace(node, **{name: _named(getattr(node, name), views) for name in node.__struct_fields__})
        case _:
            return node


def _runs(refs: Sequence[ast.AxisRef], views: Mapping[Axes, str]) -> Iterator[str | ast.AxisRef]:
    """A list of axes, with every stretch that makes up a named product as that name."""
    start = 0
    while start < len(refs):
        for end in range(len(refs), start + 1, -1):
            flat = tuple(name for ref in refs[start:end] for name in ref.names)
            if flat in views:
                yield views[flat]
                start = end
                break
        else:
            yield refs[start]
            start += 1


def _statements(program: Program) -> Iterator[ast.Statement]:
    if program.mesh.atoms:
        yield ast.MeshStmt(tuple(ast.AxisDecl(a.name, a.size, (), NOWHERE) for a in program.mesh.atoms), NOWHERE)
    for name, axes in program.mesh.views:
        yield ast.AxisStmt(name, ast.AxisRef(axes, NOWHERE), NOWHERE)
    if program.lets:
        yield ast.LetStmt(tuple(ast.LetItem(let.name, let.value, NOWHERE) for let in program.lets), NOWHERE)
    if program.assumptions:
        yield ast.AssumeStmt(tuple(a.condition for a in program.assumptions), NOWHERE)
    yield from _work(program)
    if (stages := program.stages) is not None:
        yield ast.StagesStmt(_ref((stages.axis,)), Name(stages.schedule), stages.chunks, NOWHERE)
    for group in program.weights:
        yield _declaration(group)
    frozen = tuple(group.name for group in program.weights if group.frozen)
    if frozen:
        yield ast.FreezeStmt(ast.Target(frozen, NOWHERE), NOWHERE)
    yield from layer_statements(program.layers)
    for kind in (_placements, _residency):
        for names, places in _alike((group.name, tuple(kind(group))) for group in program.weights):
            for place in places:
                yield replace(place, target=_target(*names))
    yield from _lines(program)
    yield from _steps(program)
    yield from (ast.BudgetStmt(one.amount, one.unit, NOWHERE) for one in program.budgets)
    yield from (ast.ClaimStmt(one.condition, NOWHERE) for one in program.claims)
    yield from (ast.ExpectStmt(one.verdict, one.code, one.weights, NOWHERE) for one in program.expectations)


def _work(program: Program) -> Iterator[ast.Statement]:
    work = program.work
    for dim, splits in groupby(work.splits, key=lambda split: split.dim):
        yield ast.SplitStmt(dim, refs(tuple(split.axis for split in splits)), NOWHERE)
    if work.microbatches != number(1):
        yield ast.MicrobatchesStmt(work.microbatches, NOWHERE)
    yield ast.TokensStmt(work.tokens_even, NOWHERE)
    yield ast.ObjectiveStmt(work.objective, NOWHERE)
    for feed in work.feeds:
        yield ast.FeedStmt(feed.kind, (_ref((feed.axis,)),), NOWHERE)
    for loss in work.losses:
        if loss.everywhere:
            yield ast.LossStmt(loss.name, "global", (), False, NOWHERE)
            continue
        scope: Literal["local", "over", "sum"] = "sum"
        if loss.mean:
            scope = "over" if loss.over or loss.microbatches else "local"
        yield ast.LossStmt(loss.name, scope, refs(loss.over), loss.microbatches, NOWHERE)


def _ref(axes: Axes) -> ast.AxisRef:
    return ast.AxisRef(axes, NOWHERE)


def _target(*names: str) -> ast.Target:
    return ast.Target(names, NOWHERE)


# --- weights and their states -----------------------------------------------------------------


def _declaration(group: Weights) -> ast.WeightsStmt:
    props: list[ast.WeightsProp] = []
    if group.size is not None:
        props.append(ast.SizeProp(group.size, NOWHERE))
    if group.layers is not None:
        props.append(ast.LayersProp(group.layers, NOWHERE))
    if group.dims:
        props.append(ast.DimsProp(group.dims, NOWHERE))
    props.append(ast.KindProp(group.kind, NOWHERE))
    if group.uses is not None:
        stages: list[Literal["first", "last"]] = []
        if group.uses.first:
            stages.append("first")
        if group.uses.last:
            stages.append("last")
        props.append(ast.UsedOnProp(tuple(stages), _ref((group.uses.axis,)), NOWHERE))
    if group.routed:
        props.append(ast.RoutedProp(_ref(group.routed), NOWHERE))
    return ast.WeightsStmt(group.name, tuple(props), NOWHERE)


def _layouts(group: Weights) -> dict[str, Layout]:
    # Activations that follow from the operations of a block are derived again.
    cuts = tuple(cut for cut in group.activations.cuts if cut.origin.stated)
    activations = replace(group.activations, cuts=cuts)
    return dict(zip(STATES, (group.params, group.optimizer_state, group.gradients, activations), strict=True))


def _placements(group: Weights) -> Iterator[ast.PlaceStmt]:
    """One statement per product of axes that cuts anything."""
    layouts = _layouts(group)
    for products, states in _orders(layouts):
        for axes in products:
            yield _cut(group, axes, {state: layouts[state] for state in states})


def _residency(group: Weights) -> Iterator[ast.PlaceStmt]:
    """What lies on the host, what is recomputed, and when gathered params are dropped."""
    layouts = _layouts(group)
    hosted = tuple(_entry(state, "R", True) for state, layout in layouts.items() if layout.host is not None)
    recomputed = tuple(
        _entry(state, "M", False) for state, layout in layouts.items() if layout.materialized is not None
    )
    for entries in (hosted, recomputed):
        if entries:
            yield ast.PlaceStmt(_target(), (), entries, None, NOWHERE)
    if group.params.reshard is not None:
        yield ast.PlaceStmt(_target(), (), (), group.params.reshard, NOWHERE)


def _entry(state: str, letter: Literal["R", "M"], host: bool) -> ast.PlaceEntry:
    return ast.PlaceEntry(state, ast.Mode(letter, None, host, NOWHERE), NOWHERE)


def _orders(layouts: dict[str, Layout]) -> list[tuple[list[Axes], list[str]]]:
    """The products to print, in an order that nests every state's cuts as they are: all states
    together where one order does for all, else state by state."""
    merged: list[Axes] = []
    sequences = {state: [cut.axes for cut in layout.cuts] for state, layout in layouts.items()}
    waiting = [list(sequence) for sequence in sequences.values() if sequence]
    while waiting:
        free = [s[0] for s in waiting if not any(s[0] in other[1:] for other in waiting)]
        if not free:
            return [(sequence, [state]) for state, sequence in sequences.items()]
        merged.append(free[0])
        waiting = [rest for s in waiting if (rest := s[1:] if s[0] == free[0] else s)]
    return [(merged, list(sequences))]


def _cut(group: Weights, axes: Axes, layouts: dict[str, Layout]) -> ast.PlaceStmt:
    cuts = {state: next((c for c in layout.cuts if c.axes == axes), None) for state, layout in layouts.items()}
    # A tuple says R of the other states: right only where no other cut of theirs takes part in these axes.
    whole = all(
        cuts[state] is not None or not any(layout.cut(axis) for axis in axes) for state, layout in layouts.items()
    )
    entries = []
    for state, cut in cuts.items():
        if cut is not None:
            mode = ast.Mode(cut.letter, cut.dim, False, NOWHERE, cut.buffer)
        elif whole and len(layouts) == len(STATES) and not group.frozen:
            mode = ast.Mode("R", None, False, NOWHERE)
        else:
            continue
        entries.append(ast.PlaceEntry(state, mode, NOWHERE))
    return ast.PlaceStmt(_target(), (_ref(axes),), tuple(entries), None, NOWHERE)


# --- lines and steps --------------------------------------------------------------------------


def _alike(pairs: Iterable[tuple[str, T]]) -> Iterator[tuple[list[str], T]]:
    """The names of weights of which the same is to be said, with what that is."""
    groups: dict[T, list[str]] = {}
    for name, value in pairs:
        groups.setdefault(value, []).append(name)
    yield from ((names, value) for value, names in groups.items())


def _lines(program: Program) -> Iterator[ast.Statement]:
    trained = [group for group in program.weights if not group.frozen]
    optimizers = list(_alike((group.name, replace(group.optimizer, origin=UNWRITTEN)) for group in trained))
    for names, one in optimizers:
        target, gathers = _target(*names) if len(optimizers) > 1 else None, refs(one.gathers) if one.gathers else None
        yield ast.OptimizerStmt(one.name, _need(one), target, gathers, NOWHERE)
    precisions = list(_alike((group.name, tuple(group.precision.items())) for group in program.weights))
    for names, precision in precisions:
        if precision:
            entries = tuple(ast.PrecisionEntry(state, dtype, NOWHERE) for state, dtype in precision)
            yield ast.PrecisionStmt(_target(*names) if len(precisions) > 1 else None, entries, NOWHERE)
    for names, ops in _alike((group.name, _init(group)) for group in program.weights):
        if ops:
            yield ast.InitStmt(_target(*names), ops, True, NOWHERE)
    for kind in ("same", "different"):
        streams = ((group.name, tuple(s.axis for s in group.random if s.kind == kind)) for group in program.weights)
        for names, axes in _alike(streams):
            if axes:
                yield ast.RandomStmt(_target(*names), refs(axes), kind, NOWHERE)
    if program.clip is not None:
        entries_: tuple[ast.ClipEntry, ...] | None = None
        if program.clip.listed is not None:
            listed = _alike((name, axes) for name, (axes, _) in program.clip.listed.items())
            entries_ = tuple(ast.ClipEntry(_target(*names), refs(axes), NOWHERE) for names, axes in listed)
        yield ast.ClipStmt("global_norm", entries_, NOWHERE)


def _need(one: pg.Optimizer) -> ast.Need | None:
    """What an optimizer is said to need, where that is not what the catalogue has."""
    if OPTIMIZERS.get(one.name) is one.needs and one.block is None:
        return None
    unit = {
        Needs.ELEMENT: "nothing", Needs.BLOCK: "blocks", Needs.ROW: "row", Needs.MATRIX: "matrix", Needs.TENSOR: "whole",
    }[one.needs]  # fmt: skip
    return ast.Need(unit, one.block, one.along, NOWHERE)  # type: ignore[arg-type]


def _init(group: Weights) -> tuple[ast.InitOp, ...]:
    return tuple(
        ast.InitDifferent(refs(op.axes), NOWHERE)
        if op.kind == "different"
        else ast.InitBroadcast(_ref(op.axes), op.root, NOWHERE)
        for op in group.init
    )


def _steps(program: Program) -> Iterator[ast.StepStmt]:
    """Groups with the same operations share one block."""
    for names, body in _alike((step.weights, tuple(map(_op, step.ops))) for step in program.steps):
        yield ast.StepStmt(_target(*names), body, NOWHERE)


def _op(op: Op) -> Op:
    """The operation as a person writes it."""
    if isinstance(op, pg.Loop):
        return replace(op, body=tuple(map(_op, op.body)), origin=UNWRITTEN)
    if isinstance(op, pg.BroadcastParams):
        return replace(op, axes=(_ref(op.axes),), origin=UNWRITTEN)
    if isinstance(op, pg.ScaleLoss) and op.term is not None:
        op = replace(op, factor=substitute(op.factor, {TOKENS: Name(tokens_of(op.term))}))
    return written(op)
