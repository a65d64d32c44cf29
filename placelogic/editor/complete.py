"""What can be written at a place: the words of the language there, and the names that mean something there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from placelogic.editor.text import Text
from placelogic.program import catalog
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.cursor import Cursor, cursor

Sort = Literal[
    "word", "axis", "size", "weights", "kind", "strategy", "model", "dimension", "value", "code", "parameter"
]


class Choice(Struct, frozen=True):
    """`detail`: a few words beside it."""

    text: str
    sort: Sort
    detail: str = ""


_AFTER: dict[str, tuple[Sort, ...]] = {
    "over": ("axis",), "of": ("axis",), "batch": ("axis",),
    "sync": ("weights", "kind"), "scale": ("weights", "kind"), "step": ("weights", "kind"), "init": ("weights", "kind"),
    "freeze": ("weights", "kind"), "random": ("weights", "kind"), "place": ("weights", "kind"), "for": ("weights", "kind"),
    "use": ("strategy",), "model": ("model",), "on": ("dimension",), "kind": ("kind",),
    "by": ("size", "axis"), "size": ("size",), "layers": ("size",), "assume": ("size", "axis"), "microbatches": ("size",),
    "gradient_accumulation": ("size",), "budget": ("size",), "chunks": ("size",), "claim": ("size",),
    "broadcast": ("axis",), "routed": ("axis",), "along": ("dimension",),
}  # fmt: skip
"""What a name means after the last word of the language before it."""

_VALUES: dict[str, Iterable[str]] = {
    "optimizer": catalog.OPTIMIZERS,
    "schedule": catalog.SCHEDULES,
    "clip": ("global_norm",),
    "reshard_after_forward": ("true", "false"),
}

_DETAILS = {
    "R": "replicated: every device holds all", "S": "sharded", "S*": "gathered: sharded, gathered on use",
    "M": "materialized: recomputed when needed", "O": "offloaded: on the host",
    "replicated": "R: every device holds all", "sharded": "S", "gathered": "S*: sharded, gathered on use",
    "materialized": "M: recomputed when needed", "offloaded": "O: on the host",
}  # fmt: skip


def choices(text: Text, line: int, column: int) -> tuple[Choice, ...]:
    """What can begin with what is typed at this place (both from 1), names first."""
    here = cursor(text.text, line, column)
    if here is None:
        return ()
    found = [*(_names(here, text) if here.name else ()), *_words(here)]
    fits = dict.fromkeys(choice for choice in found if choice.text.lower().startswith(here.typed.lower()))
    return tuple(sorted(fits, key=lambda choice: not choice.text.startswith(here.typed)))


def _words(here: Cursor) -> Iterator[Choice]:
    from placelogic.syntax.phrases import EXAMPLES

    for word in here.words:
        example = EXAMPLES.get(word, "")
        yield Choice(word, "word", _DETAILS.get(word) or example)


def _names(here: Cursor, text: Text) -> Iterator[Choice]:
    last = here.keywords[-1] if here.keywords else ""
    block = here.opened[:1]
    if block == ("precision",):
        yield from (
            Choice(name, "value") for name in (catalog.DTYPE_BYTES if here.before else catalog.PRECISION_STATES)
        )
    elif block == ("model",) and ")" not in here.opened:  # a use: a definition has parentheses
        yield from _of(("size",), text) if here.before else _parameters(here.opened[1], text)
    elif last == "use" and here.depth:
        yield from _arguments(here, text)
    elif here.before[:1] == ("expect",):
        from placelogic.explain.entries import codes, entry

        yield from (Choice(code, "code", entry(code).title) for code in codes() if code[:2] in ("GI", "SC", "FW", "CC"))
        yield from _of(("weights",), text)
    elif last in _VALUES:
        yield from (Choice(value, "value") for value in _VALUES[last])
    elif last == "axis":
        yield from _of(("axis",), text) if "=" in here.before else ()
    elif last in ("let", "mesh"):
        fresh = here.before[-1] in (last, ",")  # a name is being declared
        yield from () if fresh else _of(("size",), text)
    elif last == "scale" and here.before[-1] != "scale":
        return
    elif last in _AFTER:
        yield from _of(_AFTER[last], text)


def _of(sorts: Iterable[Sort], text: Text) -> Iterator[Choice]:
    for sort in sorts:
        match sort:
            case "axis" | "size" | "weights":
                yield from (Choice(name, sort, detail) for name, detail in details(text, sort).items())
            case "kind":
                yield from (Choice(name, "kind", f"all weights of kind {name}") for name in catalog.KINDS)
            case "strategy" | "model":
                yield from _definitions(sort, text)
            case "dimension":
                names = {
                    name
                    for group in groups(text)
                    for p in group.props
                    if isinstance(p, ast.DimsProp)
                    for name in p.names
                }
                known = [*catalog.STATE_DIMS, *catalog.ACTIVATION_DIMS, *sorted(names)]
                yield from (Choice(name, "dimension") for name in dict.fromkeys(known))


def _definitions(sort: Literal["strategy", "model"], text: Text) -> Iterator[Choice]:
    kind = ast.StrategyDef if sort == "strategy" else ast.ModelDef
    for name in dict.fromkeys(text.scope.names(kind)):
        definition = text.scope.find(name)
        if definition is not None:
            yield Choice(name, sort, signature(definition.node))


def signature(node: ast.StrategyDef | ast.ModelDef) -> str:
    """`fsdp(d, reshard_after_forward = true)`."""
    from placelogic.program.expr import show

    params = (f"{p.name} = {show(p.default)}" if p.default is not None else p.name for p in node.params)
    return f"{node.name}({', '.join(params)})"


def _arguments(here: Cursor, text: Text) -> Iterator[Choice]:
    """Axes, and the parameters of the strategy that is being called."""
    yield from _of(("axis",), text)
    opened = max(index for index, word in enumerate(here.before) if word == "(")
    if here.before[-1] == "=":
        yield from _of(("size",), text)
        yield from (Choice(value, "value") for value in (*catalog.SCHEDULES, "true", "false"))
    elif opened:
        for choice in _parameters(here.before[opened - 1], text):
            yield Choice(f"{choice.text} = ", "parameter", choice.detail)


def _parameters(name: str, text: Text) -> Iterator[Choice]:
    definition = text.scope.find(name)
    if definition is not None:
        yield from (Choice(param.name, "parameter", signature(definition.node)) for param in definition.node.params)


class Declared(Struct, frozen=True):
    """What is known of a name that a file can use. `span`: the statement, or its part, that declares it."""

    name: str
    sort: Sort
    detail: str
    span: Span


def declared(text: Text) -> Iterator[Declared]:
    """Axes, sizes and weights of the file, of those that it imports, and of the models that it uses."""
    from placelogic.program.expr import Name, show

    sizes: set[str] = set()
    for statement in text.statements:
        match statement:
            case ast.MeshStmt(axes):
                for axis in axes:
                    detail = f"axis of size {show(axis.size)}" if axis.size is not None else "axis"
                    yield Declared(axis.name, "axis", detail, axis.span)
            case ast.AxisStmt(name, factors, span):
                yield Declared(name, "axis", f"axis = {' * '.join(factors.names)}", span)
            case ast.LetStmt(items):
                sizes.update(item.name for item in items)
                for item in items:
                    detail = f"= {show(item.value)}" if item.value is not None else "any size"
                    yield Declared(item.name, "size", detail, item.span)
            case ast.MicrobatchesStmt(Name(name), span) if name not in sizes:
                yield Declared(name, "size", "the number of micro-batches", span)
    for group in groups(text):
        kind = next((prop.name for prop in group.props if isinstance(prop, ast.KindProp)), "matrix")
        yield Declared(group.name, "weights", f"weights, kind {kind}", group.span)


def details(text: Text, sort: Sort) -> dict[str, str]:
    """The declared names of one sort, with what is known of each."""
    return {one.name: one.detail for one in declared(text) if one.sort == sort}


def groups(text: Text) -> Iterator[ast.WeightsStmt]:
    """The weights of the file, those of the models that it uses included."""
    for statement in text.statements:
        if isinstance(statement, ast.WeightsStmt):
            yield statement
        elif isinstance(statement, ast.ModelStmt):
            definition = text.scope.find(statement.name)
            if definition is not None:
                yield from (s for s in definition.node.body if isinstance(s, ast.WeightsStmt))
