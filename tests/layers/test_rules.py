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

CASES = Path(__file__).with_name("cases")
PAGES = sorted(path.name for path in CASES.glob("*.place") if path.stem != "reports")
TEXTS = {page: (CASES / page).read_text(encoding="utf-8") for page in PAGES}
PARTS = {page: re.split(r"^(?=(?:spec|model) )", text, flags=re.MULTILINE) for page, text in TEXTS.items()}
SHARED = {page: "".join(part for part in parts if not part.startswith("spec ")) for page, parts in PARTS.items()}
SPECS = {(page, part.split()[1]): part for page, parts in PARTS.items() for part in parts if part.startswith("spec ")}
OPEN = [which for which, spec in SPECS.items() if not re.search(r"^  (assume|dims|mesh .*[=<>])", spec, re.MULTILINE)]
"""Of any size: those are simulated on every small mesh."""


@cache
def found(page: str) -> dict[str, SpecReport]:
    return {spec.name: spec for spec in check_file(str(CASES / page)).specs}


@pytest.mark.parametrize(("page", "name"), SPECS)
def test_as_expected(page: str, name: str) -> None:
    spec = found(page)[name]
    assert spec.expected is True, str(spec)


@pytest.mark.parametrize(("page", "name"), OPEN)
def test_proof_and_simulation_agree(page: str, name: str) -> None:
    text = re.sub(r"^  expect .*\n", "", SHARED[page] + SPECS[page, name], flags=re.MULTILINE)
    assert judge(text, meshes=4).disagreement is None


@pytest.mark.parametrize("page", PAGES)
def test_the_file_is_in_canonical_form(page: str) -> None:
    assert format_text(TEXTS[page], page) == TEXTS[page]
