"""Reports take time in proportion to what they tell, also where a thousand findings lie in one long line."""

from __future__ import annotations

import time

import pytest

from placelogic.gate.allow import allowances
from placelogic.gate.policy import Policy
from placelogic.report import gate as gates
from placelogic.report import github, junit, sarif
from placelogic.report.blocks import Look
from placelogic.report.diagnostic import FileReport, Report
from placelogic.report.fingerprint import fingerprints
from placelogic.report.places import Root
from placelogic.report.text import file_lines, render
from placelogic.session.check import check_text

SPEC = "mesh dp\nlet P\nweights model { size P }\nuse data_parallel(dp)\n"


def one_line(count: int, ending: str = "") -> str:
    return SPEC + "let " + ",".join(f"a{number}" for number in range(count)) + ending + "\n"


def seconds(work) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def report(count: int) -> FileReport:
    return check_text(one_line(count), "a.place")


FORMS = {
    "text": lambda file: file_lines(file, Look()),
    "gate": lambda file: gates.file_lines(Policy().apply([file])[0], Look()),
    "github": lambda file: github.render(Report((file,)), Root("/")),
    "junit": lambda file: junit.render(Report((file,)), Root("/")),
    "sarif": lambda file: sarif.render(Report((file,)), Root("/")),
    "fingerprints": lambda file: list(fingerprints(file)),
}


@pytest.mark.parametrize("form", FORMS)
def test_many_findings_in_one_long_line(form: str) -> None:
    file = report(6_000)
    assert seconds(lambda: FORMS[form](file)) < 4  # it was two minutes


def test_a_check_with_many_problems() -> None:
    assert len(report(6_000).specs[0].findings) > 3_000
    assert seconds(lambda: report(6_000)) < 8  # it was a minute


def test_the_editor() -> None:
    from placelogic.editor import convert
    from placelogic.editor.text import Text

    file = report(6_000)
    text = Text("a.place", file.text)
    assert seconds(lambda: convert.diagnostics(file, text, convert.Units("utf-16"))) < 4


def test_many_comments() -> None:
    text = SPEC + '# placelogic: allow GI01 reason="x"\n' * 20_000
    assert seconds(lambda: allowances(text, "a.place")) < 4
    found, wrong = allowances(SPEC + '# placelogic: allow GI01 reason="x"\n\n# more\nsync model over dp by none\n', "a.place")
    assert [one.line for one in found] == [8] and not wrong


def test_a_place_in_a_long_line_is_shown_as_before() -> None:
    for count in (20, 100, 480):
        lines = render(Report((check_text(one_line(count, ", a3"), "a.place"),))).split("\n")
        at = next(number for number, line in enumerate(lines) if "declared twice" in line)
        shown, marks = lines[at + 3], lines[at + 4]
        assert shown[marks.index("^") : marks.rindex("^") + 1].rstrip(".") == "a3"
        assert len(shown) <= 130
