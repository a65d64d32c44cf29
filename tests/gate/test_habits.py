"""How people really call it: pipes, narrow terminals, spaces, other line ends, folders that cannot be written."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.report.layout import cells
from tests.gate.conftest import ALLOWED, BAD, BAD_LINE, GOOD, IMPORTS, LIBRARY

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "placelogic"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def process(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=environment(**more), timeout=120)


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "junit"])
def test_piping_in(repository: Path, form: str) -> None:
    done = subprocess.run(
        [*COMMAND, "check", "-", "--format", form], input=BAD, capture_output=True, text=True,
        env=environment(), timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "GI02" in done.stdout
    assert ("stdin" in done.stdout) or form == "sarif"


@pytest.mark.skipif(os.name != "posix", reason="pipes break in another way there")
def test_piping_out_to_somebody_who_has_seen_enough(sample: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*COMMAND, "gate"], stdout=writer, stderr=subprocess.PIPE, text=True, env=environment())
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("columns", [30, 60, 120])
def test_terminals(sample: Path, columns: int) -> None:
    import pty

    def shown(**more: str) -> str:
        main_end, other = pty.openpty()
        running = subprocess.Popen(
            [*COMMAND, "gate"], stdout=other, stderr=other, env=environment(TERM="xterm", COLUMNS=str(columns), **more)
        )
        os.close(other)
        out = b""
        try:
            while chunk := os.read(main_end, 65536):
                out += chunk
        except OSError:
            pass
        assert running.wait(timeout=120) == 1
        os.close(main_end)
        return out.decode().replace("\r\n", "\n")

    coloured, plain = shown(), shown(NO_COLOR="1")
    colour = re.compile(r"\x1b\[[0-9;]*m")
    assert colour.search(coloured) and not colour.search(plain)
    progress = re.compile(r"\r\x1b\[2K(\[\d+/\d+\] [^\r\n\x1b]*)?")
    assert progress.search(plain)
    for line in progress.sub("", plain).split("\n"):
        # What is longer has no place to break it: a word, a file, a table with its sizes.
        assert cells(line) <= max(columns, 40) or "specs/" in line or "  " in line.strip() or "|" in line, line


def test_windows_line_ends(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {"bad": BAD, "allowed": ALLOWED}.items():
        (repository / "specs" / f"{name}.place").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert main(["gate", "--format", "github"]) == 1
    out = capsys.readouterr().out
    assert "\r" not in out
    assert f"::error file=specs/bad.place,line={BAD_LINE},endLine={BAD_LINE},col=1,endColumn=24," in out
    assert "::notice file=specs/allowed.place,line=7," in out
    (repository / "placelogic.toml").write_bytes(b'paths = ["specs"]\r\nexclude = ["bad.place"]\r\n')
    assert main(["gate"]) == 0


def test_imports_with_windows_line_ends_are_seen(repository: Path) -> None:
    (repository / "specs" / "lib").mkdir()
    library = repository / "specs" / "lib" / "ours.place"
    library.write_bytes(LIBRARY.replace("\n", "\r\n").encode())
    (repository / "specs" / "a.place").write_bytes(b"\xef\xbb\xbf" + IMPORTS.replace("\n", "\r\n").encode())
    assert main(["gate"]) == 0
    library.write_text(LIBRARY.replace("optimizer replicated", "optimizer materialized"))
    assert main(["gate"]) == 1


@pytest.mark.skipif(os.name != "posix", reason="links need rights there")
def test_links_import_from_where_they_are(repository: Path) -> None:
    elsewhere = repository.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "real.place").write_text(IMPORTS.replace("lib/ours", "ours"))
    (elsewhere / "ours.place").write_text(LIBRARY)
    (repository / "specs" / "link.place").symlink_to(elsewhere / "real.place")
    library = repository / "specs" / "ours.place"
    library.write_text(LIBRARY)
    assert main(["gate"]) == 0
    library.write_text(LIBRARY.replace("optimizer replicated", "optimizer materialized"))
    assert main(["gate"]) == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root can write everywhere")
def test_a_repository_that_cannot_be_written(sample: Path) -> None:
    cache = sample.parent / "cache"
    cache.mkdir()
    folders = [cache, sample, *(path for path in sample.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        done = process("gate")
        assert (done.returncode, done.stderr) == (1, "")
        assert "bad one.place: FAILS" in done.stdout
        assert process("gate", "--output", "r.json").returncode == 2
        assert not list(cache.iterdir())
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_a_cache_in_the_way(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "specs" / "a.place").write_text(GOOD)
    (repository / "file").write_text("")
    for folder in ("file", "file/below", "/dev/null"):
        assert main(["gate", "--cache-dir", folder]) == 0
        assert capsys.readouterr().err == ""


def test_names_that_are_hard_to_print(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "a, b: 100% ünï #1.place"
    (repository / "specs" / name).write_text(BAD)
    assert main(["gate", "--format", "github"]) == 1
    assert "file=specs/a%2C b%3A 100%25 ünï #1.place,line=8," in capsys.readouterr().out
    assert main(["gate", "--format", "sarif"]) == 1
    assert '"uri": "specs/a%2C%20b%3A%20100%25%20%C3%BCn%C3%AF%20%231.place"' in capsys.readouterr().out
    for form in ("text", "json", "junit"):
        assert main(["gate", "--format", form]) == 1


def test_watching(repository: Path) -> None:
    spec = repository / "specs" / "a.place"
    spec.write_text(GOOD)
    running = subprocess.Popen(
        [*COMMAND, "gate", "--watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert running.stdout is not None and running.stderr is not None
    lines: list[str] = []
    streams = [
        threading.Thread(target=lambda s=s: lines.extend(s), daemon=True) for s in (running.stdout, running.stderr)
    ]
    for stream in streams:
        stream.start()

    def wait(text: str) -> None:
        deadline = time.monotonic() + 60
        while text not in "".join(lines[:]):
            assert time.monotonic() < deadline and running.poll() is None, "".join(lines)
            time.sleep(0.02)

    try:
        wait("specs/a.place: ok (1 proved)\n")
        wait("watching; interrupt to end\n")
        spec.write_text(BAD)
        wait("specs/a.place: FAILS (1 refuted)\n")
        (repository / "placelogic.toml").write_text("rlimt = 1\n")
        wait("there is no setting `rlimt`")
        (repository / "placelogic.toml").write_text('exclude = ["a.place"]\n')
        (repository / "specs" / "b.place").write_text(GOOD)
        wait("specs/b.place: ok (1 proved)\n")
    finally:
        running.terminate()
        running.wait(timeout=60)


def test_standard_input_has_no_place_in_a_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(GOOD))
    assert main(["gate", "-"]) == 2
    assert "error[PL001]: there is no such file" in capsys.readouterr().out
