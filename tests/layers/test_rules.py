"""Specs for single rules of the layers' calculus: each has the verdict that its file gives reasons for, and proof and
simulation agree on it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from placelogic.report.diagnostic import SpecReport
from placelogic.session.check import check_file
from placelogic.syntax.format import format_text
from tests.layers.agree import judge

FOLDER = Path(__file__).with_name("cases")
PAGES = ["rules", "layouts", "values_and_gradients", "pieces_and_zeros"]
PARTS = {
    page: re.split(r"^(?=(?:spec|model) )", (FOLDER / f"{page}.place").read_text("utf-8"), flags=re.M) for page in PAGES
}
SPECS = {(page, part.split()[1]): part for page in PAGES for part in PARTS[page] if part.startswith("spec ")}
OPEN = [one for one, spec in SPECS.items() if not re.search(r"^  (assume|dims|mesh .*[=<>])", spec, re.MULTILINE)]
"""Of any size: those are simulated on every small mesh."""


@cache
def found(page: str) -> dict[str, SpecReport]:
    return {spec.name: spec for spec in check_file(str(FOLDER / f"{page}.place")).specs}


@pytest.mark.parametrize(("page", "name"), SPECS)
def test_as_expected(page: str, name: str) -> None:
    spec = found(page)[name]
    assert spec.expected is True, str(spec)


@pytest.mark.parametrize(("page", "name"), OPEN)
def test_proof_and_simulation_agree(page: str, name: str) -> None:
    shared = "".join(part for part in PARTS[page] if not part.startswith("spec "))
    text = re.sub(r"^  expect .*\n", "", shared + SPECS[page, name], flags=re.MULTILINE)
    assert judge(text, meshes=4).disagreement is None


@pytest.mark.parametrize("page", PAGES)
def test_the_file_is_in_canonical_form(page: str) -> None:
    text = (FOLDER / f"{page}.place").read_text("utf-8")
    assert format_text(text, f"{page}.place") == text
