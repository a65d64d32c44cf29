"""JSON as configuration files have it: with comments and trailing commas, and with the place of every value.

DeepSpeed reads its file with hjson (deepspeed/runtime/config.py), and others accept comments as well."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken
from lark.tree import Meta

from placelogic.frontends.values import MAX_DIGITS, Count, Value
from placelogic.problem import Problem, SpecError
from placelogic.source import Span

_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}


def read_json(text: str, path: str) -> Value:
    """The value of a JSON text. Raises SpecError: PL500 with the place of what is wrong, PL502 beyond the bounds."""
    return _value(_tree(text, path), path)


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    text = (Path(__file__).parent / "json.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", propagate_positions=True)


def _tree(text: str, path: str) -> Tree:
    parser, count, depth = _grammar().parse_interactive(text), Count(path), 0
    try:
        for token in parser.lexer_thread.lex(parser.parser_state):
            span, value = _span(token, path), "NUMBER" in parser.choices()
            if value and token.type not in ("RBRACE", "RSQB"):
                count.one(span, depth)
            if token.type == "STRING" or value and token.type in ("NUMBER", "WORD"):
                _scalar(token, span)  # what is wrong with it comes before what is wrong behind it
            depth += (token.type in ("LBRACE", "LSQB")) - (token.type in ("RBRACE", "RSQB"))
            parser.feed_token(token)
        return parser.feed_eof()
    except (UnexpectedToken, UnexpectedCharacters) as error:
        end = not isinstance(error, UnexpectedCharacters) and error.token.type == "$END"
        lines = text.split("\n")
        line, column = (len(lines), len(lines[-1]) + 1) if end else (error.line, error.column)
        span = Span(path, line, column, line, column + 1)
        raise SpecError(Problem("PL500", _expected(parser.accepts()), span)) from None


def _expected(choices: Collection[str]) -> str:
    """What can stand where something else stands."""
    if "COLON" in choices:
        return "a colon is expected here"
    if "COMMA" in choices:
        return f"a comma or `{'}' if 'RBRACE' in choices else ']'}` is expected here"
    if "$END" in choices:
        return "nothing may follow the end of the value"
    return "a value is expected here" if "NUMBER" in choices else "a name in double quotes, or `}`, is expected here"


def _value(tree: Tree, path: str, key: Span | None = None) -> Value:
    span = _span(tree.meta, path)
    if tree.data == "scalar":
        return Value(_scalar(tree.children[0], span), span, key)
    if tree.data == "array":
        return Value(tuple(_value(child, path) for child in tree.children), span, key)
    found: dict[str, Value] = {}
    for pair in tree.children:
        token, child = pair.children
        place = _span(token, path)
        name = _string(token, place)
        if name in found:
            message = f"`{name}` is given twice, first in line {found[name].span.line}"
            raise SpecError(Problem("PL500", message, place, "delete one of them"))
        found[name] = _value(child, path, place)
    return Value(found, span, key)


def _scalar(token: Token, span: Span) -> None | bool | int | float | str:
    if token.type == "STRING":
        return _string(token, span)
    if token.type == "NUMBER":
        return _number(token, span)
    if token in _WORDS:
        return _WORDS[token]
    hint = f'write "{token}" if it is text, or fill in the value of the template'
    raise SpecError(Problem("PL500", f"`{token}` is no value of JSON", span, hint))


def _string(token: Token, span: Span) -> str:
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        raise SpecError(Problem("PL500", "this text has an escape that JSON does not know", span)) from None


def _number(token: Token, span: Span) -> int | float:
    if len(token) > MAX_DIGITS:
        raise SpecError(Problem("PL500", "this number is too long", span))
    if not _NUMBER.fullmatch(token):
        raise SpecError(Problem("PL500", "a value is expected here", span))
    return int(token) if token.lstrip("-").isdigit() else float(token)


def _span(at: Token | Meta, path: str) -> Span:
    return Span(path, at.line, at.column, at.end_line, at.end_column)
