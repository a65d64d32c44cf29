"""Specs on which proof and simulation once disagreed: the verdict is settled, and both give it."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.session.check import check_text
from tests.property.agree import judge

FOUND = sorted(Path(__file__).with_name("found").glob("*.place"))


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_found(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert judge(text).disagreement is None
    (report,) = check_text(text, str(path)).specs
    assert report.expected is True, [finding.message for finding in report.findings]
