"""Nothing that can be written is ignored: flipping any alternative of the grammar changes the step
program or is refused.

The alternatives come from the grammar itself. One that no pair in `flips.py` flips fails the test.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.derive import derive
from placelogic.problem import SpecError
from placelogic.program import catalog
from placelogic.program.program import Origin
from placelogic.source import Span
from placelogic.syntax.load import language
from placelogic.syntax.parse import parse
from placelogic.syntax.tokens import tokens
from tests.elaborate.flips import ALIKE, BASE, CHANGES, DEALT, FLIPS, LIBRARY, SPLIT, Flip

Alternative = tuple[str, ...]
"""A rule and the symbols of one of its alternatives. Line ends inside a rule and the difference
between the first and a further entry of a list are left out: they carry no meaning."""

LAYOUT = {"_NL", "__IGNORE_0", "COMMENT"}
WORDS_OF_RE = ("COMPARE",)
"""Terminals that are a choice between signs."""


def alternative(rule: Any) -> Alternative:
    origin = rule.origin.name
    symbols = [symbol.name for symbol in rule.expansion if symbol.name != "_NL"]
    return (origin, *(symbols[1:] if len(symbols) > 1 and symbols[0] == origin else symbols), rule.alias or "")


def alternatives() -> set[Alternative]:
    known = language().parser
    signs = {
        (terminal.name, sign)
        for terminal in known.terminals
        if terminal.name in WORDS_OF_RE
        for sign in terminal.pattern.value.removeprefix("(?:").removesuffix(")").split("|")
    }
    return {alternative(rule) for rule in known.rules} | signs


@cache
def written(text: str) -> Counter[Alternative]:
    """How often each alternative is used in a text."""
    known = language()
    found: Counter[Alternative] = Counter()
    parser = known.parser.parse_interactive()
    state = parser.parser_state
    counting = copy.copy(state.parse_conf)

    def counted(rule: Any, build: Any) -> Any:
        def reduce(children: list) -> Any:
            found[alternative(rule)] += 1
            return build(children)

        return reduce

    counting.callbacks = {rule: counted(rule, build) for rule, build in state.parse_conf.callbacks.items()}
    state.parse_conf = counting
    token = None
    for token in tokens(text, known, parser.choices):
        if token.type in WORDS_OF_RE:
            found[token.type, str(token)] += 1
        parser.feed_token(token)
    parser.feed_eof(token)
    return found


def test_every_alternative_is_flipped() -> None:
    flipped: set[Alternative] = set()
    for flip in FLIPS:
        before, after = (written(text) for text in flip.texts)
        flipped |= {key for key in before.keys() | after.keys() if before[key] != after[key]}
    missing = sorted(alternatives() - flipped)
    assert not missing, f"add a pair to flips.py for each of {missing}"


def test_alternatives_are_read_from_the_grammar() -> None:
    found = alternatives()
    assert len(found) > 250
    assert ("COMPARE", ">=") in found
    assert ("tokens", "TOKENS", "evenness", "") in found
    assert not {symbol for _, *symbols in found for symbol in symbols} & LAYOUT


# --- what a text means ----------------------------------------------------------------------


WORDING = {"because", "message", "text", "lines"}
"""Fields that only reports read."""


def bare(value: Any) -> Any:
    """The value without places, origins and wording."""
    match value:
        case Span() | Origin():
            return "somewhere"
        case Mapping():
            return {key: bare(part) for key, part in value.items()}
        case tuple():
            return tuple(map(bare, value))
        case _ if isinstance(value, Struct):
            fields = (name for name in value.__struct_fields__ if name not in WORDING)
            return (type(value).__name__, {name: bare(getattr(value, name)) for name in fields})
        case _:
            return value


def meaning(text: str, folder: Path) -> Any:
    """Every program of the file; raises SpecError where it has none."""
    (folder / "more.place").write_text(LIBRARY)
    programs = []
    for spec in elaborate_file(parse(text, str(folder / "spec.place"))):
        if spec.problems or spec.program is None:
            raise SpecError(*spec.problems)
        programs.append(bare(derive(spec.program, spec.stated)))
    return programs


@pytest.mark.parametrize("flip", FLIPS, ids=str)
def test_flip(flip: Flip, tmp_path: Path) -> None:
    before, after = flip.texts
    known = meaning(before, tmp_path)
    if flip.outcome == CHANGES:
        assert meaning(after, tmp_path) != known
    else:
        with pytest.raises(SpecError) as refused:
            meaning(after, tmp_path)
        assert flip.outcome in {problem.code for problem in refused.value.problems}


@pytest.mark.parametrize("pair", ALIKE, ids=str)
def test_two_ways_of_writing_one_thing(pair: Flip, tmp_path: Path) -> None:
    before, after = pair.texts
    assert meaning(before, tmp_path) == meaning(after, tmp_path)


# --- words that the grammar takes as names --------------------------------------------------


LISTS: list[tuple[str, list[str]]] = [
    (SPLIT + "optimizer @", list(catalog.OPTIMIZERS)),
    (BASE + "weights x { size 4, kind @ }", list(catalog.KINDS)),
    (DEALT + "stages over pp { schedule @ }", list(catalog.SCHEDULES)),
    (SPLIT + "precision { params @ }", list(catalog.DTYPE_BYTES)),
    (SPLIT + "precision { @ bf16 }", list(catalog.PRECISION_STATES)),
    (SPLIT + "place w over tp { activations sharded on @ }", list(catalog.ACTIVATION_DIMS)),
    (SPLIT + "place w over tp { optimizer sharded on @ }", [*catalog.STATE_DIMS, "in", "out"]),
    (SPLIT + "sync @ over tp by sum", ["*", "w", "vector", "embed", "expert"]),
]
"""A statement with a gap at @, and the words that fill it, one per built-in list."""


@pytest.mark.parametrize(("text", "words"), LISTS, ids=[text.splitlines()[-1] for text, _ in LISTS])
def test_no_two_words_of_a_list_mean_the_same(text: str, words: list[str], tmp_path: Path) -> None:
    assert len(words) > 2
    meanings = [meaning(text.replace("@", word), tmp_path) for word in words]
    for index, one in enumerate(meanings):
        assert one not in meanings[:index], f"`{words[index]}` means what `{words[meanings.index(one)]}` means"
