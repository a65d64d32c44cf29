"""The TextMate grammar and the Pygments lexer, against what the parser says of every example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, String

from placelogic.editor import highlight
from placelogic.editor.lexer import PlacementLexer
from placelogic.syntax.load import language
from placelogic.syntax.parse import normalised, token_tree
from placelogic.syntax.read import read_source

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [*(ROOT / "examples").glob("*.place"), *(ROOT / "placelogic" / "std").glob("*.place"),
     *(ROOT / "tests" / "verdicts" / "cases").glob("*.place")]
)  # fmt: skip
GRAMMAR = ROOT / "placelogic" / "editor" / "placement.tmLanguage.json"


def test_the_words_are_those_of_the_grammar() -> None:
    listed = [
        *highlight.STATEMENTS, *highlight.OPERATIONS, *highlight.PROPERTIES, *highlight.MODES, *highlight.LETTERS,
        *highlight.JOINING, *highlight.VALUES, *highlight.UNITS,
    ]  # fmt: skip
    assert len(listed) == len(set(listed))
    assert set(listed) | {"S*"} == set(language().keywords)


def test_the_file_is_up_to_date() -> None:
    assert GRAMMAR.read_text(encoding="utf-8") == highlight.textmate_text(), "python scripts/highlighting.py writes it"


def spelled(path: Path) -> list[tuple[int, int, str, str]]:
    """Line, column, text, and what the parser takes it for: word, letter, name, number, string, other."""
    source = normalised(read_source(path))
    tokens, _ = token_tree(source, str(path))
    known = language()
    kinds = {"NAME": "name", "CODE": "code", "WORD": "name", "INT": "number", "DECIMAL": "number", "STRING": "string"}
    found = []
    for token in tokens:
        if token.type == "_NL":
            continue
        kind = kinds.get(token.type)
        if kind is None:
            kind = "other" if not str(token)[0].isalpha() else "letter" if len(str(token).rstrip("*")) == 1 else "word"
        assert kind != "word" or str(token) in known.keywords
        found.append((token.line or 0, token.column or 0, str(token), kind))
    return found


AMBIGUOUS = set(language().keywords)
"""Names spelled like a word of the language may be taken for it."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_pygments(path: Path) -> None:
    source = normalised(read_source(path))
    taken: dict[tuple[int, int], tuple[Any, str]] = {}
    for index, kind, value in PlacementLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(source):
        start = source.rfind("\n", 0, index) + 1
        taken[source.count("\n", 0, index) + 1, index - start + 1] = (kind, value)
        assert kind is not Error
    for line, column, text, sort in spelled(path):
        kind, value = taken.get((line, column), (None, ""))
        if text == "S*" or sort == "other":
            continue
        assert value == text, (line, text)
        match sort:
            case "word":
                assert kind in Keyword or kind in Name.Builtin or kind in Name.Attribute or kind is Name.Class, (
                    line,
                    text,
                )
            case "letter":
                assert kind in Keyword, (line, text)
            case "name":
                assert kind in Name or text in AMBIGUOUS, (line, text)
                assert text in AMBIGUOUS or kind not in (Name.Builtin, Name.Attribute)
            case "number":
                assert kind in Number
            case "string":
                assert kind in String
    comments = "".join(value for kind, value in taken.values() if kind in Comment)
    assert comments == "".join(re.findall(r"#[^\n]*", source))


def test_pygments_knows_the_lexer() -> None:
    from importlib.metadata import entry_points

    found = [point for point in entry_points(group="pygments.lexers") if point.name == "placement"]
    if found:  # not where the package is used from a folder without being installed
        assert isinstance(get_lexer_by_name("placement"), PlacementLexer)
    assert PlacementLexer.filenames == ["*.place"]


def test_pygments_keeps_the_text() -> None:
    text = 'mesh a # x\nplace * over a = (S*, O(S), R, R)\nimport "b"\nbudget 80 GiB\n§\n'
    found = list(PlacementLexer().get_tokens(text))
    assert "".join(value for _, value in found) == text
    assert ("S*", "O", "S", "R", "R") == tuple(value for kind, value in found if kind in Keyword.Constant)
    assert (Operator, "=") in found


# --- TextMate -----------------------------------------------------------------------------------


class TextMate:
    """As much of TextMate as the grammar needs: the first pattern that matches leftmost; begin and end; captures."""

    def __init__(self, grammar: dict[str, Any]) -> None:
        self.grammar = grammar

    def rules(self, patterns: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for pattern in patterns:
            if "include" in pattern:
                yield from self.rules(self.grammar["repository"][pattern["include"][1:]]["patterns"])
            else:
                yield pattern

    def line(self, text: str) -> list[tuple[int, int, str]]:
        """Start, end and scope of every stretch of a line that has one."""
        found: list[tuple[int, int, str]] = []
        stack: list[dict[str, Any]] = [{"patterns": self.grammar["patterns"], "end": r"(?!)"}]
        at = 0
        while at <= len(text):
            candidates = [(re.compile(stack[-1]["end"]).search(text, at), None)]
            for rule in self.rules(stack[-1]["patterns"]):
                candidates.append((re.compile(rule.get("match") or rule["begin"]).search(text, at), rule))
            hits = [(match.start(), order, match, rule) for order, (match, rule) in enumerate(candidates) if match]
            if not hits:
                break
            _, _, match, rule = min(hits, key=lambda hit: hit[:2])
            if rule is None:
                stack.pop()
            else:
                found += self.scopes(match, rule)
                if "begin" in rule:
                    stack.append(rule)
            at = match.end() if match.end() > match.start() or rule is None and len(stack) else match.end() + 1
            if match.end() == len(text) and match.start() == match.end():
                break
        return found

    @staticmethod
    def scopes(match: re.Match[str], rule: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
        if "match" in rule and "name" in rule:
            yield match.start(), match.end(), rule["name"]
        for number, capture in {**rule.get("captures", {}), **rule.get("beginCaptures", {})}.items():
            yield match.start(int(number)), match.end(int(number)), capture["name"]


SCOPES = {
    "word": ("keyword.", "support.function", "variable.parameter", "constant.language", "entity.name.type"),
    "letter": ("constant.language.mode", "keyword.other.unit"),
    "name": ("variable.other", "entity.name", "constant.other.schedule"),
    "number": ("constant.numeric",),
    "code": ("constant.other.code",),
    "string": ("string.quoted",),
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_textmate(path: Path) -> None:
    engine = TextMate(json.loads(GRAMMAR.read_text(encoding="utf-8")))
    lines = [engine.line(line) for line in normalised(read_source(path)).split("\n")]
    for line, column, text, sort in spelled(path):
        scope = next(
            (s for start, end, s in lines[line - 1] if (start, end) == (column - 1, column - 1 + len(text))), ""
        )
        if sort == "other":
            continue
        right = scope.startswith(SCOPES[sort]) or sort == "name" and text in AMBIGUOUS
        assert right, (path.name, line, text, sort, scope)


def test_textmate_comments_and_letters() -> None:
    engine = TextMate(highlight.textmate())
    (comment,) = engine.line("# mesh a = 1")
    assert comment == (0, 12, "comment.line.number-sign.placement")
    scopes = {start: scope for start, _, scope in engine.line("microbatches M")}
    assert scopes[13] == "variable.other.placement"
    scopes = {start: scope for start, _, scope in engine.line("place * over M = (S*, O(S), R, M)  # R")}
    assert scopes[13] == "variable.other.placement"
    assert [start for start, scope in scopes.items() if "mode" in scope] == [18, 22, 24, 28, 31]
