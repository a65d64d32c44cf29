"""Faults that were reported in public come out of the configuration that meets them, and the mended one is proved."""

from __future__ import annotations

import pytest

from placelogic.frontends.faults import faults
from placelogic.frontends.load import FRAMEWORKS
from tests.frontends.helpers import checked, codes
from tests.frontends.reports import REPORTS, Report


@pytest.mark.parametrize("report", REPORTS, ids=lambda one: one.ref)
def test_the_version_that_had_the_fault_is_refuted(report: Report) -> None:
    spec = checked(report.framework, report.text, **report.bad)
    told = [f.message for f in spec.findings if f.code == report.code]
    assert spec.verdict == "refuted", [f.message for f in spec.findings]
    assert report.code in codes(spec), {f.code: f.message for f in spec.findings}
    assert any(report.words in message for message in told), told


@pytest.mark.parametrize("report", REPORTS, ids=lambda one: one.ref)
def test_the_mended_one_is_proved(report: Report) -> None:
    spec = checked(report.framework, report.mended or report.text, **report.good)
    assert spec.verdict == "proved", [f.message for f in spec.findings]


def test_every_fault_of_the_tables_is_met_by_a_report() -> None:
    listed = {one.report for framework in FRAMEWORKS for one in faults(framework)}
    assert listed <= {one.ref for one in REPORTS}
    assert len(REPORTS) >= 20
