"""`placelogic prove`: the statements by name, and what it prints."""

from __future__ import annotations

import json

import pytest

from placelogic.cli import main
from placelogic.prove import statements


def test_two_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "loop_sum", "reduce_share"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if " z3 proved" in line] == ["loop_sum", "reduce_share"]
    assert "assumes: The buffer starts at zero" in out
    assert "2 statements, 11 queries: 2 proved; 0 disagreements" in out


def test_closest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "redcue_share"]) == 2
    said = capsys.readouterr().err
    assert "there is no statement `redcue_share`; did you mean `reduce_share`?" in said


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "scale", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["exit_code"]) == ("placelogic/prove/1", 0)
    (one,) = found["statements"]
    assert (one["name"], one["verdict"], one["by"]["z3"]) == ("scale", "proved", "proved")


def test_a_statement_that_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = "# One is two\n\n## Statement\n\n1 = 2\n\n## Source\n\nnowhere\n\n## Assumes\n\n- nothing\n\n## Proof it\n\n```smt2\n(assert true)\n```\n"
    (tmp_path / "wrong.md").write_text(text)
    monkeypatch.setattr(statements, "folder", lambda: tmp_path)
    assert main(["prove"]) == 1
    out = capsys.readouterr().out
    assert "it: z3 says sat, and unsat is needed (wrong.it.smt2)" in out
    (tmp_path / "wrong.md").write_text(text.replace("## Source", "## Sauce"))
    assert main(["prove"]) == 2
    assert "what is the section `Sauce`?" in capsys.readouterr().err
