"""`placelogic fmt`: files are rewritten whole or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from placelogic.cli import main

pytestmark = pytest.mark.usefixtures("behind")


def test_files_are_formatted_in_place(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("  mesh dp\n\n\n let P")
    (here / "a.place").chmod(0o640)
    (here / "b.place").write_text("mesh dp\n")
    before = (here / "b.place").stat()
    assert main(["fmt", "."]) == 0
    assert (here / "a.place").read_text() == "mesh dp\nlet P\n"
    assert (here / "a.place").stat().st_mode & 0o777 == 0o640
    after = (here / "b.place").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino), "what is right is not rewritten"
    assert capsys.readouterr().err == "changed: ./a.place\n"
    assert sorted(os.listdir(here)) == ["a.place", "b.place"], "nothing else is left behind"


def test_links_stay_links(here: Path) -> None:
    (here / "real").mkdir()
    (here / "real/a.place").write_text(" mesh dp")
    (here / "a.place").symlink_to("real/a.place")
    assert main(["fmt", "a.place"]) == 0
    assert (here / "a.place").is_symlink()
    assert (here / "real/a.place").read_text() == "mesh dp\n"


def test_line_ends_stay(here: Path) -> None:
    (here / "a.place").write_bytes(b"\xef\xbb\xbf mesh dp\r\nlet P\r\n")
    assert main(["fmt", "a.place"]) == 0
    assert (here / "a.place").read_bytes() == b"mesh dp\r\nlet P\r\n"
    assert main(["fmt", "--check", "a.place"]) == 0


def test_a_file_that_does_not_parse_is_left_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("  oh! no")
    (here / "b.place").write_text("  mesh dp")
    assert main(["fmt", "a.place", "b.place", "none.place"]) == 2
    assert (here / "a.place").read_text() == "  oh! no"
    assert (here / "b.place").read_text() == "mesh dp\n"
    err = capsys.readouterr().err
    assert "error[PL101]: `!` is not part of the language\n --> a.place:1:5\n" in err
    assert "error[PL001]: there is no such file\n --> none.place:1:1\n" in err


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_dry_runs_write_nothing(here: Path, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text("mesh dp\n  let P\n")
    assert main(["fmt", option, "a.place"]) == 1
    assert (here / "a.place").read_text() == "mesh dp\n  let P\n"
    out, err = capsys.readouterr()
    assert err == "would change: a.place\n"
    if option == "--diff":
        assert out == "--- a.place\n+++ a.place (formatted)\n@@ -1,2 +1,2 @@\n mesh dp\n-  let P\n+let P\n"
    else:
        assert out == ""
    assert main(["fmt", "a.place"]) == 0
    assert main(["fmt", option, "a.place"]) == 0


def test_standard_input_to_standard_output(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"  mesh dp\n")))
    assert main(["fmt", "-"]) == 0
    assert capsysbinary.readouterr() == (b"mesh dp\n", b"")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"oh!\n")))
    assert main(["fmt", "-"]) == 2
    out, err = capsysbinary.readouterr()
    assert out == b""
    assert b" --> <stdin>:1:3\n  |\n1 | oh!\n" in err


def test_a_failed_write_loses_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "a.place").write_text("  mesh dp")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["fmt", "a.place"]) == 2
    assert (here / "a.place").read_text() == "  mesh dp"
    assert os.listdir(here) == ["a.place"]
    assert "error[PL012]: `a.place` cannot be written: no space left on device\n" in capsys.readouterr().err


def test_a_file_that_changed_meanwhile_is_left_alone(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = here / "a.place"
    path.write_text("  mesh dp")
    monkeypatch.setattr("os.fsync", lambda _: path.write_text("mesh tp"))
    assert main(["fmt", "a.place"]) == 2
    assert path.read_text() == "mesh tp"
    assert "PL013" in capsys.readouterr().err


def test_a_read_only_file_is_left_alone(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "a.place").write_text("  mesh dp")
    monkeypatch.setattr("os.access", lambda *_: False)
    assert main(["fmt", "a.place"]) == 2
    assert (here / "a.place").read_text() == "  mesh dp"
    assert "`a.place` cannot be written: it is read-only" in capsys.readouterr().err
