"""`placelogic show`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from placelogic.cli import main

pytestmark = pytest.mark.usefixtures("behind")


@pytest.fixture
def file(here: Path) -> str:
    (here / "a.place").write_text("proved\nstated\nunknown\n")
    return "a.place"


def test_every_spec_is_shown_and_problems_go_to_standard_error(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file]) == 2
    out, err = capsys.readouterr()
    assert out == "spec proved {\n}\n\nspec stated {\n}\n"
    assert err.startswith("error[PL201]: there is no axis `dq`\n --> a.place:3:1\n")


def test_one_spec(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file, "--spec", "stated"]) == 0
    assert capsys.readouterr() == ("spec stated {\n}\n", "")


@pytest.mark.parametrize(
    ("name", "hint"), [("statd", "did you mean `stated`?"), ("x", "the file has `proved`, `stated`, `unknown`")]
)
def test_an_unknown_spec(file: str, name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", file, "--spec", name]) == 2
    err = capsys.readouterr().err
    assert f"error[PL014]: there is no spec `{name}` in this file\n" in err
    assert f"= help: {hint}\n" in err


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"stated\n")))
    assert main(["show", "-"]) == 0
    assert capsys.readouterr().out == "spec stated {\n}\n"


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "none.place"]) == 2
    assert "error[PL001]" in capsys.readouterr().err
