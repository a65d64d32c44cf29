"""Strategies and models written out: from a file to one flat list of statements per spec.

Every statement remembers the line of the checked file that brought it in. Names that a definition
declares itself (`let`, `axis`) stay inside it: given a value they are substituted away, an open
`let` gets a name of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from placelogic.elaborate.bind import MAX_NODES, Complain, bind_arguments, rebuild, too_large
from placelogic.elaborate.library import Definition, Scope, Scoped
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.prune import prune
from placelogic.problem import closest
from placelogic.program.expr import Binary, Expr, Name, names, number, substitute
from placelogic.source import Span
from placelogic.syntax import ast

MAX_STATEMENTS = 2_000
"""Statements and uses together: more than any spec needs; stops definitions that multiply."""

MAX_DEPTH = 30

_OUTSIDE_ONLY = (
    ast.MeshStmt,
    ast.ImportStmt,
    ast.StrategyDef,
    ast.ModelDef,
    ast.SpecDef,
    ast.BudgetStmt,
    ast.ClaimStmt,
    ast.ExpectStmt,
)


class _Env(dict[str, Expr]):
    """What names stand for inside a definition. `used`: those that were looked up."""

    def __init__(self, values: Mapping[str, Expr]) -> None:
        super().__init__(values)
        self.used: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.used.add(name)
        return super().get(name, default)


class _Expansion(Struct):
    log: Log
    taken: set[str]
    items: list[Item] = field(default_factory=list)
    stack: list[Definition] = field(default_factory=list)
    count: int = 0

    @property
    def full(self) -> bool:
        return self.count > MAX_STATEMENTS

    def counts(self, place: Span) -> bool:
        """Count one more statement or use; False, and logged once, when there are too many."""
        self.count += 1
        if self.count == MAX_STATEMENTS + 1:
            self.log.add("PL303", f"this expands to more than {MAX_STATEMENTS} statements", place,
                         "use fewer strategies inside strategies")  # fmt: skip
        return not self.full

    def add(self, statement: ast.Statement, use: Span | None, standard: bool) -> None:
        if self.counts(use or statement.span):
            self.items.append(Item(statement, use, standard))

    def statement(
        self, node: ast.Statement, scope: Scope, use: Span | None, standard: bool, gone: Collection[str] = ()
    ) -> None:
        """One statement whose parameters are already replaced. `gone`: weights that are none."""
        match node:
            case ast.UseStmt(calls):
                for call in calls:
                    self.call(call.name, ast.StrategyDef, call.arguments, scope, use or call.span, use, call.span)
            case ast.ModelStmt(name, arguments, span):
                self.call(name, ast.ModelDef, arguments, scope, use or span, use, span)
            case ast.BlockStmt():
                self.add(prune(node, gone), use, standard)
            case _:
                self.add(node, use, standard)

    def call(
        self,
        name: str,
        kind: type[ast.StrategyDef | ast.ModelDef],
        arguments: tuple[ast.Argument, ...],
        scope: Scope,
        use: Span,
        outer_use: Span | None,
        span: Span,
    ) -> None:
        """Write out one strategy or model. `use` is the line in the checked file."""
        word = "strategy" if kind is ast.StrategyDef else "model"
        at = span if outer_use is None else outer_use
        if not self.counts(at):
            return
        definition = scope.find(name)
        if definition is None and any(problem.code.startswith("PL02") for problem in self.log.problems):
            return  # it may be in the file that could not be imported
        if definition is None or not isinstance(definition.node, kind):
            if definition is not None:
                hint: str | None = f"`{name}` is a {'model' if word == 'strategy' else 'strategy'}: write " + (
                    f"model {name} {{ ... }}" if word == "strategy" else f"use {name}(...)"
                )
            else:
                known = scope.names(kind)
                hint = closest(name, known) or f"known: {', '.join(sorted(known))}"
            self.log.add("PL203" if word == "strategy" else "PL204", f"there is no {word} `{name}`", at, hint)
            return
        if any(d.node is definition.node for d in self.stack):
            chain = " -> ".join([d.node.name for d in self.stack] + [name])
            self.log.add(
                "PL302", f"definitions use each other in a circle: {chain}", at, "a definition cannot use itself"
            )
            return
        if len(self.stack) >= MAX_DEPTH:
            self.log.add("PL303", f"definitions are nested more than {MAX_DEPTH} deep", at, "flatten them")
            return
        if outer_use is not None:
            arguments = tuple(ast.Argument(a.name, a.value, outer_use) for a in arguments)
        env = bind_arguments(f"{word} `{name}`", definition.node.params, arguments, at, self.log)
        if env is None:
            return
        self.stack.append(definition)
        self.body(definition, env, use)
        self.stack.pop()

    def body(self, definition: Definition, bound: Mapping[str, Expr], use: Span) -> None:
        node = definition.node
        env = self.locals(node, bound, use)

        def complain(code: str, message: str, span: Span, hint: str | None) -> None:
            self.log.at(Item(node, use), code, message, span, hint)

        written = [(statement, rebuild(statement, env, True, complain)) for statement in self._body(node, complain)]
        gone = {old.name for old, new in written if isinstance(old, ast.WeightsStmt) and new is None}
        for _, statement in written:
            if self.full:
                return
            if statement is not None:
                self.statement(statement, definition.scope, use, definition.standard, gone)
        in_defaults = {name.name for param in node.params if param.default for name in names(param.default)}
        for param in node.params:
            if param.name not in env.used | in_defaults:
                self.log.doubt(Item(node, use), "PL318", f"`{node.name}` takes `{param.name}` and does nothing with it",
                               param.span, "use it in the definition, or leave the parameter out")  # fmt: skip

    def _body(self, node: ast.StrategyDef | ast.ModelDef, complain: Complain) -> Iterator[ast.Statement]:
        """The statements of a definition, without those that only declare its own names."""
        for statement in node.body:
            if isinstance(statement, _OUTSIDE_ONLY):
                complain("PL301", f"{_name(statement)} cannot stand inside `{node.name}`", statement.span,
                         "write it in the file itself")  # fmt: skip
            elif not isinstance(statement, ast.LetStmt | ast.AxisStmt):
                yield statement

    def locals(self, node: ast.StrategyDef | ast.ModelDef, bound: Mapping[str, Expr], use: Span) -> _Env:
        """Parameters, and the names that the definition declares for itself, as what they stand for."""
        waiting: dict[str, Expr] = {}
        result = _Env(bound)
        for name, value, span in _local_names(node):
            if not self.counts(use):
                return result
            if name in result or name in waiting:
                self.log.at(Item(node, use), "PL210", f"`{name}` is declared twice in `{node.name}`", span,
                            "rename one of them")  # fmt: skip
            elif value is None:
                unique = self.unique(f"{node.name}_{name}")
                result[name] = Name(unique, span)
                self.add(ast.LetStmt((ast.LetItem(unique, None, span),), span), use, False)
            else:
                waiting[name] = value
        while waiting:
            ready = [name for name, value in waiting.items() if not any(n.name in waiting for n in names(value))]
            if not ready:
                circle = ", ".join(f"`{name}`" for name in waiting)
                self.log.at(Item(node, use), "PL403", f"{circle} in `{node.name}` are defined by each other",
                            node.span, "give one of them a value of its own")  # fmt: skip
                return result
            for name in ready:
                result[name] = substitute(waiting.pop(name), result)
                if too_large(result[name]):
                    self.log.at(Item(node, use), "PL303", f"`{name}` in `{node.name}` expands to more than {MAX_NODES} "
                                "terms", node.span, "simplify it")  # fmt: skip
                    return result
        return result

    def unique(self, name: str) -> str:
        candidate, n = name, 2
        while candidate in self.taken:
            candidate, n = f"{name}_{n}", n + 1
        self.taken.add(candidate)
        return candidate


def _local_names(node: ast.StrategyDef | ast.ModelDef) -> Iterable[tuple[str, Expr | None, Span]]:
    for statement in node.body:
        match statement:
            case ast.LetStmt(items):
                for item in items:
                    yield item.name, item.value, item.span
            case ast.AxisStmt(name, factors, span):
                yield name, product(factors.names), span


def product(factors: tuple[str, ...]) -> Expr:
    """The names multiplied; 1 without any, as where every factor of an axis is unknown."""
    if not factors:
        return number(1)
    result: Expr = Name(factors[0])
    for name in factors[1:]:
        result = Binary("*", result, Name(name))
    return result


def _name(statement: ast.Statement) -> str:
    match statement:
        case ast.MeshStmt():
            return "`mesh`"
        case ast.ImportStmt():
            return "`import`"
        case ast.StrategyDef() | ast.ModelDef():
            return "a definition"
        case ast.SpecDef():
            return "`spec`"
        case ast.BudgetStmt():
            return "`budget`"
        case ast.ClaimStmt():
            return "`claim`"
        case _:
            return "`expect`"


def expand(statements: Iterable[Scoped], log: Log) -> list[Item]:
    """The statements of one spec, strategies and models written out."""
    statements = list(statements)
    expansion = _Expansion(log, set(_declared(statements)))

    for scoped in statements:

        def complain(code: str, message: str, span: Span, hint: str | None, via: Span | None = scoped.via) -> None:
            log.add(code, message, via or span, hint)

        bound = rebuild(scoped.statement, {}, False, complain)
        if bound is not None:
            expansion.statement(bound, scoped.scope, scoped.via, False)
    return expansion.items


def _declared(statements: Iterable[Scoped]) -> Iterable[str]:
    for scoped in statements:
        match scoped.statement:
            case ast.LetStmt(items):
                yield from (item.name for item in items)
            case ast.MeshStmt(axes):
                yield from (axis.name for axis in axes)
            case ast.AxisStmt(name):
                yield name
            case ast.MicrobatchesStmt(Name(name)):
                yield name
