"""Strategies by name, and which of their parameters are axes: read from their files, never listed here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from placelogic.elaborate.bind import axis_names, is_none
from placelogic.elaborate.library import Definition, Reader, Scope, standard, standard_names
from placelogic.elaborate.log import Log
from placelogic.problem import Problem, SpecError, closest
from placelogic.source import Span
from placelogic.syntax import ast


class Strategy(Struct, frozen=True):
    """`axes`: the parameters that stand for axes, in order; `optional`: those of them that may be left out."""

    name: str
    parameters: tuple[str, ...]
    axes: tuple[str, ...]
    optional: frozenset[str]


@cache
def standard_strategies() -> tuple[str, ...]:
    """The strategies of the standard library, in alphabetical order."""
    found = ((name, standard(name)) for name in standard_names("std"))
    return tuple(name for name, one in found if one is not None and isinstance(one.node, ast.StrategyDef))


def scope_of(imports: tuple[str, ...]) -> Scope:
    """What names mean after these files are imported. Raises SpecError when one cannot be read."""
    log, scope = Log(), Scope()
    here = Span("", 1, 1, 1, 1)
    for path in imports:
        if '"' in path or "\n" in path:  # there is no way to write it in a spec
            raise SpecError(Problem("PL020", f"`{path}` cannot be imported: its name has quotes or line ends", here))
    reader = Reader.of("", log)
    reader.statements(tuple(ast.ImportStmt(path, here) for path in imports), reader.root, scope, set())
    if log.problems:
        raise SpecError(*log.problems)
    return scope


def strategy(name: str, scope: Scope, where: Span) -> Strategy:
    """The strategy of this name. Raises SpecError (PL203)."""
    definition = scope.find(name)
    if definition is None or not isinstance(definition.node, ast.StrategyDef):
        known = scope.names(ast.StrategyDef)
        hint = closest(name, known) or f"known: {', '.join(sorted(known))}"
        raise SpecError(Problem("PL203", f"there is no strategy `{name}`", where, hint))
    node = definition.node
    used = _axes(definition, ())
    axes = tuple(param.name for param in node.params if param.name in used)
    optional = frozenset(param.name for param in node.params if param.name in used and param.default is not None)
    return Strategy(name, tuple(param.name for param in node.params), axes, optional)


def _axes(definition: Definition, above: tuple[str, ...]) -> set[str]:
    """The names that stand where the body has an axis, or are handed on as one."""
    node = definition.node
    found = {name for ref in _refs(node.body) for name in ref.names}
    for statement in node.body:
        if isinstance(statement, ast.UseStmt):
            for call in statement.calls:
                inner = definition.scope.find(call.name)
                if inner is None or not isinstance(inner.node, ast.StrategyDef) or call.name in above:
                    continue  # elaboration tells of it
                axes = _axes(inner, (*above, node.name))
                for parameter, value in bound(call, tuple(param.name for param in inner.node.params)):
                    if parameter in axes and not is_none(value):
                        found |= set(axis_names(value) or ())
    return found


def _refs(node: object) -> Iterator[ast.AxisRef]:
    if isinstance(node, ast.AxisRef):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _refs(part)
    elif isinstance(node, Struct):
        for name in node.__struct_fields__:
            yield from _refs(getattr(node, name))


def bound(call: ast.StrategyCall, parameters: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Which parameter each argument is for, as far as there are parameters."""
    positions = iter(parameters)
    for argument in call.arguments:
        name = argument.name or next(positions, None)
        if name is not None:
            yield name, argument.value
