"""The part of the tree builder that every statement uses: regular rules, sizes, lists of axes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction
from itertools import takewhile

from lark import Token, Transformer
from lark.tree import Meta
from msgspec.structs import replace

from placelogic.problem import Problem
from placelogic.program.catalog import SCHEDULES
from placelogic.program.expr import TOKENS, Binary, Call, Compare, Expr, Name, Neg, Num, tokens_of
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.forms import node_of, words_of
from placelogic.syntax.identifiers import identifiers

RESERVED = ("none", "microbatches", TOKENS)
"""Words with a meaning of their own wherever an axis or a size is expected."""

MAX_DIGITS = 30

_WORDS = {"split_dim", "combination", "average", "likeness", "end", "state", "unit", "verdict", "function_name",
          "attention_word", "attention_way", "reach", "direction", "change", "need_unit"}  # fmt: skip

_DECLARES = {"axis_decl", "axis", "let_item", "param"}
"""Rules that begin with the name of what they declare."""

_UNIQUE = {
    "precision": ("entries", "block"), "weights": ("props", "block"), "model": ("arguments", "block"),
    "used_on": ("stages", "list"), "strategy_def": ("params", "list of parameters"),
    "model_def": ("params", "list of parameters"),
}  # fmt: skip
"""What may stand only once in each of these, and what holds it."""


def _key(entry: object) -> str:
    """What makes an entry the same as another one: its name, the state it is about, or its own words."""
    if isinstance(entry, str):
        return entry
    return getattr(entry, "state", None) or (words_of(entry) if isinstance(entry, ast.WeightsProp) else entry.name)


class BuilderBase(Transformer):
    """`build_RULE` makes the node of one rule; `forms.py` does the regular ones.

    Problems are collected, and a node is made all the same, so that one pass finds them all."""

    def __init__(self, path: str) -> None:
        super().__init__(visit_tokens=False)
        self._path = path
        self._measures: list[Call] = []
        self._problems: list[Problem] = []
        self._identifiers: list[ast.Identifier] = []

    def problems(self) -> list[Problem]:
        """What is wrong, in the order of the text. Call it when the whole tree has been transformed."""
        for call in self._measures:
            message = f"`{call.function}({call.argument})` is no size"
            self._wrong("PL114", message, call.span, "memory and traffic can only be compared in a `claim`")
        return sorted(self._problems, key=lambda problem: (problem.span.line, problem.span.column))

    def __default__(self, rule: str, items: list, meta: Meta):
        if rule in _WORDS:
            return str(items[0])
        self._identifiers += identifiers(rule, items)
        span = self._span(meta)
        if (build := getattr(self, f"build_{rule}", None)) is not None:
            return build(span, *items)
        if rule in _DECLARES:
            self._declared(items[0], self._span(items[0]))
        node = node_of(rule, map(self._plain, items), span)
        if rule in _UNIQUE:
            entries, where = _UNIQUE[rule]
            self._once(((key := _key(one), key, getattr(one, "span", span)) for one in getattr(node, entries)), where)
        return node

    def _plain(self, item):
        """The text of a token; of a number, its value."""
        if not isinstance(item, Token):
            return item
        return int(self._digits(item)) if item.type == "INT" else str(item)

    def _span(self, at: Token | Meta) -> Span:
        if isinstance(at, Meta) and at.empty:
            return Span(self._path, 1, 1, 1, 1)
        return Span(self._path, at.line, at.column, at.end_line, at.end_column)

    def _wrong(self, code: str, message: str, span: Span, hint: str) -> None:
        self._problems.append(Problem(code, message, span, hint))

    def _declared(self, name: str, span: Span) -> str:
        if name in RESERVED:
            message = f"`{name}` has a meaning of its own and cannot be declared"
            self._wrong("PL113", message, span, "choose another name")
        return str(name)

    def _declares(self, name: Name) -> None:
        """This name in an expression, which was read just now, is declared there."""
        start, found = (name.span.line, name.span.column), self._identifiers
        since = takewhile(lambda i: (found[i].line, found[i].column) >= start, reversed(range(len(found))))
        *_, first = (i for i in since if found[i].text == name.name)
        found[first] = found[first]._replace(declares=True)

    def _once(self, found: Iterable[tuple[Hashable, str, Span]], where: str) -> None:
        seen = set()
        for key, text, span in found:
            if key in seen:
                self._wrong("PL112", f"`{text}` is given twice in one {where}", span, "keep one of the two")
            seen.add(key)

    # --- sizes ---

    def _digits(self, text: Token) -> Fraction:
        if len(text) <= MAX_DIGITS:
            return Fraction(text)
        message = f"this number has more than {MAX_DIGITS} digits"
        self._wrong("PL109", message, self._span(text), "no mesh and no model is that large")
        return Fraction(1)

    def build_number(self, span: Span, text: Token) -> Expr:
        return Num(self._digits(text), span)

    def build_name(self, span: Span, text: Token) -> Expr:
        if text.type == "WORD" and text not in SCHEDULES:
            hint = "a name begins with a letter; write all digits of a number, and products with `*`"
            self._wrong("PL109", f"`{text}` is neither a number nor a name", span, hint)
        return Name(str(text), span)

    def build_tokens_of(self, span: Span, what: Token, loss: Token) -> Expr:
        if what != TOKENS:
            self._wrong("PL109", f"`{what} of {loss}` is no size", span, f"`tokens of {loss}` counts the tokens of a loss")
        return Name(tokens_of(str(loss)), span)

    def build_measure(self, span: Span, function: Token, argument: Token) -> Expr:
        self._measures.append(Call(str(function), str(argument), span))
        return self._measures[-1]

    def build_group(self, span: Span, inner: Expr) -> Expr:
        return replace(inner, span=span)

    def build_negation(self, span: Span, minus: Token, operand: Expr) -> Expr:
        return Neg(operand, span)

    def build_expr(self, span: Span, left: Expr, *rest) -> Expr:
        for op, right in zip(rest[0::2], rest[1::2]):
            left = Binary(str(op), left, right, left.span.to(right.span))
        return left

    build_product = build_expr

    def build_chain(self, span: Span, *parts) -> tuple[Compare, ...]:
        links = zip(parts[0::2], parts[1::2], parts[2::2])
        return tuple(Compare(str(op), left, right, left.span.to(right.span)) for left, op, right in links)

    # --- targets and lists of axes ---

    def build_target(self, span: Span, *names: Token) -> ast.Target:
        self._once(((name, name, self._span(name)) for name in names), "list")
        return ast.Target(tuple(map(str, names)), span)

    def build_none(self, span: Span) -> tuple:
        return ()

    def build_axes(self, span: Span, *items) -> tuple[ast.AxisRef, ...]:
        return items if isinstance(items[0], ast.AxisRef) else ()

    def build_shares(self, span: Span, *items) -> tuple[tuple[ast.AxisRef, ...], bool]:
        words = [item for item in items if isinstance(item, Token)]
        self._once(((word, word, self._span(word)) for word in words), "list")
        return tuple(item for item in items if isinstance(item, ast.AxisRef)), bool(words)
