"""Every name in a file, where it is declared and where it is used."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Literal

from placelogic.program import block as bl
from placelogic.program import ops
from placelogic.program.catalog import KINDS
from placelogic.program.expr import Call, Name
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.builder import RESERVED

Space = Literal["size", "weights", "definition", "spec", "buffer", "loss", "dimension"]
"""Names of one space differ from each other; axes and sizes share one."""


@dataclass(frozen=True, slots=True)
class Occurrence:
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


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the text, where it stands."""

    text: str
    span: Span


def words(text: str, path: str) -> tuple[Word, ...]:
    """Every token of a text that parses. Raises SpecError."""
    from placelogic.syntax.parse import token_tree

    tokens, _ = token_tree(text, path)
    return tuple(
        Word(str(t), Span(path, t.line, t.column, t.end_line, t.end_column))  # type: ignore[arg-type]
        for t in tokens
        if t.type != "_NL"
    )


def occurrences(file: ast.File, tokens: Sequence[Word]) -> tuple[Occurrence, ...]:
    """Every name of the file that somebody chose, in the order of the text."""
    found: dict[Span, Occurrence] = {}
    for one in _Reader(file, tokens).read():  # a declaration may hold its name as an expression too
        if one.span not in found or one.declares:
            found[one.span] = one
    return tuple(sorted(found.values(), key=lambda one: (one.span.line, one.span.column)))


def at(found: Sequence[Occurrence], line: int, column: int) -> Occurrence | None:
    """The name at a place; also just behind its last letter."""
    return next(
        (o for o in found if o.span.line == line and o.span.column <= column <= o.span.end_column),
        None,
    )


Holder = ast.StrategyDef | ast.ModelDef | ast.SpecDef


