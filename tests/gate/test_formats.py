"""A repository with good and bad specs, through every form of the report."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from placelogic.cli import main
from tests.gate.conftest import BAD, BAD_LINE, HEAD

SCHEMA = json.loads(Path(__file__).with_name("sarif-subset.schema.json").read_text(encoding="utf-8"))
OFFICIAL = os.environ.get("PLACELOGIC_SARIF_SCHEMA")
"""A copy of the schema of the standard, to be checked against too."""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["gate", "--no-cache", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def sarif(text: str) -> dict[str, Any]:
    log = json.loads(text)
    jsonschema.validate(log, SCHEMA, jsonschema.Draft202012Validator)
    if OFFICIAL:
        jsonschema.Draft4Validator(json.loads(Path(OFFICIAL).read_text(encoding="utf-8"))).validate(log)
    return log


def test_text(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys)
    assert code == 1
    lines = [line for line in out.split("\n") if re.match(r"specs/.*: (ok|FAILS)", line)]
    assert lines == [
        "specs/allowed.place: ok (1 refuted, accepted)",
        "specs/bad one.place: FAILS (1 refuted)",
        "specs/expected.place: ok (1 refuted as expected)",
        "specs/good.place: ok (1 proved)",
        "specs/imports.place: ok (1 proved)",
        "specs/several.place: FAILS (1 proved; 1 refuted)",
        "specs/unknown.place: FAILS (1 error)",
        "specs/vacuous.place: FAILS (1 vacuous)",
        "specs/lib/ours.place: ok (a library)",
    ]
    assert "  GI02 specs/allowed.place:7: accepted by a comment in the file: divided by tp later\n" in out
    assert (
        "error[GI02]: the gradient of `norm` counts every contribution tp times\n"
        f" --> specs/bad one.place:{BAD_LINE}:1\n" in out
    )
    assert (
        "9 specs in 8 files: 3 proved, 4 refuted, 1 vacuous, 1 error (1 accepted); "
        "1 spec with expectations, all met; 1 library without specs skipped\n"
    ) in out
    assert "never.place" not in out


def test_quiet_text(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "--quiet")
    assert code == 1
    assert set(re.findall(r"^(specs/.*): (?:ok|FAILS)", out, re.MULTILINE)) == {
        "specs/bad one.place", "specs/several.place", "specs/unknown.place", "specs/vacuous.place",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("keep", "code"),
    [
        ("good.place allowed.place expected.place", 0),
        ("good.place vacuous.place", 3),
        ("unknown.place vacuous.place", 2),
        ("unknown.place vacuous.place bad one.place", 1),
    ],
)
def test_the_exit_code_is_that_of_check(sample: Path, keep: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"specs/{name}.place" for name in re.findall(r"(\S[^.]*)\.place", keep)]
    assert run(capsys, *names)[0] == code


def test_json(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "--format", "json")
    report = json.loads(out)
    assert code == report["exit_code"] == 1
    files = {file["path"]: file["specs"] for file in report["files"]}
    (allowed,) = files["specs/allowed.place"]
    assert (allowed["verdict"], allowed["accepted"]) == ("refuted", True)
    assert allowed["findings"][0]["accepted"] == {"kind": "comment", "reason": "divided by tp later"}
    (bad,) = files["specs/bad one.place"]
    assert (bad["verdict"], bad["accepted"], bad["findings"][0]["accepted"]) == ("refuted", False, None)
    assert report["libraries"] == ["specs/lib/ours.place"]


def test_sarif(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "--format", "sarif")
    assert code == 1
    (log,) = sarif(out)["runs"]
    results = {
        (result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], result["ruleId"]): result
        for result in log["results"]
    }
    bad = results["specs/bad%20one.place", "GI02"]
    assert bad["level"] == "error"
    assert bad["locations"][0]["physicalLocation"]["region"] == {
        "startLine": BAD_LINE, "startColumn": 1, "endLine": BAD_LINE, "endColumn": 25,
    }  # fmt: skip
    assert bad["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"]
    assert log["tool"]["driver"]["rules"][bad["ruleIndex"]]["id"] == "GI02"
    assert "smallest counterexample: tp = 2 (everything else 1)\n" in bad["message"]["text"]
    allowed = results["specs/allowed.place", "GI02"]
    assert allowed["level"] == "note"
    assert allowed["suppressions"] == [
        {"kind": "inSource", "status": "accepted", "justification": "divided by tp later"}
    ]
    assert ("specs/expected.place", "GI02") not in results, "what is expected is no result"
    assert results["specs/unknown.place", "PL200"]["level"] == "error"
    assert results["specs/vacuous.place", "VA01"]["level"] == "error"
    assert results["specs/several.place", "GI02"]["message"]["text"].startswith("wrong: the gradient of `norm`")
    assert "NT02" not in {rule for _, rule in results}


def marks(text: str) -> dict[str, str]:
    """File and rule -> fingerprint."""
    return {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] + " " + result["ruleId"]: result[
            "partialFingerprints"
        ]["placelogicFinding/v1"]
        for result in sarif(text)["runs"][0]["results"]
    }


def test_fingerprints_survive_moved_lines(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = repository / "specs" / "a.place"
    spec.write_text(BAD)
    before = marks(run(capsys, "--format", "sarif")[1])
    spec.write_text("# A comment.\n\n" + BAD.replace("sync norm over tp by sum", "sync  norm over tp by sum   # why"))
    assert marks(run(capsys, "--format", "sarif")[1]) == before
    spec.write_text(HEAD + "\nscale norm by tp\n")
    other = marks(run(capsys, "--format", "sarif")[1])
    assert set(other.values()).isdisjoint(before.values()), "another line is another finding"


def test_findings_that_are_alike_have_numbers(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "sync norm over tq by sum\n"
    (repository / "specs" / "a.place").write_text(HEAD + line + line)
    results = sarif(run(capsys, "--format", "sarif")[1])["runs"][0]["results"]
    found = [result["partialFingerprints"]["primaryLocationLineHash"] for result in results]
    assert len(found) > 1 and len(set(found)) == len(found)


def test_github(sample: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    summary = sample.parent / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(sample))
    code, out = run(capsys, "--format", "github")
    assert code == 1
    lines = out.split("\n")
    (bad,) = [line for line in lines if "bad one" in line]
    assert bad.startswith(
        f"::error file=specs/bad one.place,line={BAD_LINE},endLine={BAD_LINE},col=1,endColumn=24,"
        "title=GI02%3A bad one::the gradient of `norm` counts every contribution tp times%0A"
    )
    (allowed,) = [line for line in lines if "allowed.place" in line]
    assert allowed.startswith("::notice file=specs/allowed.place,line=7,")
    assert "accepted by a comment in the file: divided by tp later" in allowed
    assert not any("expected.place" in line for line in lines)
    told = summary.read_text()
    assert told.startswith("before\n## placelogic\n")
    assert "| :x: | specs/bad one.place | bad one | refuted |\n" in told
    assert "| :white_check_mark: | specs/allowed.place | allowed | refuted, accepted |\n" in told
    assert "### error GI02: the gradient of \\`norm\\` counts every contribution tp times" in told


def test_github_names_files_from_the_root_of_the_repository(
    sample: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample / "specs")
    code, out = run(capsys, "--format", "github")
    assert code == 1
    assert f"::error file=specs/bad one.place,line={BAD_LINE}," in out


def test_junit(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "--format", "junit")
    assert code == 1
    suites = ElementTree.fromstring(out)
    assert {name: suites.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "9", "failures": "2", "errors": "2", "skipped": "1",
    }  # fmt: skip
    cases = {(case.get("classname"), case.get("name")): case for case in suites.iter("testcase")}
    failure = cases["specs/bad one.place", "bad one"].find("failure")
    assert failure is not None and failure.get("type") == "GI02"
    assert failure.text is not None and "smallest counterexample: tp = 2" in failure.text
    assert cases["specs/bad one.place", "bad one"].get("line") == str(BAD_LINE)
    skipped = cases["specs/allowed.place", "allowed"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "refuted, GI02: accepted by a comment in the file: divided by tp later"
    assert cases["specs/vacuous.place", "vacuous"].find("error") is not None
    assert len(cases["specs/expected.place", "expected"]) == 0
    assert len(cases["specs/several.place", "right"]) == 0
    assert cases["specs/several.place", "wrong"].find("failure") is not None


def test_several_at_once(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("r.sarif", "r.json", "r.xml", "r.txt", "r.md")
    options = [part for name in (*names, "github=marks") for part in ("--output", name)]
    code, out = run(capsys, *options)
    assert code == 1
    assert sarif(Path("r.sarif").read_text()) == sarif(run(capsys, "--format", "sarif")[1])
    for name, form in {"r.json": "json", "r.xml": "junit", "marks": "github"}.items():
        assert Path(name).read_text() == run(capsys, "--format", form)[1]
    assert Path("r.txt").read_text() == out
    assert Path("r.md").read_text().startswith("## placelogic\n")


def test_check_writes_the_same_forms(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.place").write_text(BAD)
    for form in ("json", "sarif", "github", "junit"):
        assert main(["check", "a.place", "--format", form, "--output", f"{form}=out"]) == 1
        assert Path("out").read_text() == capsys.readouterr().out


@pytest.mark.parametrize(
    ("output", "said"), [("report.doc", "the form of `report.doc` is not clear"), ("sarif=", "names no file")]
)
def test_output_without_a_form(repository: Path, output: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.place").write_text(BAD)
    assert main(["check", "a.place", "--output", output]) == 2
    assert said in capsys.readouterr().err


def test_output_that_cannot_be_written(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.place").write_text(BAD)
    assert main(["check", "a.place", "-q", "--output", "nowhere/report.json"]) == 2
    assert "error[PL012]: `nowhere/report.json` cannot be written: no such file or directory" in capsys.readouterr().err


def test_what_xml_cannot_say(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.place").write_text(HEAD + "sync norm over \x1b[31mtp by sum\n")
    assert main(["check", "a.place", "--format", "junit"]) == 2
    ElementTree.fromstring(capsys.readouterr().out)
