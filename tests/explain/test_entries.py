"""Every entry is there, says what it should, and its specs come out as they say."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import placelogic
from placelogic.explain.entries import FOLDER, UnknownCode, codes, entry, page
from placelogic.files import Found
from placelogic.gate.config import Config, Loaded
from placelogic.gate.run import run
from placelogic.report.diagnostic import Report
from placelogic.syntax.format import format_text

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```place *(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r'"((?:GI|SC|FW|CC|CL|BU|EX|VA|UN|NT|UB)\d\d)"')
FAULTS = [code for code in codes() if code[:2] in ("GI", "SC", "FW", "CC", "EX")]
WITHOUT_REPORT = {"CC01", "EX01", "EX02", "EX03", "EX04", "EX05", "EX06"}
"""Nobody reported CC01 in public; expectations are our own."""
WITHOUT_SPEC = {"UN02", "UN04", "NT06", "CL02", "PL"} | {code for code in codes() if code.startswith(("NT2", "UB"))}
"""A bug of ours, what takes a second solver, what takes several specs, what is no spec or about a configuration."""

BLOCKS = [
    pytest.param(code, mark, text, id=f"{code}-{number}")
    for code in codes()
    for number, (mark, text) in enumerate(BLOCK.findall(entry(code).body))
]


def reported(code: str, text: str) -> Report:
    """As `placelogic check` does it; what only the gate tells, as the gate does."""
    if code not in ("EX03", "EX04", "EX05", "EX06"):
        return placelogic.check(text, require_stated=code == "EX02", rlimit=500_000 if code == "UN01" else None)
    minimum = {"dp": 64} if code in ("EX04", "EX05") else {}
    loaded = Loaded(Config(minimum_sizes=minimum, fail_on=("EX03", "EX05", "EX06")), os.getcwd())
    return run(loaded, [Found("a.place", data=text.encode())], complete=False).report


@pytest.mark.parametrize(("code", "mark", "text"), BLOCKS)
def test_specs_come_out_as_they_say(code: str, mark: str, text: str) -> None:
    """By their `expect` lines, and by the mark of the block where a line cannot name the finding."""
    report = reported(code, text)
    (spec,) = report.specs
    verdict, *wanted = mark.split() or [spec.verdict]
    assert spec.verdict == verdict, str(report)
    assert set(wanted) <= {finding.code for finding in (*spec.findings, *report.files[0].findings)}, str(report)
    fails = code[:2] == "EX" and bool(wanted)
    assert fails == (report.exit_code == 1), str(report)
    assert spec.expected is not None or mark, "nothing says what should come out"


@pytest.mark.parametrize(("code", "mark", "text"), BLOCKS)
def test_specs_are_in_canonical_form(code: str, mark: str, text: str) -> None:
    assert format_text(text, f"{code}.place") == text


def test_every_code_has_an_entry() -> None:
    package = Path(placelogic.__file__).parent
    used = {code for path in package.rglob("*.py") for code in CODE.findall(path.read_text(encoding="utf-8"))}
    assert used <= set(codes())
    assert set(codes()) - {"PL"} <= used | {code for code in codes() if code.startswith("GI")}
    documented = re.findall(r"\b(?:GI0[1-7]|SC0[1-8]|FW0[1-8]|CC0[12]|EX0[12])\b", " ".join(codes()))
    assert len(documented) == 27


@pytest.mark.parametrize("code", codes())
def test_an_entry_has_its_parts(code: str) -> None:
    one = entry(code)
    assert one.title and not one.title.endswith(".")
    sections = re.findall(r"^## (.*)$", one.body, re.MULTILINE)
    blocks = BLOCK.findall(one.body)
    if code == "PL":
        return
    assert sections[0] == "How it happens"
    assert len(blocks) == sections.count("A spec that shows it") + sections.count("Mended")
    assert ("A spec that shows it" in sections) == (code not in WITHOUT_SPEC)
    if code in FAULTS:
        assert sections[1:3] == ["A spec that shows it", "Mended"]
        assert (sections[3:] == ["In the open"]) == (code not in WITHOUT_REPORT)
        shown, mended = (mark + " " + text for mark, text in blocks)
        assert code in shown
        if code != "EX01":
            assert code not in mended
    if "In the open" in sections:
        told = one.body.split("## In the open")[1]
        assert re.search(r"^\n\n[\w.-]+/[\w.-]+#\d+ \(20\d\d\)", told), "project, number and year"
    prose = BLOCK.sub("", one.body)
    how = prose.split("## How it happens")[1].split("\n## ")[0]
    assert 1 <= len(re.findall(r"[.?](?:\s|$)", how)) <= 7


def test_pages_use_only_what_can_be_shown_as_text() -> None:
    for path in FOLDER.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\*\*|\]\(|^\||^###|^\d+\. |^```(?!place|$)", text, re.MULTILINE), path.name
        assert max(map(len, text.split("\n"))) <= 125, path.name


def test_case_does_not_matter_and_errors_in_the_input_share_one_entry() -> None:
    assert entry("gi02") == entry("GI02")
    assert entry("PL109") == entry("pl201") == entry("PL") == entry("PL900")


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("GI99", "there are GI01, GI02"),
        ("SC1", "did you mean `SC01`?"),
        ("PL777", "PL0nn to PL5nn and PL9nn"),
        ("", "`placelogic explain` lists them all"),
        ("../GI01", "did you mean `GI01`?"),
        ("norm", "lists them all"),
    ],
)
def test_an_unknown_code_is_told_with_what_is_near(code: str, near: str) -> None:
    with pytest.raises(UnknownCode, match=re.escape(near)):
        entry(code)


def test_the_page_of_all_entries_is_current() -> None:
    """`placelogic explain --all > docs/explain.md` makes it."""
    assert (ROOT / "docs/explain.md").read_text(encoding="utf-8") == page()