class _Reader:
    def __init__(self, file: ast.File, tokens: Sequence[Word]) -> None:
        self.file = file
        self.tokens = tokens
        self.starts = [(word.span.line, word.span.column) for word in tokens]
        self.definitions = {s.name: s for s in file.statements if isinstance(s, ast.StrategyDef | ast.ModelDef)}
        outer = tuple(s for s in file.statements if not isinstance(s, Holder))
        self.outside = {name for _, name in declared(outer)} | set(_mentioned(outer))
        self.inside = {id(s): set(declared(s.body)) for s in file.statements if isinstance(s, Holder)}
        everything = [name for s in file.statements if isinstance(s, Holder) for name in declared(s.body)]
        own = {name for space, name in [*everything, *declared(outer)] if space == "weights"}
        inner = [s for holder in file.statements if isinstance(holder, Holder) for s in holder.body]
        self.blocks = any(isinstance(s, ast.BlockStmt | ast.ModelStmt) for s in (*file.statements, *inner))
        self.kinds = {"*", *KINDS} - own  # weights may bear the name of a kind
        self.holder: Holder | None = None
        self.step: ast.StepStmt | None = None

    def read(self) -> Iterator[Occurrence]:
        for statement in self.file.statements:
            yield from self.node(statement)

    # --- one place ---

    def within(self, span: Span) -> list[Word]:
        start = bisect_left(self.starts, (span.line, span.column))
        end = bisect_left(self.starts, (span.end_line, span.end_column))
        return list(self.tokens[start:end])

    def owner(self, space: Space, name: str) -> Span | None:
        holder = self.holder
        if space == "buffer":
            return self.step.span if self.step is not None else None
        if holder is None or space in ("definition", "spec", "dimension"):
            return None
        if isinstance(holder, ast.SpecDef):
            mine = ("size" if space == "size" else space, name) in self.inside[id(holder)] and name not in self.outside
            return holder.span if mine else None
        if space == "size" and self.local(name):
            return holder.span
        return None

    def local(self, name: str) -> bool:
        """Whether the name is a parameter of the definition, or declared in it."""
        holder = self.holder
        if not isinstance(holder, ast.StrategyDef | ast.ModelDef):
            return False
        return any(p.name == name for p in holder.params) or ("size", name) in self.inside[id(holder)]

    def one(self, space: Space, word: Word, declares: bool = False) -> Iterator[Occurrence]:
        if word.text not in RESERVED:
            yield Occurrence(space, word.text, word.span, declares, self.owner(space, word.text))

    def named(self, space: Space, span: Span, name: str | None, last: bool = False, declares: bool = False):
        """The first place (or the last) in a stretch that has this name."""
        places = [word for word in self.within(span) if word.text == name]
        if places:
            yield from self.one(space, places[-1 if last else 0], declares)

    # --- the tree ---

    def node(self, node: object) -> Iterator[Occurrence]:
        match node:
            case ast.StrategyDef() | ast.ModelDef():
                yield from self.one("definition", self.within(node.span)[1], True)
                self.holder = node
                for param in node.params:
                    yield from self.named("size", param.span, param.name, declares=True)
            case ast.SpecDef(span=span):
                yield from self.one("spec", self.within(span)[1], True)
                self.holder = node
            case ast.StepStmt():
                self.step = node
            case ast.AxisDecl(name, _, _, span):
                places = [word for word in self.within(span) if word.text == name]
                for index, word in enumerate(places):
                    yield from self.one("size", word, index == 0)
            case ast.LetItem(name, _, span):
                yield from self.named("size", span, name, declares=True)
            case ast.AxisStmt(span=span):
                yield from self.one("size", self.within(span)[1], True)
            case ast.MicrobatchesStmt(Name(name, span)):
                if not self.local(name):
                    yield from self.named("size", span, name, declares=True)
            case ast.WeightsStmt(span=span):
                yield from self.one("weights", self.within(span)[1], True)
            case ast.DimsProp(span=span):
                for word in self.within(span)[1:]:
                    yield from self.one("size" if self.local(word.text) else "dimension", word, True)
            case ast.AxisRef(names, span):
                for word in self.within(span):
                    if word.text in names:
                        yield from self.one("size", word)
            case ast.Target(names, span):
                for word in self.within(span):
                    if word.text in names and word.text not in self.kinds:
                        yield from self.one("size" if self.local(word.text) else "weights", word)
            case ast.Mode(dim=str(dim), span=span):
                yield from self.named("size" if self.local(dim) else "dimension", span, dim, last=True)
            case ast.OptimizerStmt(name=name, span=span) | ast.KindProp(name=name, span=span):
                if self.local(name):
                    yield from self.named("size", span, name, last=isinstance(node, ast.KindProp))
            case ast.PrecisionEntry(dtype=dtype, span=span):
                if self.local(dtype):
                    yield from self.named("size", span, dtype, last=True)
            case ast.StrategyCall(name, _, span):
                yield from self.one("definition", self.within(span)[0])
                yield from self.arguments(name, node.arguments)
            case ast.ModelStmt(name, _, span):
                yield from self.one("definition", self.within(span)[1])
                yield from self.arguments(name, node.arguments)
            case Name(name, span) if span.line:
                yield from self.named("size", span, name)
            case Call(_, argument, span):
                yield from self.named("spec", span, argument, last=True)
            case ast.LossStmt(name=str(name), span=span):
                yield from self.named("loss", span, name, declares=True)
            case ops.ScaleLoss(term=str(term), span=span):
                yield from self.named("loss", span, term)
            case ops.Accumulate(buffer=str(buffer), span=span) | ops.Update(buffer=str(buffer), span=span):
                yield from self.named("buffer", span, buffer, True, isinstance(node, ops.Accumulate))
            case ops.Reduce(buffer=str(), span=span) | ops.Scale(buffer=str(), span=span):
                yield from self.one("buffer", self.within(span)[1])
            case ast.ExpectStmt(weights=str(weights), span=span):
                yield from self.named("weights", span, weights, last=True)
            case (
                bl.Linear(span=span)
                | bl.Bias(span=span)
                | bl.Embedding(span=span)
                | bl.Norm(weights=str(), span=span)
                | bl.Router(span=span)
            ):
                words = self.within(span)
                start = 3 if isinstance(node, bl.Linear) and node.grouped else 2  # a tensor may be called `with`
                yield from self.one("weights", words[[word.text for word in words].index("with", start) + 1])
            case ast.OverrideStmt(block=None, span=span) if not self.blocks:
                yield from self.one("weights", self.within(span)[1])
        yield from self.children(node)
        if isinstance(node, Holder):
            self.holder = None
        if isinstance(node, ast.StepStmt):
            self.step = None

    def children(self, node: object) -> Iterator[Occurrence]:
        if isinstance(node, tuple):
            for part in node:
                yield from self.node(part)
        elif is_dataclass(node) and not isinstance(node, Span):
            for item in fields(node):
                value = getattr(node, item.name)
                if isinstance(value, tuple) or (is_dataclass(value) and not isinstance(value, Span)):
                    yield from self.node(value)

    def arguments(self, name: str, given: Sequence[ast.Argument]) -> Iterator[Occurrence]:
        """The names of parameters, where the definition stands in this file."""
        definition = self.definitions.get(name)
        for argument in given:
            if definition is not None and argument.name is not None:
                word = self.within(argument.span)[0]
                yield Occurrence("size", word.text, word.span, False, definition.span)


def declared(body: Sequence[ast.Statement]) -> Iterator[tuple[Space, str]]:
    """What statements declare, not looking into definitions and specs."""
    for statement in body:
        match statement:
            case ast.MeshStmt(axes):
                yield from (("size", axis.name) for axis in axes)
            case ast.LetStmt(items):
                yield from (("size", item.name) for item in items)
            case ast.AxisStmt(name):
                yield "size", name
            case ast.MicrobatchesStmt(Name(name)):
                yield "size", name
            case ast.WeightsStmt(name):
                yield "weights", name
            case ast.LossStmt(name=str(name)):
                yield "loss", name
            case ast.StrategyDef(name) | ast.ModelDef(name):
                yield "definition", name
            case ast.SpecDef(name):
                yield "spec", name


def _mentioned(node: object) -> Iterator[str]:
    """Every word that stands where a name can."""
    match node:
        case ast.AxisRef(names) | ast.Target(names):
            yield from names
        case Name(name):
            yield name
        case tuple():
            for part in node:
                yield from _mentioned(part)
        case _ if is_dataclass(node) and not isinstance(node, Span):
            for item in fields(node):
                yield from _mentioned(getattr(node, item.name))
