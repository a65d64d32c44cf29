"""What the mesh splits, what loaders feed, how losses are divided, and where stages lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.targets import select
from placelogic.problem import closest
from placelogic.program.catalog import SCHEDULES, SPLITS
from placelogic.program.expr import Expr, Name, Num, number, show
from placelogic.program.program import Feed, LossTerm, Split, Stages, Work
from placelogic.source import NOWHERE
from placelogic.syntax import ast


def read_work(items: Sequence[Item], sizes: Declared, log: Log) -> Work:
    splits = _splits(items, sizes, log)
    objective: Literal["mean", "sum"] = "mean"
    even = True
    for item in _only(items, ast.ObjectiveStmt, "objective", lambda s: s.kind, log):
        objective = item.statement.kind
    for item in _only(items, ast.TokensStmt, "tokens", lambda s: s.even, log):
        even = item.statement.even
    return Work(
        splits,
        _feeds(items, sizes, log),
        _microbatches(items, sizes, log),
        even,
        objective,
        _losses(items, sizes, splits, log),
    )


def _only(items: Sequence[Item], kind: type, word: str, key: Callable[[ast.Statement], object], log: Log) -> list[Item]:
    """The one statement of this kind, as a list of at most one; logs a second that says otherwise."""
    found = select(items, kind)
    for other in found[1:]:
        if key(other.statement) != key(found[0].statement):
            line = found[0].at(found[0].statement.span).line
            log.at(other, "PL309", f"`{word}` is stated differently in line {line}", other.statement.span,
                   "state it once")  # fmt: skip
    return found[:1]


def _splits(items: Sequence[Item], sizes: Declared, log: Log) -> tuple[Split, ...]:
    """One dimension per atom. `tokens` is any share of the tokens: batch and sequence say more."""
    found: dict[str, tuple[Split, Item, ast.SplitStmt]] = {}
    for item in select(items, ast.SplitStmt):
        node = item.statement
        assert isinstance(node, ast.SplitStmt)
        if node.dim not in SPLITS:
            log.at(item, "PL218", f"work is not split along `{node.dim}`", node.span,
                   closest(node.dim, SPLITS) or f"along: {', '.join(SPLITS)}")  # fmt: skip
            continue
        for axis in sizes.axes(node.axes, item):
            new = (Split(axis, node.dim, item.at(node.span)), item, node)
            old = found.setdefault(axis, new)
            if old[0].dim == node.dim or node.dim == "tokens":
                continue
            if old[0].dim == "tokens":
                found[axis] = new
                continue
            log.at(item, "PL310", f"axis `{axis}` splits {old[0].dim} (line {old[0].span.line}) and {node.dim}",
                   node.span, "split each along an axis of its own, or say `tokens over`")  # fmt: skip
    return tuple(split for split, _, _ in found.values())


def _feeds(items: Sequence[Item], sizes: Declared, log: Log) -> tuple[Feed, ...]:
    found: dict[str, Feed] = {}
    for item in select(items, ast.FeedStmt):
        node = item.statement
        assert isinstance(node, ast.FeedStmt)
        for axis in sizes.axes(node.axes, item):
            feed = found.setdefault(axis, Feed(axis, node.kind, item.at(node.span)))
            if feed.kind != node.kind:
                log.at(item, "PL311", f"devices along `{axis}` are fed the same and different samples "
                       f"(line {feed.span.line})", node.span, "keep one of the two lines")  # fmt: skip
    return tuple(found.values())


def _microbatches(items: Sequence[Item], sizes: Declared, log: Log) -> Expr:
    for item in _only(items, ast.MicrobatchesStmt, "microbatches", lambda s: s.count, log):
        node = item.statement
        assert isinstance(node, ast.MicrobatchesStmt)
        count = sizes.expr(node.count, item, node.span)
        sizes.positive(count, "the number of micro-batches", item, node.span)
        return count
    return number(1)


def _losses(items: Sequence[Item], sizes: Declared, splits: tuple[Split, ...], log: Log) -> tuple[LossTerm, ...]:
    terms: dict[str | None, LossTerm] = {}
    for item in select(items, ast.LossStmt):
        node = item.statement
        assert isinstance(node, ast.LossStmt)
        over = sizes.axes(node.axes, item)
        microbatches = node.microbatches
        if node.scope == "global":
            over, microbatches = tuple(split.axis for split in splits), True
        term = LossTerm(node.name, node.scope != "sum", over, microbatches, item.at(node.span),
                        everywhere=node.scope == "global")
        if node.name in terms:
            what = f"loss `{node.name}`" if node.name else "the unnamed loss"
            log.at(item, "PL210", f"{what} is stated twice, first in line {terms[node.name].span.line}", node.span,
                   "state it once, or name a further term: `loss aux mean local`")  # fmt: skip
            continue
        terms[node.name] = term
    return tuple(terms.values()) or (LossTerm(None, True, (), False, NOWHERE),)


def read_stages(items: Sequence[Item], sizes: Declared, splits: Sequence[Split], log: Log) -> Stages | None:
    """The pipeline axis; `1f1b` where no schedule is given."""
    for item in _only(items, ast.StagesStmt, "stages", lambda s: (s.axis.names, s.schedule, s.chunks), log):
        node = item.statement
        assert isinstance(node, ast.StagesStmt)
        axes = sizes.product(node.axis, item)
        schedule = _schedule(node, item, log)
        vee = SCHEDULES.get(schedule, False)
        chunks = number(2 if vee else 1) if node.chunks is None else sizes.expr(node.chunks, item, node.span)
        sizes.positive(chunks, "the number of chunks", item, node.span)
        if vee and not (isinstance(chunks, Num) and chunks.value == 2):
            log.at(item, "PL394", f"{schedule} lays the stages in a V, which gives each device two chunks, not {show(chunks)}",
                   node.span, "write `chunks 2`, or leave it out")  # fmt: skip
        if len(axes) > 1:
            log.at(item, "PL312", "stages lie on one axis of the mesh, not on a product", node.axis.span,
                   "declare the pipeline axis in `mesh`")  # fmt: skip
        split = next((split for split in splits if split.axis in axes), None)
        if split is not None:
            log.at(item, "PL313", f"axis `{split.axis}` splits {split.dim} (line {split.span.line}), so no stages lie on it",
                   node.axis.span, "give the pipeline an axis of its own")  # fmt: skip
        if axes:
            return Stages(axes[0], schedule, chunks, vee, item.at(node.span))
    return None


def _schedule(node: ast.StagesStmt, item: Item, log: Log) -> str:
    match node.schedule:
        case None:
            return "1f1b"
        case Name(name) if name in SCHEDULES:
            return name
        case Name(name):
            log.at(item, "PL215", f"there is no pipeline schedule `{name}`", node.span,
                   closest(name, SCHEDULES) or f"schedules: {', '.join(SCHEDULES)}")  # fmt: skip
        case _:
            log.at(item, "PL215", "a pipeline schedule is a word", node.span, f"schedules: {', '.join(SCHEDULES)}")
    return "1f1b"
