"""Parameters of strategies and models: binding arguments, and substitution by what they stand for.

An argument is an axis, a product of axes, a number, an expression, a word or `none`; all are read
as expressions. Substitution replaces each name once and never looks into the replacement, so names
of the caller and of the definition cannot be mixed up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from placelogic.elaborate.log import Log
from placelogic.problem import closest
from placelogic.program import ops
from placelogic.program.expr import Binary, Call, Compare, Expr, Name, Neg, Num, names, parts, show, substitute
from placelogic.source import Span
from placelogic.syntax import ast

Env = Mapping[str, Expr]
NONE = "none"
Complain = Callable[[str, str, Span, "str | None"], None]


def is_none(expr: Expr | None) -> bool:
    return isinstance(expr, Name) and expr.name == NONE


def mentions_none(expr: Expr) -> bool:
    return any(name.name == NONE for name in names(expr))


def _otherwise(what: str, name: str, known: list[str]) -> str:
    """The way forward for a parameter that is not there, nor one of a similar name."""
    has = f"it has {', '.join(known) or 'none'}"
    if not what.startswith("model") or name.split("_")[0] not in ("tied", "tie", "share", "shared", "untie", "untied"):
        return has
    return (
        f"{has}. Whether embeddings are tied is none of them: gpt has one table, `used on first and last`, the others have "
        "a `head` of their own; for another one declare the weights yourself (docs/language.md, Tied embeddings)"
    )


def bind_arguments(
    what: str, params: tuple[ast.Param, ...], arguments: tuple[ast.Argument, ...], call: Span, log: Log
) -> dict[str, Expr] | None:
    """Which expression each parameter stands for; None when the call is wrong (and logged)."""
    known = [param.name for param in params]
    given: dict[str, Expr] = {}
    before = len(log.problems)
    position = 0
    for argument in arguments:
        if argument.name is None:
            if position >= len(known):
                log.add("PL206", f"{what} takes {_count(len(known), 'argument')}, not more", argument.span,
                        f"it is declared with ({', '.join(known)})")  # fmt: skip
                break
            name = known[position]
            position += 1
        else:
            name = argument.name
        if name not in known:
            log.add("PL205", f"{what} has no parameter `{name}`", argument.span,
                    closest(name, known) or _otherwise(what, name, known))  # fmt: skip
        elif name in given:
            log.add("PL208", f"parameter `{name}` of {what} is given twice", argument.span, "give it once")
        else:
            given[name] = argument.value
    missing = [param.name for param in params if param.default is None and param.name not in given]
    if missing and len(log.problems) == before:
        listed = ", ".join(f"`{name}`" for name in missing)
        log.add("PL207", f"{what} needs {listed}", call, f"it is declared with ({', '.join(known)})")
    if len(log.problems) > before:
        return None
    return _with_defaults(what, params, given, call, log)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _with_defaults(
    what: str, params: tuple[ast.Param, ...], given: dict[str, Expr], call: Span, log: Log
) -> dict[str, Expr] | None:
    """A default may speak of other parameters, in any order, but not in a circle."""
    waiting = {p.name: p.default for p in params if p.name not in given and p.default is not None}
    bound = dict(given)
    while waiting:
        ready = [name for name, value in waiting.items() if not any(n.name in waiting for n in names(value))]
        if not ready:
            log.add("PL302", f"the defaults of {what} refer to each other in a circle", call,
                    f"give {' or '.join(f'`{name}`' for name in waiting)}")  # fmt: skip
            return None
        for name in ready:
            bound[name] = substitute(waiting.pop(name), bound)
            if too_large(bound[name]):
                waiting.clear()
                break
    if any(too_large(value) for value in bound.values()):
        log.add("PL303", f"an argument of {what} expands to more than {MAX_NODES} terms", call, "simplify it")
        return None
    return bound


MAX_NODES = 200
"""In what a parameter or a local name stands for: substitution cannot make expressions explode."""


def too_large(expr: Expr) -> bool:
    """Whether the expression has more than MAX_NODES parts."""
    return sum(1 for _ in islice(parts(expr), MAX_NODES + 1)) > MAX_NODES


def axis_names(expr: Expr) -> tuple[str, ...] | None:
    """The factors of an axis, a product of axes, or `none` (no factors); None for anything else."""
    match expr:
        case Name(name):
            return () if name == NONE else (name,)
        case Binary("*", left, right):
            a, b = axis_names(left), axis_names(right)
            return None if a is None or b is None else a + b
        case _:
            return None


def rebuild(node: Any, env: Env, inside: bool, complain: Complain) -> Any:
    """The same syntax with parameters replaced and axes that are `none` left out; None where
    nothing is left of a statement, operation or property. `inside`: it stands in a definition,
    where weights whose size is `none` vanish too."""
    if isinstance(node, _PLAIN):
        return node
    match node:
        case ast.AxisRef():
            return _axis_ref(node, env, complain)
        case Num() | Name() | Neg() | Binary() | Call():
            return substitute(node, env)
        case Compare(op, left, right, span):
            return Compare(op, substitute(left, env), substitute(right, env), span)
        case tuple():
            parts = [rebuild(part, env, inside, complain) for part in node]
            same = all(new is old for new, old in zip(parts, node))
            return node if same else tuple(part for part in parts if part is not None)
    changed = {}
    for name in node.__struct_fields__:
        old = getattr(node, name)
        new = rebuild(old, env, inside, complain)
        if new is not old:
            changed[name] = new
    if changed.get("axis", node) is None:
        return None
    rebuilt = replace(node, **changed) if changed else node
    return _vanish(_words(rebuilt, env, complain), inside)


_PLAIN = (str, int, Span, ops.Origin, type(None))


def _axis_ref(ref: ast.AxisRef, env: Env, complain: Complain) -> ast.AxisRef | None:
    factors: list[str] = []
    for name in ref.names:
        value = env.get(name, Name(name))
        found = axis_names(value)
        if found is None:
            complain("PL304", f"`{name}` must be an axis here, and stands for `{show(value)}`", ref.span,
                     "pass an axis, a product of axes, or none")  # fmt: skip
            continue
        factors.extend(found)
    return ast.AxisRef(tuple(factors), ref.span) if factors else None


def _words(node: Any, env: Env, complain: Complain) -> Any:
    """Parameters that stand where the language has words: targets, dimensions, optimizers, dtypes."""

    def word(name: str, span: Span) -> str:
        value = env.get(name)
        if value is None:
            return name
        if not isinstance(value, Name):
            complain("PL304", f"`{name}` must be a word here, and stands for `{show(value)}`", span, None)
            return name
        return value.name

    match node:
        case ast.Target(words, span):
            return ast.Target(tuple(w for w in (word(name, span) for name in words) if w != NONE), span)
        case ast.Mode(_, str(dim), _, span):
            new = word(dim, span)
            return replace(node, dim=None if new == NONE else new)
        case ast.PrecisionEntry(_, dtype, span):
            return replace(node, dtype=word(dtype, span))
        case ast.OptimizerStmt():
            return replace(node, name=word(node.name, node.span))
        case ast.KindProp(name, span):
            return replace(node, name=word(name, span))
        case ast.StagesStmt(_, schedule, chunks):
            return replace(
                node,
                schedule=None if is_none(schedule) else schedule,
                chunks=None if is_none(chunks) else chunks,
            )
        case ast.PlaceStmt() if is_none(node.reshard):
            return replace(node, reshard=None)
        case _:
            return node


def _vanish(node: Any, inside: bool) -> Any:
    match node:
        case (
            ast.SplitStmt(axes=())
            | ast.FeedStmt(axes=())
            | ast.SyncStmt(axes=(), microbatches=False)
            | ast.RandomStmt(axes=())
            | ops.Reduce(axes=())
            | ops.GatherGradients(axes=())
            | ops.GatherParams(axes=())
            | ops.BroadcastParams(axes=())
            | ast.InitDifferent(axes=())
            | ast.DimsProp(names=())
            | ast.OverrideStmt(axes=())
            | ast.AttentionStmt(axes=())
            | ast.DrawnStmt(axes=())
            | ast.PositionsStmt(axes=())
            | ast.DimsStmt(sizes=())
        ):
            return None
        case ast.LayersProp(value) if is_none(value):
            return None
        case ast.DimSize(_, size) if inside and size is not None and mentions_none(size):
            return None
        case ast.BlockStmt(_, repeat) if inside and is_none(repeat):
            return None
        case ast.WeightsStmt(_, props) if inside:
            sizes = [prop.value for prop in props if isinstance(prop, ast.SizeProp)]
            return None if any(mentions_none(size) for size in sizes) else node
        case _:
            target = getattr(node, "target", None)
            return None if isinstance(target, ast.Target) and not target.names else node
