"""Specs for single rules of the layers' calculus: each has the verdict that its file gives reasons for, and proof and
simulation agree on it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from placelogic.checking import check_file
from placelogic.report.diagnostic import SpecReport
from placelogic.syntax.format import format_text
from tests.layers.agree import judge

PAGE = Path(__file__).with_name("cases") / "rules.place"
TEXT = PAGE.read_text(encoding="utf-8")
PARTS = re.split(r"^(?=(?:spec|model) )", TEXT, flags=re.MULTILINE)
SHARED = "".join(part for part in PARTS if not part.startswith("spec "))
SPECS = {part.split()[1]: part for part in PARTS if part.startswith("spec ")}
OPEN = [name for name, spec in SPECS.items() if not re.search(r"^  (assume|dims|mesh .*[=<>])", spec, re.MULTILINE)]
"""Of any size: those are simulated on every small mesh."""


@cache
def found() -> dict[str, SpecReport]:
    return {spec.name: spec for spec in check_file(str(PAGE)).specs}


@pytest.mark.parametrize("name", SPECS)
def test_as_expected(name: str) -> None:
    spec = found()[name]
    assert spec.expected is True, str(spec)


@pytest.mark.parametrize("name", OPEN)
def test_proof_and_simulation_agree(name: str) -> None:
    text = re.sub(r"^  expect .*\n", "", SHARED + SPECS[name], flags=re.MULTILINE)
    assert judge(text, meshes=4).disagreement is None


def test_the_file_is_in_canonical_form() -> None:
    assert format_text(TEXT, PAGE.name) == TEXT
