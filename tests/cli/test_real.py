"""The command line over the real parser, elaborator and prover."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import placelogic
from placelogic.cli import main

ROOT = Path(__file__).parents[2]

RIGHT = """\
mesh dp, tp
batch over dp
microbatches M
weights attn { size 4096 }
weights norm { size 64, kind vector }
use data_parallel(dp) * tensor_parallel(tp)
sync norm over tp by mean
"""
WRONG = RIGHT.replace("by mean", "by sum")


def test_proved(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "llama.place").write_text(RIGHT)
    assert main(["check", "llama.place"]) == 0
    first = capsys.readouterr().out.split("\n")[0]
    assert first.startswith("llama.place: proved (")
    assert first.endswith(") for every dp, tp, M")
    assert main(["check", "llama.place", "--at", "dp=64,M=2"]) == 0
    assert capsys.readouterr().out.split("\n")[0].endswith(") for every tp")


def test_refuted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "llama.place").write_text(WRONG)
    assert main(["check", "llama.place"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("error[GI02]: ")
    assert "\n --> llama.place:7:1\n" in out
    assert "7 | sync norm over tp by sum\n  | ^^^^^^^^^^^^^^^^^^^^^^^^" in out
    assert "= smallest counterexample: tp = 2 (everything else 1)\n" in out
    assert main(["check", "llama.place", "--at", "tp=1"]) == 0


def test_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "llama.place").write_text(WRONG + "expect refuted GI02 norm\n")
    assert main(["check", "llama.place", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    schema = json.loads((Path(placelogic.__file__).parent / "report/check-1.schema.json").read_text())
    jsonschema.validate(report, schema)
    (spec,) = report["files"][0]["specs"]
    assert (spec["verdict"], spec["expected"]) == ("refuted", True)
    assert spec["findings"][0]["counterexample"]["mesh"]["tp"] == 2


def test_what_is_shown_can_be_checked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "llama.place").write_text(RIGHT)
    assert main(["show", "llama.place"]) == 0
    shown = capsys.readouterr().out
    (here / "shown.place").write_text(shown)
    assert main(["check", "shown.place", "--require-stated"]) == 0
    assert main(["fmt", "--check", "shown.place"]) == 0, "it is in canonical form"


def test_format(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "llama.place").write_bytes(
        ("\ufeff" + RIGHT.replace("mesh dp,", "mesh   dp,")).replace("\n", "\r\n").encode()
    )
    assert main(["fmt", "--diff", "llama.place"]) == 1
    assert "-mesh   dp, tp\n+mesh dp, tp\n" in capsys.readouterr().out
    assert main(["fmt", "llama.place"]) == 0
    assert (here / "llama.place").read_bytes() == RIGHT.replace("\n", "\r\n").encode()


def test_places_in_files_with_a_byte_order_mark(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_bytes(b"\xef\xbb\xbfmesh dp\r\nbatch over dq\r\nweights w { size 1 }\r\n")
    assert main(["check", "a.place"]) == 2
    assert " --> a.place:2:12\n  |\n2 | batch over dq\n  |            ^^\n" in capsys.readouterr().out


def test_a_problem_of_the_file_is_told_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = "{ weights w { size 1 } }\n"
    (here / "a.place").write_text(f"mesh dp\nmesh dp\nspec a {spec}spec b {spec}")
    assert main(["check", "a.place"]) == 2
    out = capsys.readouterr().out
    assert out.count("error[PL210]") == 1
    assert "a.place: a: error (1 problem)\n" in out
    assert "a.place: b: error (1 problem)\n" in out


def test_what_concerns_the_whole_spec_points_at_its_first_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("# about\n\nmesh dp\nspec a {  # nothing\n  batch over dp\n}\n")
    assert main(["check", "a.place"]) == 2
    assert " --> a.place:4:1\n  |\n4 | spec a {  # nothing\n  | ^^^^^^^^\n" in capsys.readouterr().out


def test_a_finding_in_an_imported_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "lib.place").write_text("# shared\nbatch over dq\n")
    (here / "a.place").write_text('mesh dp\nimport "lib.place"\nweights w { size 1 }\n')
    assert main(["check", "a.place"]) == 2
    out = capsys.readouterr().out
    assert ' --> a.place:2:1\n  |\n2 | import "lib.place"\n' in out
    assert "lib.place:2" in out


@pytest.mark.parametrize(
    ("command", "forbidden"),
    [("check", {"torch", "sympy", "cvc5", "rich"}), ("fmt", {"z3", "torch", "sympy", "rich", "placelogic.elaborate"})],
)
def test_what_a_command_loads(here: Path, command: str, forbidden: set[str]) -> None:
    (here / "a.place").write_text(RIGHT)
    script = (
        f"import sys; from placelogic.cli import main; main(['{command}', 'a.place']); print(); print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert not forbidden & set(run.stdout.split("\n")[-2].split())
