"""`placelogic check`: what it prints and what it exits with."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from placelogic.cli import main

pytestmark = pytest.mark.usefixtures("behind")


def test_proved_is_two_lines_and_a_summary(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("stated\n")
    assert main(["check", "a.place"]) == 0
    assert capsys.readouterr().out == (
        "a.place: proved (3 obligations, 1 stated) for every dp, tp, M\n"
        "  assuming tokens even\n"
        "\n"
        "1 spec in 1 file: 1 proved\n"
        "outside the claim: rounding and reduce dtype, kernels, races, forward values of layers that are not stated, "
        "router decisions, token counts of zero\n"
    )


def test_refuted_shows_the_counterexample(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("refuted\n")
    assert main(["check", "a.place"]) == 1
    assert capsys.readouterr().out.split("\n1 spec")[0] == (
        "error[GI02]: the gradient of `norm` counts every contribution tp times\n"
        " --> a.place:1:1\n"
        "  |\n"
        "1 | refuted\n"
        "  | ^^^^^^^ along tp each device already holds the whole gradient\n"
        "  |\n"
        "  = smallest counterexample: tp = 2 (everything else 1)\n"
        "      device   applies   single device\n"
        "      tp=0     2 g       g\n"
        "      tp=1     2 g       g\n"
        "  = class: scale only; Adam hides it until clipping\n"
        "  = fix (verified): delete this line\n"
        "\n"
        "a.place: refuted (1 of 3 obligations fails, 1 stated)\n"
    )


@pytest.mark.parametrize(
    ("specs", "code"),
    [
        ("stated proved", 0),
        ("stated undecided", 3),
        ("stated vacuous", 3),
        ("undecided unknown", 2),
        ("crash vacuous", 2),
        ("undecided unknown refuted", 1),
    ],
)
def test_exit_code_over_all_specs(here: Path, specs: str, code: int) -> None:
    for number, spec in enumerate(specs.split()):
        (here / f"{number}.place").write_text(spec + "\n")
    (here / "all.txt").write_text(specs.replace(" ", "\n"))
    assert main(["check", "."]) == code
    assert main(["check", "all.txt"]) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("refuted\nexpect refuted", 0),
        ("refuted\nexpect refuted GI02", 0),
        ("refuted\nexpect refuted GI02 norm", 0),
        ("refuted\nexpect refuted GI01 norm", 1),
        ("refuted\nexpect refuted GI02 embed", 1),
        ("refuted\nexpect refuted GI02 norm\nexpect refuted SC01", 1),
        ("refuted\nexpect proved", 1),
        ("proved\nexpect refuted", 1),
        ("proved\nexpect proved", 0),
        ("vacuous\nexpect vacuous", 0),
        ("undecided\nexpect proved", 1),
        ("unknown\nexpect error", 0),
        ("unknown\nexpect error PL201", 0),
        ("unknown\nexpect error PL202", 1),
    ],
)
def test_expectations_decide_the_exit_code(
    here: Path, text: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.place").write_text(text)
    assert main(["check", "a.place"]) == code
    assert ("EX01" in capsys.readouterr().out) == (code == 1)


def test_unmet_expectation_says_what_came_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("refuted\nexpect refuted GI01 norm\n")
    main(["check", "a.place"])
    out = capsys.readouterr().out
    assert (
        "error[EX01]: `expect refuted GI01 norm` is not met: the verdict is refuted (GI02 norm)\n --> a.place:2:1\n"
        in out
    )
    assert "a.place: refuted, not as expected (1 of 3 obligations fails, 1 stated)\n" in out
    assert "1 spec in 1 file: 1 refuted; 1 spec with expectations, 1 not met" in out


def test_nothing_stated_is_said_and_can_be_required(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("proved\n")
    assert main(["check", "a.place"]) == 0
    out = capsys.readouterr().out
    assert "a.place: proved (3 obligations, none stated) for every dp, tp, M\n" in out
    assert "nothing is stated: what is derived is right by construction." in out
    assert main(["check", "a.place", "--require-stated"]) == 1
    assert (
        "error[EX02]: nothing is stated, so this verdict says nothing about anybody's code" in capsys.readouterr().out
    )
    (here / "a.place").write_text("stated\n")
    assert main(["check", "a.place", "--require-stated"]) == 0


def test_quiet_is_silent_on_what_is_proved_only(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "c.place").write_text("stated\nproved\n")
    assert main(["check", "c.place", "-q"]) == 0
    assert capsys.readouterr().out == ""
    (here / "a.place").write_text("stated\nrefuted\nexpect refuted GI02\nproved\n")
    assert main(["check", "a.place", "-q"]) == 0
    told = capsys.readouterr().out
    assert told == "a.place: refuted: refuted, as expected (1 of 3 obligations fails, 1 stated)\n"
    (here / "b.place").write_text("stated\nvacuous\n")
    assert main(["check", "--quiet", "a.place", "b.place"]) == 3
    assert capsys.readouterr().out == told + "b.place: vacuous: vacuous: there is nothing to prove\n"


def test_a_file_that_does_not_parse_is_one_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("proved\n  wh!at\n")
    assert main(["check", "a.place"]) == 2
    assert capsys.readouterr().out == (
        "error[PL101]: `!` is not part of the language\n"
        " --> a.place:2:5\n"
        "  |\n"
        "2 |   wh!at\n"
        "  |     ^\n"
        "  |\n"
        "  = help: delete it\n"
        "\n"
        "a.place: error (1 problem)\n"
        "\n"
        "1 spec in 1 file: 1 error\n"
    )


def test_folders_are_searched_and_libraries_skipped(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "specs/deep").mkdir(parents=True)
    (here / "specs/.hidden").mkdir()
    for name in ("specs/b.place", "specs/deep/a.place", "specs/.hidden/c.place", "specs/.d.place", "specs/e.txt"):
        (here / name).write_text("stated\n")
    (here / "specs/lib.place").write_text("strategy zero9\n")
    assert main(["check", "specs", "specs/b.place"]) == 0
    out = capsys.readouterr().out
    assert [line.split(":")[0] for line in out.split("\n") if ": proved" in line] == [
        "specs/b.place",
        os.path.join("specs/deep", "a.place"),
    ]
    assert "2 specs in 2 files: 2 proved; 1 library without specs skipped\n" in out
    assert main(["check", "specs", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["libraries"] == ["specs/lib.place"]


def test_libraries_alone_are_no_pass(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "specs").mkdir()
    (here / "specs/lib.place").write_text("strategy zero9\n")
    assert main(["check", "specs"]) == 2
    assert "error[PL015]: there is nothing to check: a library, and no spec\n --> specs:1:1" in capsys.readouterr().out


def test_a_folder_without_specs_is_an_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "empty").mkdir()
    assert main(["check", "empty"]) == 2
    assert "error[PL010]: there is no .place file in `empty`\n" in capsys.readouterr().out


def test_a_missing_file_is_an_error_and_the_rest_is_checked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("stated\n")
    assert main(["check", "no.place", "a.place"]) == 2
    out = capsys.readouterr().out
    assert "error[PL001]: there is no such file\n --> no.place:1:1\n" in out
    assert "a.place: proved" in out
    assert "2 specs in 2 files: 1 proved, 1 error\n" in out


def test_standard_input(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfstated\r\nrefuted\r\n")))
    assert main(["check", "-"]) == 1
    out = capsys.readouterr().out
    assert "<stdin>: stated: proved (3 obligations" in out
    assert " --> <stdin>:2:1\n" in out


def test_standard_input_that_is_not_text(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"proved\n\xc3\xa4\xff\n")))
    assert main(["check", "-"]) == 2
    assert "error[PL005]: the file is not UTF-8 text\n --> <stdin>:2:1\n" in capsys.readouterr().out


@pytest.mark.parametrize(("word", "code"), [("crash", "PL900"), ("memory", "PL903"), ("(((", "PL902")])
def test_the_program_never_ends_in_a_traceback(
    here: Path, word: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.place").write_text(f"stated\n{word}\n")
    assert main(["check", "a.place"]) == 2
    out, err = capsys.readouterr()
    assert f"error[{code}]: " in out
    assert err == ""
    if word == "crash":
        assert "internal error: KeyError: 'lost'" in out
        assert "please report it" in out
        assert "a.place: stated: proved" in out, "the other specs of the file are checked"


def test_debugging_prints_the_traceback(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACELOGIC_DEBUG", "1")
    (here / "a.place").write_text("crash\n")
    assert main(["check", "a.place"]) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_interrupted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("interrupt\n")
    assert main(["check", "a.place"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_limits_reach_the_prover(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("limits\n")
    assert main(["check", "a.place", "--rlimit", "77", "--timeout", "2.5"]) == 0
    assert "  note: a.place:1:1: rlimit 77, timeout 2.5\n" in capsys.readouterr().out
    assert main(["check", "a.place"]) == 0
    assert "rlimit 1000, timeout 10.0\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check"], "placelogic check: missing argument 'FILE...' (see placelogic check --help)\n"),
        (["frobnicate"], "placelogic: no such command 'frobnicate' (see placelogic --help)\n"),
        (["check", "a", "--rlimit", "0"], "placelogic check: invalid value for '--rlimit': 0 is not in the range 1<=x<=4000000000 (see"),
        (["check", "a", "--timeout", "0"], "placelogic check: invalid value for '--timeout': 0.0 is not in the range 0<x<=1000000"),
        (["check", "a", "--at", "dp"], "placelogic check: invalid value for '--at': 'dp' is not of the form NAME=SIZE, as in dp=64"),
        (["check", "a", "--at", "dp=0"], "the size of dp must be a positive whole number, not '0'"),
        (["check", "a", "--at", "dp=-4"], "the size of dp must be a positive whole number, not '-4'"),
        (["check", "a", "--at", "dp=2,dp=3"], "dp is given twice"),
        (["check", "a", "--format", "yaml"], "placelogic check: invalid value for '--format': 'yaml' is not one of"),
    ],
)  # fmt: skip
def test_usage_errors_are_one_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
