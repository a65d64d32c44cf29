"""Public reports about what happens inside a layer come out as their specs expect, with the right factor."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from placelogic.report.diagnostic import FileReport, SpecReport
from placelogic.session.check import check_file
from placelogic.syntax.format import format_text

PAGE = Path(__file__).with_name("cases") / "reports.place"
NAMES = re.findall(r"^spec (\w+) \{", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

APPLIES = {
    "b150_bias_before_the_sum": "2 part",
    "b24_divided_and_never_summed": "(1/4) g",
    "b23_way_back_summed_again": "2 g",
    "b25_gathered_and_summed": "2 g",
    "b28_summed_twice": "8 g",
    "b08_only_the_head_itself": "g[tp=0]",
    "b15_router_cut_off": "0",
    "b16_summed_a_temporary": "g[tp=0]",
    "redundant_loss_summed": "2 g",
    "never_reduced": "y[tp=0]",
    "f19_summed_again": "2 part",
    "expert_bias_before_the_sum": "2 part",
    "scores_of_cut_experts_never_summed": "g[tp=0]",
    "gate_of_shares_never_summed": "g[tp=0]",
    "low_rank_update_never_summed": "g[tp=0]",
}
"""What the first device applies, in the first finding."""


@cache
def found() -> dict[str, SpecReport]:
    report: FileReport = check_file(str(PAGE))
    return {spec.name: spec for spec in report.specs}


@pytest.mark.parametrize("name", NAMES)
def test_as_expected(name: str) -> None:
    spec = found()[name]
    assert spec.expected is True, str(spec)


@pytest.mark.parametrize("name", APPLIES)
def test_by_this_factor(name: str) -> None:
    first = found()[name].findings[0]
    assert first.counterexample is not None
    assert first.counterexample.devices[0].applies == APPLIES[name]


def test_the_file_is_in_canonical_form() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert format_text(text, PAGE.name) == text
