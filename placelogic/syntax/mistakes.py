"""Syntax errors in plain words: what a person most likely meant, at the place where it went wrong.

Codes: PL101 something else was expected; PL102 a bracket is never closed; PL103 a bracket closes nothing;
PL104 a comma too many; PL105 a semicolon; PL106 `=` for `==` or the reverse; PL107 a character the language
does not use; PL108 a word that begins no statement here; PL109 no number; PL110 a very long expression
(parse.py). The tree builder adds: PL111 a tuple of more than four entries; PL112 given twice; PL113 a
reserved name; PL114 a claim's function elsewhere; PL115 an unclear mesh bound; PL116 an unusable file
name; PL117 a named argument before an unnamed one; PL118 micro-batch 0;
PL120 a cut over no axis. PL119 a very long word (parse.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from lark import Token

from placelogic.problem import Problem
from placelogic.source import Span
from placelogic.syntax.load import Language, language
from placelogic.syntax.phrases import OPERATIONS, example, expected, meant, nearest, noun, unknown_text
from placelogic.syntax.tokens import UNKNOWN

_JOINS = {"COMMA", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "COMPARE"}
_LISTS = {"place", "weights", "precision", "model", "stages"}
_OPENS = {"LPAR": "RPAR", "LBRACE": "RBRACE"}


def mistake(found: Token, accepted: Collection[str], before: Sequence[Token], known: Language, path: str) -> Problem:
    """Explains why `found` (type `$END` at the end) cannot follow `before`, where only `accepted` could."""
    last = before[-1] if before else None
    opened = _open(before)
    if found.type == UNKNOWN:
        code, message, hint = unknown_text(found)
        return Problem(code, message, _span(found, path), hint)
    if problem := _comma(found, before, path) or _bracket(found, accepted, opened, path):
        return problem
    where = _place(found, last, path)
    if found == "==" and "EQUAL" in accepted:
        return Problem("PL106", "`==` compares; a value is given with `=`", where, "write `=`")
    if found.type == "EQUAL" and "COMPARE" in accepted:
        return Problem("PL106", "`=` gives a value; sizes are compared with `==`", where, "write `==`")
    near = nearest(found, accepted, known)
    if problem := _statement(found, accepted, last, opened, near, known, where):
        return problem
    if problem := _misread(accepted, before, known, path):
        return problem
    after = f" after `{last}`" if last is not None and last.type != "_NL" else ""
    message = f"expected {expected(accepted, last, known)}{after}, found {_shown(found)}"
    near = near or _operation(before)
    if near is None and {"COMMA", "RBRACE", "_NL"} <= set(accepted) and leaders(before)[-1] in _LISTS:
        near = "entries are separated by commas or new lines"
    return Problem("PL101", message, where, near or example(leaders(before)))


def _misread(accepted: Collection[str], before: Sequence[Token], known: Language, path: str) -> Problem | None:
    """What stands just before was taken for something that it was not meant to be."""
    if len(before) < 2:
        return None
    earlier, last = before[-2:]
    if last.type == "WORD" and "GB" in accepted:
        return Problem("PL109", f"`{last}` is no number", _span(last, path), "put a space before the unit: `80 GiB`")
    if last.type == "NAME" and known.keywords.get(str(last)) in accepted:
        # `sync over tp`: the weights are missing, so that `over` was read as their name.
        message = f"expected {noun(earlier)} after `{earlier}`, found `{last}`"
        return Problem("PL101", message, _span(last, path), example(leaders(before[:-1])))
    return None


def _comma(found: Token, before: Sequence[Token], path: str) -> Problem | None:
    """A comma that nothing follows, on its line or at all."""
    last = before[-1] if before else None
    if last is not None and last.type == "COMMA" and found.type in ("COMMA", "RBRACE", "RPAR", "_NL", "$END", "LBRACE"):
        return Problem("PL104", "a comma too many", _span(last, path), "delete it, or write what is missing after it")
    # `mesh a, b,` and then a new statement: the comma (or the operator) made the next line part of this one.
    start = len(before)
    while start > 0 and (before[start - 1].line == found.line or before[start - 1].type == "_NL"):
        start -= 1
    first = next((token for token in (*before[start:], found) if token.type != "_NL"), found)
    if start and before[start - 1].type in _JOINS and str(first) in _statement_words():
        joint = before[start - 1]
        message = f"a `{joint}` at the end of the line joins it with the next"
        hint = f"delete it, or write what is missing before `{first}`"
        return Problem("PL104", message, _span(joint, path), hint)
    return None


def _bracket(found: Token, accepted: Collection[str], opened: Sequence[Token], path: str) -> Problem | None:
    inner = opened[-1] if opened else None
    if found.type in _OPENS.values() and (inner is None or _OPENS[inner.type] != found.type):
        if inner is None or inner.type == "LBRACE":
            hint = "delete it" if inner is None else f"the `{inner}` of line {inner.line} is still open"
            return Problem("PL103", f"this `{found}` closes nothing", _span(found, path), hint)
        return _unclosed(inner, f"before the `{found}` of line {found.line}", path)
    if inner is None:
        return None
    if found.type == "$END":
        return _unclosed(inner, "up to the end of the file", path)
    if inner.type == "LPAR" and found.line > inner.line and "RPAR" in accepted:
        return _unclosed(inner, f"before `{found}` in line {found.line}", path)
    return None


def _unclosed(bracket: Token, until: str, path: str) -> Problem:
    closing = ")" if bracket.type == "LPAR" else "}"
    return Problem("PL102", f"this `{bracket}` is not closed {until}", _span(bracket, path), f"add a `{closing}`")


def _statement(found, accepted, last, opened, near: str | None, known: Language, where: Span) -> Problem | None:
    """A word that begins no statement, or begins one where none can begin."""
    if found.type == "_NL" or found.type == "$END":
        return None
    word = str(found)
    fresh = last is None or last.type in ("_NL", "LBRACE", "RBRACE") or last.line < found.line
    if opened and fresh and word in _statement_words():
        hint = f"is a `}}` missing for the `{{` of line {opened[-1].line}?"
        return Problem("PL108", f"`{word}` cannot stand inside this block", where, hint)
    if "MESH" in accepted:
        hint = meant(found) or near or "sizes are declared with `let`, axes with `mesh`, and comments begin with `#`"
        return Problem("PL108", f"{_shown(found)} begins no statement", where, hint)
    if "CROSS_ENTROPY" in accepted:
        words = ", ".join(OPERATIONS)
        return Problem("PL108", f"{_shown(found)} is no operation of a layer", where, near or f"operations: {words}")
    if "ACCUMULATE" in accepted:
        words = expected(accepted, last, known)
        return Problem("PL108", f"{_shown(found)} is no step operation", where, near or f"expected {words}")
    if "_NL" in accepted and word in _statement_words() and near is None:
        message = f"expected the end of the line before `{word}`"
        return Problem("PL101", message, where, "one statement a line: begin a new one")
    return None


def _operation(before: Sequence[Token]) -> str | None:
    """A right line of the operation that is being read, in a block."""
    line = [str(token) for token in before[-1 - next((i for i, t in enumerate(reversed(before)) if t == "="), -1) :]]
    if len(line) > 1 and line[0] == "=" and line[1] in OPERATIONS and "block" in leaders(before):
        return f"for example: `{OPERATIONS[line[1]]}`"
    return None


def _open(before: Sequence[Token]) -> list[Token]:
    """The brackets that are open, the innermost last."""
    stack: list[Token] = []
    for token in before:
        if token.type in _OPENS:
            stack.append(token)
        elif token.type in _OPENS.values() and stack:
            stack.pop()
    return stack


def leaders(before: Sequence[Token]) -> list[str]:
    """The first word of the statement or block entry being read, then of those around it."""
    stack: list[str | None] = [None]
    for token in before:
        if token.type == "LBRACE":
            stack.append(None)
        elif token.type == "RBRACE" and len(stack) > 1:
            stack.pop()
        elif token.type == "_NL":
            stack[-1] = None
        elif stack[-1] is None:
            stack[-1] = str(token)
    return [word for word in reversed(stack) if word is not None]


@lru_cache(maxsize=1)
def _statement_words() -> frozenset[str]:
    known = language()
    return frozenset(known.fixed[name] for name in known.parser.parse_interactive().accepts() if name in known.fixed)


def _shown(token: Token) -> str:
    if token.type == "_NL":
        return "the end of the line"
    if token.type == "$END":
        return "the end of the file"
    return f"`{token}`" if len(token) <= 40 else f"`{token[:37]}...`"


def _span(token: Token, path: str) -> Span:
    return Span(path, token.line, token.column, token.end_line, token.end_column)


def _place(found: Token, last: Token | None, path: str) -> Span:
    """Where `found` stands; the end of a line, and of the file, is just after what was last written."""
    if found.type not in ("_NL", "$END"):
        return _span(found, path)
    if last is None:
        return Span(path, 1, 1, 1, 2)
    return Span(path, last.end_line, last.end_column, last.end_line, last.end_column + 1)
