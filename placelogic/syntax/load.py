"""Loads the grammar, from a cache of the compiled tables where one can be kept."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import lark
from lark import Lark
from lark.lexer import PatternStr
from msgspec import Struct

from placelogic.files import cache_home, private

_PACKAGE = Path(__file__).resolve().parents[1]


class Language(Struct, frozen=True):
    """The grammar, ready to use.

    `keywords`: word -> terminal; `fixed`: terminal -> the one word or sign it stands for;
    `scanner`: one piece of text, whose group name is its terminal (NAME for every word)."""

    parser: Lark
    keywords: Mapping[str, str]
    fixed: Mapping[str, str]
    scanner: re.Pattern[str]


@lru_cache(maxsize=1)
def language() -> Language:
    """The language as the grammar file defines it. Built once per process, never changed after."""
    text = _grammar_file().read_text(encoding="utf-8")
    parser = Lark(
        text,
        start="file",
        parser="lalr",
        lexer="basic",  # unused: tokens.py reads the text, because words are contextual
        propagate_positions=True,
        maybe_placeholders=True,
        cache=_cache_file(text) or False,
    )
    words = {t.name: t.pattern.value for t in parser.terminals if isinstance(t.pattern, PatternStr)}
    # In the order of the grammar, so that messages list alternatives in that order.
    fixed = dict(sorted(words.items(), key=lambda item: text.find(f'"{item[1]}"')))
    keywords = {word: name for name, word in fixed.items() if word[0].isalpha()}
    patterns = {t.name: t.pattern.to_regexp() for t in parser.terminals if t.name not in keywords.values()}
    # `==` before `=`. CODE and the keywords look like names: the state of the parser tells them apart.
    patterns.pop("CODE")
    order = sorted(patterns, key=lambda name: (name in fixed, name))
    scanner = re.compile("|".join(f"(?P<{name}>{patterns[name]})" for name in order))
    return Language(parser, keywords, fixed, scanner)


def _grammar_file() -> Path:
    # An installed wheel carries the grammar inside the package, a checkout beside it.
    installed = _PACKAGE / "grammar" / "placement.lark"
    return installed if installed.exists() else _PACKAGE.parent / "grammar" / "placement.lark"


def _cache_file(text: str) -> str | None:
    """Where the compiled tables of this very grammar are kept, or None where that is not safe:
    they are read with pickle, so nobody else may be able to write there."""
    folder = cache_home()
    if not private(folder):
        return None
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return str(folder / f"grammar-{key}-lark{lark.__version__}-py{sys.version_info[0]}.{sys.version_info[1]}")
