"""What can stand at a place in a text that is still being written."""

from __future__ import annotations

import re

from lark import Token, UnexpectedToken
from msgspec import Struct

from placelogic.syntax.load import language
from placelogic.syntax.parse import normalised
from placelogic.syntax.tokens import UNKNOWN, tokens

MAX_SKIPPED = 40
"""Lines with errors that are left out before the place, at most."""

_WORD = re.compile(r"[A-Za-z0-9_]*\Z")


class Cursor(Struct, frozen=True):
    """`words`: the words of the language that can stand here. `name`: whether a name can. `before`: what is written
    of the statement or entry so far; `keywords`: the words of the language in it, the last one last. `opened`: what
    stands before the brace around it, if there is one. `depth`: of parentheses. `typed`: the beginning of the word."""

    words: tuple[str, ...]
    name: bool
    before: tuple[str, ...]
    keywords: tuple[str, ...]
    opened: tuple[str, ...]
    depth: int
    typed: str


def cursor(text: str, line: int, column: int) -> Cursor | None:
    """What can stand at this place (both from 1). Lines before it that have errors are left out; None in a
    comment, in a string, and where the line itself has an error before the place."""
    lines = normalised(text).split("\n")[:line]
    if len(lines) < line:
        return None
    lines[-1] = lines[-1][: column - 1]
    if "#" in lines[-1] or lines[-1].count('"') % 2:
        return None
    typed = _WORD.search(lines[-1])[0]  # type: ignore[index]
    lines[-1] = lines[-1][: len(lines[-1]) - len(typed)]
    for _ in range(MAX_SKIPPED):
        found = _read("\n".join(lines))
        if not isinstance(found, int):
            return _cursor(*found, typed)
        if found >= line:
            return None
        lines[found - 1] = ""
    return None


def _read(text: str) -> tuple[list[Token], frozenset[str]] | int:
    """The tokens, and what can follow them; or the line of the first error."""
    known = language()
    parser = known.parser.parse_interactive()
    seen: list[Token] = []
    for token in tokens(text, known, parser.choices):
        try:
            if token.type == UNKNOWN:
                return token.line or 1
            parser.feed_token(token)
        except UnexpectedToken:
            # The end of a line: it is the line before that lacks something.
            return seen[-1].line if token.type == "_NL" and seen else token.line or 1
        seen.append(token)
    return seen, frozenset(parser.accepts())


def _cursor(seen: list[Token], accepted: frozenset[str], typed: str) -> Cursor:
    known = language()
    words = tuple(word for word, name in known.keywords.items() if name in accepted)
    start, depth = len(seen), 0
    while start and seen[start - 1].type not in ("_NL", "LBRACE", "RBRACE"):
        start -= 1
        depth += (seen[start].type == "LPAR") - (seen[start].type == "RPAR")
    statement = seen[start:]
    keywords = tuple(str(token) for token in statement if token.type in known.fixed and str(token)[0].isalpha())
    if "_S_STAR" in accepted:
        words = (*words, "S*")
    return Cursor(
        words,
        "NAME" in accepted,
        tuple(map(str, statement)),
        keywords,
        _opened(seen),
        depth,
        typed,
    )


def _opened(seen: list[Token]) -> tuple[str, ...]:
    """The beginning of the statement whose brace is still open, innermost."""
    stack: list[int] = []
    for index, token in enumerate(seen):
        if token.type == "LBRACE":
            stack.append(index)
        elif token.type == "RBRACE" and stack:
            stack.pop()
    if not stack:
        return ()
    start = stack[-1]
    while start and seen[start - 1].type not in ("_NL", "LBRACE", "RBRACE"):
        start -= 1
    return tuple(str(token) for token in seen[start : stack[-1]])
