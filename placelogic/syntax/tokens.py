"""Text to tokens. A word is a keyword where the parser can take that keyword, and a name elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator

from lark import Token

from placelogic.syntax.load import Language

UNKNOWN = "UNKNOWN"
"""The type of a piece of text that the language has no use for."""

_CONTINUES = frozenset({"COMMA", "LBRACE", "PLUS", "MINUS", "SLASH", "PERCENT", "COMPARE"})
_BLANK = re.compile(r"[ \t]+|#[^\n]*")
_CODE = re.compile(r"[A-Z]{2}[0-9]{2,3}")
_UNKNOWN = re.compile(r"[0-9][\w.]*|\"[^\n]*|\w+|.")


def tokens(text: str, language: Language, accepted: Callable[[], Container[str]]) -> Iterator[Token]:
    """Every token of the text, without the line ends that end no statement.

    `accepted` is asked before each token which terminals the parser could take now. Never fails:
    what is no token comes out as UNKNOWN."""
    scan, keywords = language.scanner.match, language.keywords
    position, line, line_start = 0, 1, 0
    depth, last = 0, ""
    while position < len(text):
        if blank := _BLANK.match(text, position):
            position = blank.end()
            continue
        found = scan(text, position)
        if found is None:
            found = _UNKNOWN.match(text, position)
            kind = UNKNOWN
        else:
            kind = found.lastgroup or UNKNOWN
        value = found.group() if found else text[position]
        if kind == "NAME":
            now = accepted()
            if value == "S" and text.startswith("S*", position) and "_S_STAR" in now:
                kind, value = "_S_STAR", "S*"
            elif keywords.get(value) in now:
                kind = keywords[value]
            elif "CODE" in now and _CODE.fullmatch(value):
                kind = "CODE"
        end = position + len(value)
        lines = value.count("\n")
        end_start = text.rindex("\n", position, end) + 1 if lines else line_start
        if kind != "_NL" or (depth == 0 and last not in _CONTINUES):
            depth += (kind == "LPAR") - (kind == "RPAR")
            last = kind
            yield Token(kind, value, position, line, position - line_start + 1, line + lines, end - end_start + 1, end)
        position, line, line_start = end, line + lines, end_start
