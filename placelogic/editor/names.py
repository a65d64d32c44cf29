"""Every name in a file: what it means there, and which places mean the same thing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from placelogic.program.catalog import KINDS
from placelogic.program.expr import Name
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.builder import RESERVED

Space = Literal["size", "weights", "definition", "spec", "buffer", "loss", "dimension"]
"""Names of one space differ from each other; axes and sizes share one."""


class Occurrence(Struct, frozen=True):
    """A name at one place. `owner`: the definition, spec or step in which it has its meaning; None is the file."""

    space: Space
    name: str
    span: Span
    declares: bool
    owner: Span | None

    @property
    def key(self) -> tuple[Space, str, Span | None]:
        """Equal for all places of one thing."""
        return self.space, self.name, self.owner


def occurrences(file: ast.File) -> tuple[Occurrence, ...]:
    """Every name of the file that can stand in several places, in the order of the text."""
    return tuple(_Meanings(file).read())


def at(found: Sequence[Occurrence], line: int, column: int) -> Occurrence | None:
    """The name at a place; also just behind its last letter."""
    return next((o for o in found if o.span.line == line and o.span.column <= column <= o.span.end_column), None)


Definition = ast.StrategyDef | ast.ModelDef
Holder = Definition | ast.SpecDef


class _Meanings:
    """What the names of a file mean, by what is declared in it, and in each definition and spec of it."""

    def __init__(self, file: ast.File) -> None:
        self.file = file
        self.holders = [s for s in file.statements if isinstance(s, Holder)]
        self.definitions = {s.name: s for s in self.holders if isinstance(s, Definition)}
        self.inside = {holder.span: set(_declared(holder)) for holder in self.holders}
        outer = [s for s in file.statements if not isinstance(s, Holder)]
        every = [*outer, *(s for holder in self.holders for s in holder.body)]
        self.steps = sorted((s for s in every if isinstance(s, ast.StepStmt)), key=_start)
        self.blocks = any(isinstance(s, ast.BlockStmt | ast.ModelStmt) for s in every)
        self.outside = {
            one.text for one in file.identifiers
            if one.role in ("size", "weights", "target", "loss") and _around(self.holders, one) is None
        }  # fmt: skip
        self.kinds = {"*", *KINDS} - {s.name for s in every if isinstance(s, ast.WeightsStmt)}

    def read(self) -> Iterator[Occurrence]:
        called: Definition | None = None
        for one in self.file.identifiers:
            if one.role == "definition":
                called = self.definitions.get(one.text)
            space = self.space(one)
            if one.role == "parameter":
                owner = called.span if called is not None else None
            else:
                owner = self.owner(space, one) if space is not None else None
            if space is not None and one.text not in RESERVED and (one.role != "parameter" or owner is not None):
                end = one.column + len(one.text)
                place = Span(self.file.path, one.line, one.column, one.line, end)
                yield Occurrence(space, one.text, place, one.declares, owner)

    def space(self, one: ast.Identifier) -> Space | None:
        """What kind of thing it is; None for a word of the language."""
        match one.role:
            case "parameter":
                return "size"
            case "target" | "dimension" | "value" if self.local(one):
                return "size"  # a parameter that stands for it
            case "target":
                return None if one.text in self.kinds else "weights"  # weights may bear the name of a kind
            case "crossing":
                return None if self.blocks else "weights"
            case "value":
                return None
            case space:
                return space

    def owner(self, space: Space, one: ast.Identifier) -> Span | None:
        holder = _around(self.holders, one)
        if space == "buffer":
            step = _around(self.steps, one)
            return step.span if step is not None else None
        if isinstance(holder, ast.SpecDef) and space not in ("definition", "spec", "dimension"):
            mine = (space, one.text) in self.inside[holder.span] and one.text not in self.outside
            return holder.span if mine else None
        return holder.span if holder is not None and space == "size" and self.local(one) else None

    def local(self, one: ast.Identifier) -> bool:
        """Whether it is a parameter of the definition around it, or declared in it."""
        holder = _around(self.holders, one)
        return isinstance(holder, Definition) and ("size", one.text) in self.inside[holder.span]


Node = TypeVar("Node", ast.StepStmt, Holder)


def _around(nodes: Sequence[Node], one: ast.Identifier) -> Node | None:
    """The one of these nodes, in the order of the text, that the name stands in."""
    here = (one.line, one.column)
    index = bisect_right(nodes, here, key=_start) - 1
    found = nodes[index] if index >= 0 else None
    return found if found is not None and here < (found.span.end_line, found.span.end_column) else None


def _start(node: Node) -> tuple[int, int]:
    return node.span.line, node.span.column


def _declared(holder: Holder) -> Iterator[tuple[Space, str]]:
    """What a definition or a spec declares."""
    if isinstance(holder, Definition):
        yield from (("size", param.name) for param in holder.params)
    for statement in holder.body:
        match statement:
            case ast.MeshStmt(axes):
                yield from (("size", axis.name) for axis in axes)
            case ast.LetStmt(items):
                yield from (("size", item.name) for item in items)
            case ast.AxisStmt(name) | ast.MicrobatchesStmt(Name(name)):
                yield "size", name
            case ast.WeightsStmt(name):
                yield "weights", name
            case ast.LossStmt(name=str(name)):
                yield "loss", name
