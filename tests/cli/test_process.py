"""The command line as a process: streams that close, break, or cannot print everything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from placelogic import __version__

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "placelogic"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=environment(**more), timeout=60)


def test_version_and_help() -> None:
    assert run("--version").stdout == f"placelogic {__version__}\n"
    for arguments in (("--help",), ("check", "-h"), ("show", "-h"), ("fmt", "-h")):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Usage: placelogic")
        assert "  placelogic " in done.stdout, "every help has an example"


def test_without_a_command_the_help_is_shown() -> None:
    done = run()
    assert done.returncode == 2
    assert done.stdout.startswith("Usage: placelogic")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way there")
def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([*COMMAND, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, env=environment())
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
    assert (done.returncode, done.stderr) == (2, "placelogic: cannot write the output: No space left on device\n")


def test_output_that_the_encoding_lacks(tmp_path: Path) -> None:
    done = run("check", str(tmp_path / "模.place"), PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "\\u6a21.place" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_colours_only_on_a_terminal_that_wants_them(tmp_path: Path) -> None:
    import pty

    def on_terminal(**more: str) -> str:
        main, other = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, "check", "none.place", "neither.place"], stdout=other, stderr=other, cwd=tmp_path,
            env={**environment(TERM="xterm-256color", COLUMNS="100"), **more},
        )  # fmt: skip
        os.close(other)
        out = b""
        try:
            while chunk := os.read(main, 65536):
                out += chunk
        except OSError:
            pass  # how Linux reports the end
        process.wait(timeout=60)
        os.close(main)
        return out.decode().replace("\r\n", "\n")

    colour = re.compile(r"\x1b\[[0-9;]*m")
    shown = on_terminal()
    assert colour.search(shown)
    assert "[1/2] none.place" in shown, "progress"
    assert "\x1b[2K" in shown
    plain = on_terminal(NO_COLOR="1")
    assert not colour.search(plain)
    piped = run("check", "none.place", "neither.place")
    assert "\x1b" not in piped.stdout + piped.stderr
    progress = re.compile(r"\r\x1b\[2K(\[\d/\d\] [^\r\n\x1b]*)?")
    assert progress.sub("", colour.sub("", shown)) == progress.sub("", plain)
