"""One-line statements about weights: sync, scale, init, random, precision, clip."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.compat import assert_never
from placelogic.elaborate import optimizers
from placelogic.elaborate.beside import Beside
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.stated import Stated, SyncLine
from placelogic.elaborate.steps import StatedStep, StepReader, check_root, without_spans
from placelogic.elaborate.targets import Groups, WeightsGroup, agree, select, settle, speaking, strongest
from placelogic.problem import closest
from placelogic.program.catalog import DTYPE_BYTES, PRECISION_STATES
from placelogic.program.expr import Expr
from placelogic.program.program import Axes, GlobalNorm, InitOp, Origin, RandomStreams
from placelogic.syntax import ast

# --- sync and scale ---------------------------------------------------------------------------


def read_stated(
    items: Sequence[Item], groups: Groups, steps: dict[str, StatedStep], reader: StepReader, log: Log
) -> Stated:
    """What `sync` and `scale` say of trained weights that no step block speaks of."""
    sizes = reader.sizes
    products: dict[int, list[Axes]] = {}
    factors: dict[int, Expr] = {}
    for item in select(items, ast.SyncStmt):
        groups.check(item.statement.target, item, log, "no gradient to combine")
        sizes.axes(item.statement.axes, item)
        products[id(item)] = [sizes.product(ref, item) for ref in item.statement.axes]
    for item in select(items, ast.ScaleStmt):
        groups.check(item.statement.target, item, log, "no gradient to scale")
        factors[id(item)] = reader.factor(item.statement.factor, item, item.statement.span)
    sync: dict[tuple[str, str], SyncLine] = {}
    sync_microbatches: dict[str, SyncLine] = {}
    scales: dict[str, tuple[tuple[Expr, Origin], ...]] = {}
    beside = Beside()
    for group in groups.members:
        if group.frozen:
            continue
        syncs = list(speaking(items, ast.SyncStmt, group, groups))
        scaled = list(speaking(items, ast.ScaleStmt, group, groups))
        if group.name in steps:
            beside.add(group.name, steps[group.name], [*syncs, *scaled])
            continue
        claims: dict[str | None, list[tuple[int, tuple[Item, ast.SyncStmt, Axes]]]] = {}
        for level, item, node in syncs:
            for product in products[id(item)]:
                for atom in product:
                    claims.setdefault(atom, []).append((level, (item, node, product)))
            if node.microbatches:
                claims.setdefault(None, []).append((level, (item, node, ())))
        for atom, found in claims.items():
            over = "micro-batches" if atom is None else atom
            won = settle(found, lambda c: c[1].op, lambda c: c[0], f"`sync` of `{group.name}` over {over}", log)
            assert won is not None
            item, node, product = won
            line_ = SyncLine(node.op, item.origin(node.span))
            if atom is None and node.op == "none":
                log.once(item, "PL345", "micro-batches are added up in the buffer: what can be said is whether they are "
                         "summed or averaged", node.span, "say `by sum` or `by mean` (or write a `step`)")  # fmt: skip
            if atom is None:
                sync_microbatches[group.name] = line_
                continue
            _check_routed(group, atom, item, node, product, log)
            sync[group.name, atom] = line_
        if scaled:
            scales[group.name] = tuple((factors[id(i)], i.origin(n.span)) for _, i, n in scaled)
    beside.tell(log)
    return Stated(sync, sync_microbatches, scales)


def _check_routed(group: WeightsGroup, atom: str, item: Item, node: ast.SyncStmt, product: Axes, log: Log) -> None:
    """Along a routed axis contributions meet by routing: sum and mean say who divides, by 1 or N."""
    routed = [axis for axis in product if axis in group.routed]
    if len(product) > 1 and routed:
        log.once(item, "PL320", f"`{group.name}` is routed over {routed[0]}, a factor of {'*'.join(product)}: what "
               "combining over the product would mean is not clear", node.span,
               f"name the factors: `sync {group.name} over {', '.join(product)} by {node.op}`, or write a `reduce` "
               "in a step")  # fmt: skip
    elif atom in group.routed and node.op == "none":
        log.once(item, "PL321", f"`{group.name}` is routed over {atom}: its contributions meet there by routing, which "
               "`none` cannot undo", node.span,
               f"`sync {group.name} over {atom} by sum` says that nobody divides")  # fmt: skip


# --- start and random streams -----------------------------------------------------------------


def check_lines(items: Sequence[Item], groups: Groups, sizes: Declared, log: Log) -> None:
    """Words and axes of statements that are read per group below, checked once."""
    for item in items:
        match item.statement:
            case ast.InitStmt(target, ops):
                groups.check(target, item, log)
                for op in ops:
                    if isinstance(op, ast.InitBroadcast):
                        axes = sizes.product(op.axis, item)
                        check_root(axes, op.root, sizes, item, op.span, log)
                    elif isinstance(op, ast.InitDifferent):
                        sizes.axes(op.axes, item)
            case ast.RandomStmt(target, axes):
                groups.check(target, item, log)
                sizes.axes(axes, item)
            case ast.OptimizerStmt():
                optimizers.check(item.statement, item, groups, sizes, log)
            case ast.PrecisionStmt(target, entries):
                trains = any(entry.state in _TRAINED_ONLY for entry in entries)
                groups.check(target, item, log, "no gradient, no master copy and no moments" if trains else None)
                _check_entries(entries, item, log)


_TRAINED_ONLY = ("gradients", "master", "moments", "update", "reduce")


def _check_entries(entries: Sequence[ast.PrecisionEntry], item: Item, log: Log) -> None:
    for entry in entries:
        if entry.state not in PRECISION_STATES:
            log.at(item, "PL217", f"there is no precision of `{entry.state}`", entry.span,
                   closest(entry.state, PRECISION_STATES) or f"of: {', '.join(PRECISION_STATES)}")  # fmt: skip
        if entry.dtype not in DTYPE_BYTES and (entry.state, entry.dtype) != ("master", "none"):
            log.at(item, "PL216", f"there is no dtype `{entry.dtype}`", entry.span,
                   closest(entry.dtype, DTYPE_BYTES) or f"dtypes: {', '.join(DTYPE_BYTES)}")  # fmt: skip


def init_of(group: WeightsGroup, items: Sequence[Item], groups: Groups, sizes: Declared, log: Log) -> tuple[InitOp, ...]:
    """Equally specific lines add up, in written order; a broadcast needs a block that says the order."""
    claims = [(level, (item, node)) for level, item, node in speaking(items, ast.InitStmt, group, groups)]
    if not claims:
        return ()
    top = strongest(claims)
    same, different = (
        [(item, op) for item, node in top for op in node.ops if isinstance(op, kind)]
        for kind in (ast.InitSame, ast.InitDifferent)
    )
    if same and different:
        (item, op), (other, first) = same[0], different[0]
        log.once(item, "PL342", f"the copies of `{group.name}` start the same here, and different in line "
                 f"{other.at(first.span).line}", op.span, "keep one, or make one of them more specific")  # fmt: skip
    lines = [(item, node) for item, node in top if _acts(node)]
    for item, node in lines if len(lines) > 1 else ():
        if any(isinstance(op, ast.InitBroadcast) for op in node.ops):
            log.once(item, "PL341", f"whether this broadcast comes before or after the other `init` lines of "
                   f"`{group.name}` is not said", node.span, "write one block: `init x { ... }`, in order")  # fmt: skip
            break
    result: list[InitOp] = []
    for item, node in lines:
        for op in node.ops:
            match op:
                case ast.InitSame():
                    pass
                case ast.InitDifferent(axes, span):
                    result.append(InitOp("different", sizes.axes(axes, item), 0, item.origin(span)))
                case ast.InitBroadcast(axis, root, span):
                    result.append(InitOp("broadcast", sizes.product(axis, item), root, item.origin(span)))
                case _:
                    assert_never(op)
    return tuple(result)


def _acts(node: ast.InitStmt) -> bool:
    return any(not isinstance(op, ast.InitSame) for op in node.ops)


def random_of(group: WeightsGroup, items: Sequence[Item], groups: Groups, sizes: Declared, log: Log) -> tuple[RandomStreams, ...]:
    claims: dict[str, list[tuple[int, tuple[Item, ast.RandomStmt]]]] = {}
    for level, item, node in speaking(items, ast.RandomStmt, group, groups):
        for atom in sizes.axes(node.axes, item):
            claims.setdefault(atom, []).append((level, (item, node)))
    result = []
    for atom in (atom for atom in sizes.atoms if atom in claims):
        found = claims[atom]
        won = settle(found, lambda c: c[1].kind, lambda c: c[0], f"`random` of `{group.name}` over {atom}", log)
        assert won is not None
        result.append(RandomStreams(atom, won[1].kind, won[0].origin(won[1].span)))
    return tuple(result)


# --- precision, clipping ----------------------------------------------------------------------

def precision_of(group: WeightsGroup, items: Sequence[Item], groups: Groups, log: Log) -> dict[str, str]:
    """State -> dtype, most specific per state. `master none` says that there is no master copy."""
    claims: dict[str, list[tuple[int, tuple[Item, str]]]] = {}
    for level, item, node in speaking(items, ast.PrecisionStmt, group, groups):
        for entry in node.entries:
            claims.setdefault(entry.state, []).append((level, (item, entry.dtype)))
    result = {}
    for state in PRECISION_STATES:
        what = f"the precision of {state} of `{group.name}`"
        won = settle(claims.get(state, []), lambda c: c[1], lambda c: c[0], what, log)
        if won is not None and won[1] != "none" and not (group.frozen and state in _TRAINED_ONLY):
            result[state] = won[1]
    return result


def read_clip(items: Sequence[Item], groups: Groups, sizes: Declared, log: Log) -> GlobalNorm | None:
    """The clip statement; with entries, every trained group is listed (over no axis where none matches)."""
    found = select(items, ast.ClipStmt)
    if not found:
        return None
    item, node = found[0], found[0].statement
    for other in found[1:]:
        if without_spans(other.statement) != without_spans(node):
            log.at(other, "PL309", f"`clip` is stated differently in line {item.at(node.span).line}",
                   other.statement.span, "clipping is one event: state it once")  # fmt: skip
    if node.norm != "global_norm":
        log.at(item, "PL222", f"clipping by `{node.norm}` is not modelled", node.span,
               closest(node.norm, ["global_norm"]) or "the global norm is: `clip global_norm`")  # fmt: skip
    origin = item.origin(node.span)
    if node.entries is None:
        return GlobalNorm(None, origin)
    entries: list[tuple[ast.ClipEntry, Axes]] = []
    for entry in node.entries:
        groups.check(entry.target, item, log, "no gradient that could enter the norm")
        entries.append((entry, sizes.axes(entry.axes, item)))
    listed: dict[str, tuple[Axes, Origin]] = {}
    for group in groups.members:
        if group.frozen:
            continue
        claims = [(level, pair) for pair in entries if (level := groups.level(pair[0].target, item, group))]
        if not claims:
            listed[group.name] = ((), origin)
            continue
        top = strongest(claims)
        differ = agree(top, lambda pair: set(pair[1]))
        if differ is not None:
            log.once(item, "PL322", f"two entries sum the squares of `{group.name}` over different axes",
                   differ[1][0].span, "keep one, or make one of them more specific")  # fmt: skip
        listed[group.name] = (top[0][1], item.origin(top[0][0].span))
    return GlobalNorm(listed, origin)
