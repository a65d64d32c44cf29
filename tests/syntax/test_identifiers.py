"""Which names a text has: their places, what they are names of, and where they are declared."""

from __future__ import annotations

from placelogic.syntax.identifiers import _EACH, _ROLES
from placelogic.syntax.load import language
from placelogic.syntax.parse import parse

TEXT = """mesh dp, 2 <= tp <= 4
axis all = dp * tp
weights w { size 4*h, kind expert }
strategy ours(d, t = none) { batch over d
  microbatches M }
spec one { use ours(dp, t = tp)
  step w, matrix { reduce main over all by sum
    update from main }
  place w over tp { params sharded on out }
  expect refuted GI01 w }
"""


def test_names_with_place_and_role() -> None:
    found = parse(TEXT, "t.place").identifiers
    lines = TEXT.split("\n")
    assert all(lines[one.line - 1].startswith(one.text, one.column - 1) for one in found)
    assert [(one.line, one.column) for one in found] == sorted((one.line, one.column) for one in found)
    assert [(one.text, one.role) for one in found if one.declares] == [
        ("dp", "size"), ("tp", "size"), ("all", "size"), ("w", "weights"), ("ours", "definition"), ("d", "size"),
        ("t", "size"), ("M", "size"), ("one", "spec"),
    ]  # fmt: skip
    assert [(one.text, one.role) for one in found if one.line in (6, 7, 8, 9, 10) and not one.declares] == [
        ("ours", "definition"), ("dp", "size"), ("t", "parameter"), ("tp", "size"),
        ("w", "target"), ("matrix", "target"), ("main", "buffer"), ("all", "size"), ("main", "buffer"),
        ("w", "target"), ("tp", "size"), ("out", "dimension"), ("w", "weights"),
    ]  # fmt: skip


def test_the_roles_are_those_of_rules() -> None:
    rules = {rule.alias or str(rule.origin.name) for rule in language().parser.rules}
    assert {*_ROLES, *_EACH} <= rules


def test_places_are_no_part_of_what_a_text_says() -> None:
    assert parse("mesh a\n", "t.place").statements == parse("mesh a\n\n", "t.place").statements
