"""The text report, from reports made by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from placelogic.report.diagnostic import Counterexample, DeviceRow, FileReport, Finding, Obligations, Report, SpecReport
from placelogic.report.layout import cells, plain
from placelogic.report.printed import PrintedReport
from placelogic.report.text import Look, finding_lines, render
from placelogic.source import NOWHERE, Span

SOURCE = "\n" * 13 + "sync norm over tp by sum\n"
SPAN = Span("llama.place", 14, 1, 14, 25)
ROWS = (DeviceRow({"dp": 0, "tp": 0}, "2 g", "g"), DeviceRow({"dp": 0, "tp": 1}, "2 g", "g"))
FINDING = Finding(
    code="GI02",
    severity="error",
    message="the gradient of `norm` counts every contribution tp times",
    span=SPAN,
    weights="norm",
    axes=("tp",),
    label="along tp each device already holds the whole gradient",
    fault="scale",
    counterexample=Counterexample({"dp": 1, "tp": 2}, {"M": 1}, ROWS),
    fix="delete this line, or say `by mean`",
)


def block(finding: Finding, source: str = SOURCE, look: Look = Look()) -> list[str]:
    return [plain(line) for line in finding_lines(FileReport("llama.place", (), source), finding, look)]


def excerpt(source: str, span: Span, label: str | None = None, look: Look = Look()) -> list[str]:
    return block(Finding("PL100", "error", "m", span, label=label), source, look)[2:]


def test_the_example_of_the_manual() -> None:
    assert block(FINDING) == [
        "error[GI02]: the gradient of `norm` counts every contribution tp times",
        "  --> llama.place:14:1",
        "   |",
        "14 | sync norm over tp by sum",
        "   | ^^^^^^^^^^^^^^^^^^^^^^^^ along tp each device already holds the whole gradient",
        "   |",
        "   = smallest counterexample: tp = 2 (everything else 1)",
        "       device   applies   single device",
        "       tp=0     2 g       g",
        "       tp=1     2 g       g",
        "   = class: scale only; Adam hides it until clipping",
        "   = fix (verified): delete this line, or say `by mean`",
    ]


def test_a_consequence_is_short_and_says_so() -> None:
    lines = block(replace(FINDING, code="SC01", message="replicas of `norm` differ", consequence=True, fix=None))
    assert lines[0] == "error[SC01]: replicas of `norm` differ (a consequence of the finding above)"
    assert not any("counterexample" in line or "class" in line for line in lines)


@pytest.mark.parametrize(
    ("mesh", "quantities", "said"),
    [
        ({"dp": 2, "tp": 2}, {"M": 3}, "dp = 2, tp = 2, M = 3"),
        ({"dp": 1}, {"M": 1}, "every size 1"),
        ({"dp": 2}, {"count 0": 1, "count 1": 2}, "dp = 2, count 1 = 2 (everything else 1)"),
    ],
)
def test_sizes_of_the_counterexample(mesh: dict[str, int], quantities: dict[str, int], said: str) -> None:
    lines = block(replace(FINDING, counterexample=Counterexample(mesh, quantities, ())))
    assert f"   = smallest counterexample: {said}" in lines


def test_devices_are_told_apart_by_the_axes_that_have_several() -> None:
    rows = tuple(DeviceRow({"dp": d, "tp": t, "pp": 0}, f"{d}{t}", "g") for d in range(3) for t in range(4))
    example = Counterexample({"dp": 3, "tp": 4, "pp": 1}, {}, rows)
    lines = block(replace(FINDING, counterexample=example))
    assert "       dp=0 tp=1   01        g" in lines
    assert "       and 4 more devices" in lines
    lonely = Counterexample({"dp": 1}, {}, (DeviceRow({"dp": 0}, "0", "g"),))
    assert "       dp=0     0         g" in block(replace(FINDING, counterexample=lonely))


def test_carets_under_tabs_and_wide_characters() -> None:
    assert excerpt("\tsync norm\n", Span("", 1, 7, 1, 11))[1:3] == ["1 |     sync norm", "  |          ^^^^"]
    assert excerpt("# 模型 norm\n", Span("", 1, 6, 1, 10))[1:3] == ["1 | # 模型 norm", "  |        ^^^^"]
    assert excerpt("# e\u0301 norm\n", Span("", 1, 6, 1, 10))[1:3] == ["1 | # e\u0301 norm", "  |     ^^^^"]


def test_places_at_the_edges() -> None:
    assert excerpt("ab\n", Span("", 1, 3, 1, 3))[1:3] == ["1 | ab", "  |   ^"], "the end of a line"
    assert excerpt("ab", Span("", 1, 3, 1, 4))[1:3] == ["1 | ab", "  |   ^"], "the end of the file"
    assert excerpt("ab\n", Span("", 2, 1, 2, 1))[1:3] == ["2 |", "  | ^"], "after the last line"
    assert excerpt("ab\n", Span("", 9, 1, 9, 1)) == [], "no such line: only the place is printed"
    assert excerpt("ab\n", Span("", 1, 1, 2, 1))[1:3] == ["1 | ab", "  | ^^"], "up to the line end"
    assert excerpt("ab\r\ncd", Span("", 1, 1, 1, 3))[1:3] == ["1 | ab", "  | ^^"]


def test_a_stretch_over_several_lines() -> None:
    source = "step norm {\n  accumulate\n  update\n}\n"
    assert excerpt(source, Span("", 1, 1, 4, 2), "nothing is reduced") == [
        "  |",
        "1 | / step norm {",
        "2 | |   accumulate",
        "3 | |   update",
        "4 | | }",
        "  | |_^ nothing is reduced",
        "  |",
    ]


def test_a_long_stretch_shows_its_ends() -> None:
    source = "step norm {\n" + "  scale by 1\n" * 20 + "}\n"
    assert excerpt(source, Span("", 1, 1, 22, 2))[1:] == [
        " 1 | / step norm {",
        " 2 | |   scale by 1",
        " 3 | |   scale by 1",
        " 4 | |   scale by 1",
        "   | | ...",
        "22 | | }",
        "   | |_^",
        "   |",
    ]


def test_a_long_line_is_cut_around_what_is_marked() -> None:
    source = "a" * 300 + " norm " + "b" * 300 + "\n"
    line, marks = excerpt(source, Span("", 1, 302, 1, 306))[1:3]
    assert len(line) <= 120
    assert line[marks.index("^") : marks.index("^") + 4] == "norm"
    assert marks.count("^") == 4
    assert line.startswith("1 | ...") and line.endswith("...")


@pytest.mark.parametrize("column", [1, 50, 110, 120, 300, 595])
@pytest.mark.parametrize("length", [1, 5, 200])
@pytest.mark.parametrize("wide", ["x", "模"])
def test_marks_stay_within_the_line(column: int, length: int, wide: str) -> None:
    source = "".join(wide if i % 2 else chr(97 + i % 26) for i in range(600)) + "\n"
    line, marks = excerpt(source, Span("", 1, column, 1, column + length))[1:3]
    assert cells(line) <= 120
    assert 1 <= marks.count("^") and len(marks) <= cells(line)


def test_a_narrow_terminal() -> None:
    lines = block(FINDING, look=Look(width=50))
    assert all(cells(line) <= 50 for line in lines)
    joined = " ".join(" ".join(lines).split())
    assert "along tp each device already holds the whole" in joined
    assert "the gradient of `norm` counts every contribution tp times" in joined
    assert "smallest counterexample: tp = 2 (everything else 1)" in joined


def test_a_table_that_does_not_fit_is_stacked() -> None:
    rows = (DeviceRow({"tp": 0}, "2/3 g(tp=0) + 1/3 g(tp=1)", "1/2 g(tp=0) + 1/2 g(tp=1)"),)
    example = Counterexample({"tp": 2}, {}, rows)
    lines = block(replace(FINDING, counterexample=example), look=Look(width=50))
    at = lines.index("       tp=0")
    assert lines[at + 1 : at + 3] == [
        "         applies: 2/3 g(tp=0) + 1/3 g(tp=1)",
        "         single device: 1/2 g(tp=0) + 1/2 g(tp=1)",
    ]


def test_control_characters_do_not_reach_the_terminal() -> None:
    nasty = "sync \x1b[2J\u202enorm\x07"
    text = "\n".join(block(replace(FINDING, message=nasty, label=nasty), source=nasty, look=Look()))
    assert not set("\x1b\u202e\x07") & set(text)


def test_a_finding_in_an_imported_file_shows_that_file() -> None:
    finding = Finding("PL201", "error", "no axis `d`", Span("lib/mine.place", 2, 3, 2, 4))
    file = FileReport("llama.place", (), "use mine(dp)\n", {"lib/mine.place": "strategy mine(d) {\n  d\n}\n"})
    lines = [plain(line) for line in finding_lines(file, finding, Look())]
    assert lines[1:5] == [" --> lib/mine.place:2:3", "  |", "2 |   d", "  |   ^"]


def test_without_a_place() -> None:
    lines = block(Finding("CC01", "error", "placed twice", NOWHERE, label="here", help="look"))
    assert lines == ["error[CC01]: placed twice", " --> llama.place", "  = here: here", "  = help: look"]


def test_every_verdict_has_its_line() -> None:
    counts = Obligations(proved=21, refuted=1, undecided=1, stated=4)
    wrong = Finding("PL201", "error", "no axis `d`", SPAN)
    specs = (
        SpecReport(
            "a", "proved", ("heads % tp == 0", "tokens even"), ("tokens even",), Obligations(23, stated=4),
            open_sizes=("dp", "M"),
        ),
        SpecReport("b", "proved", obligations=Obligations(1)),
        SpecReport("c", "refuted", obligations=counts),
        SpecReport("d", "undecided", obligations=counts),
        SpecReport("e", "vacuous"),
        SpecReport("f", "error", findings=(wrong, wrong)),
        SpecReport("g", "refuted", obligations=replace(counts, refuted=2), expected=True),
    )  # fmt: skip
    text = render(Report((FileReport("x.place", specs),)))
    for line in (
        "x.place: a: proved (23 obligations, 4 stated) for every dp, M",
        "  assuming heads % tp == 0, tokens even; the verdict rests on tokens even",
        "x.place: b: proved (1 obligation, none stated) at the sizes given",
        "x.place: c: refuted (1 of 23 obligations fails, 4 stated)",
        "x.place: d: undecided (1 of 23 obligations open, 4 stated): this is not a pass",
        "x.place: e: vacuous: there is nothing to prove",
        "x.place: f: error (2 problems)",
        "x.place: g: refuted, as expected (2 of 24 obligations fail, 4 stated)",
        "7 specs in 1 file: 2 proved, 2 refuted, 1 undecided, 1 vacuous, 1 error; 1 spec with expectations, all met",
    ):
        assert line in text.split("\n")
    assert "nothing is stated in 1 spec: " in text
    assert text.count("outside the claim") == 1


def test_notes_are_one_line_each_and_warnings_a_block() -> None:
    note = Finding("", "note", "tp is never exercised: it is 1 on every mesh", SPAN)
    warning = Finding("SC07", "warning", "equal streams meet shares", SPAN)
    spec = SpecReport("llama", "proved", obligations=Obligations(2, stated=1), findings=(note, warning))
    lines = render(Report((FileReport("llama.place", (spec,), SOURCE),))).split("\n")
    assert lines[0] == "warning[SC07]: equal streams meet shares"
    assert "  note: llama.place:14:1: tp is never exercised: it is 1 on every mesh" in lines


def test_paragraphs_are_parted_by_one_blank_line() -> None:
    good = SpecReport("a", "proved", obligations=Obligations(1, stated=1))
    bad = SpecReport("b", "refuted", obligations=Obligations(refuted=1), findings=(FINDING, FINDING))
    text = render(Report((FileReport("llama.place", (good, bad, good, bad), SOURCE),)))
    assert "\n\n\n" not in text
    assert not text.startswith("\n")
    assert text.count("\n\nerror[GI02]") == 4
    assert str(PrintedReport((FileReport("llama.place", (good,), SOURCE),))).startswith("llama.place: proved")


def test_an_empty_report() -> None:
    assert render(Report(())) == "0 specs in 0 files"
    assert render(Report(()), Look(quiet=True)) == ""
