"""Reading and writing files: within limits, and whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.io.reading import Unreadable, read_file
from placelogic.io.writing import Changed, put, put_all

GOOD = "mesh dp\nlet P\nweights model { size P }\nuse data_parallel(dp)\n"
BAD = GOOD + "sync model over dp by none\n"
posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices of another kind")


def kind(path: str, most: int = 100) -> str:
    with pytest.raises(Unreadable) as caught:
        read_file(path, most)
    return caught.value.kind


@posix
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "large").write_bytes(b"x" * 101)
    (tmp_path / "link").symlink_to(pipe)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    assert kind(str(pipe)) == kind(str(tmp_path / "link")) == kind("/dev/zero") == kind("/dev/null") == "special"
    assert kind(str(tmp_path)) == "folder"
    assert kind(str(tmp_path / "none")) == "missing"
    assert kind(str(tmp_path / "large")) == "large"
    assert kind(str(tmp_path / "circle")) == "denied"
    assert kind("a\0b") == "name"
    assert kind("x" * 300) == "denied"
    assert read_file(tmp_path / "large", 101) == b"x" * 101


@posix
@pytest.mark.parametrize(
    "command",
    [
        ["check"], ["fmt"], ["fmt", "--check"], ["show"], ["cost"], ["compare", "good.place"], ["gate"], ["replay", "--script", "s.py"],
        ["import", "deepspeed"], ["import", "megatron"], ["check", "--from", "axolotl"], ["gate", "--config"],
        ["gate", "good.place", "--baseline"], ["combine", "zero1", "--import"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("what", ["pipe.place", "/dev/zero", "device.place"])
def test_every_command_refuses_pipes_and_devices(
    command: list[str], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "good.place").write_text(GOOD)
    os.mkfifo("pipe.place")
    os.symlink("/dev/zero", "device.place")
    before = time.monotonic()
    assert main([*command, what]) == 2
    seen = capsys.readouterr()
    assert "[PL" in seen.out + seen.err
    assert time.monotonic() - before < 10


@posix
@pytest.mark.parametrize("code", [GOOD, BAD])
@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "device", "../../../../../../../dev/zero", "folder", "large", "dangling", "circle"])
def test_what_a_spec_imports_cannot_hold_up_the_gate(
    name: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    os.mkfifo("pipe")
    os.symlink("/dev/zero", "device")
    os.symlink("nowhere", "dangling")
    os.symlink("circle", "circle")
    os.mkdir("folder")
    with open("large", "wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "a.place").write_text(f'import "{name}"\n' + code)
    before = time.monotonic()
    for _ in range(2):
        assert main(["gate", "--cache-dir", str(tmp_path / "cache")]) == 2
        assert "error[PL02" in capsys.readouterr().out
    assert time.monotonic() - before < 10


def test_a_zero_byte_in_an_imported_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.place").write_text('import "b.place"\n' + GOOD)
    (tmp_path / "b.place").write_bytes(b'import "c\0d"\n')
    assert main(["gate"]) == 2


def test_more_imports_than_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is decided about such a spec is not kept: nobody would notice a change of what it imports."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "b").mkdir()
    names = [f"b/{number:05}.inc" for number in range(1_001)]
    for name in names:
        (tmp_path / name).write_text(f"let size_{name[2:7]} = 1\n" if name == names[-1] else "# nothing\nlet a" + name[2:7] + " = 1\n")
    (tmp_path / "a.place").write_text("".join(f'import "{name}"\n' for name in names) + GOOD)
    for _ in range(2):
        assert main(["gate", "--cache-dir", str(tmp_path / "cache")]) == 2
        assert "PL303" in capsys.readouterr().out
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


# --- writing ------------------------------------------------------------------------------------


def test_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    put(path, "first")
    assert path.read_text() == "first"

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for options in ({}, {"old": b"first"}):
        with pytest.raises(OSError):
            put(path, "second", **options)  # type: ignore[arg-type]
    with pytest.raises(OSError):
        put(tmp_path / "b", "second", new=True)
    with pytest.raises(OSError):
        put_all(tmp_path / "folder", {"c/d": "x", "e": "y"})
    with pytest.raises(OSError):
        put_all(tmp_path, {"c/d": "x", "e": "y"}, ["a"])
    assert os.listdir(tmp_path) == ["a"] and path.read_text() == "first"


def test_new_files_and_changed_ones(tmp_path: Path) -> None:
    put(tmp_path / "a", "x", new=True)
    with pytest.raises(FileExistsError):
        put(tmp_path / "a", "y", new=True)
    with pytest.raises(Changed):
        put(tmp_path / "a", "y", old=b"z")
    put_all(tmp_path / "f", {"b/c": "1", "d": "2"})
    put_all(tmp_path / "f", {"d": "3"}, ["b/c"])
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == ["a", "f", "f/d"]
    assert (tmp_path / "a").read_text() == "x" and (tmp_path / "f/d").read_text() == "3"


@posix
def test_links_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0o640)
    (tmp_path / "link").symlink_to("a")
    put(tmp_path / "link", "y")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "a").read_text() == "y"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    put("/dev/null", "y")


def small_disk() -> str:
    """A file system of 64 KB in a name space of our own, or no test."""
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt && echo ok"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=20)
    except OSError:
        return ""
    return done.stdout.strip()


COMMANDS = {
    "init": "placelogic init .",
    "import": "placelogic import deepspeed \"$OUT/ds.json\" -o made.place",
    "replay": "placelogic replay \"$OUT/bad.place\" --script shown.py",
    "check": "placelogic check \"$OUT/bad.place\" --output r.json --output r.sarif --output r.xml --output r.md --output r.txt",
    "smt2": "placelogic check \"$OUT/good.place\" --emit-smt2 smt",
    "baseline": "placelogic gate --write-baseline --reason x --baseline b.json --no-cache \"$0\"",
    "cache": "placelogic gate --cache-dir cache",
    "fmt": "placelogic fmt here.place",
}


@posix
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_on_a_full_disk_nothing_is_left(command: str, tmp_path: Path) -> None:
    if small_disk() != "ok":
        pytest.skip("no file system of our own here")
    (tmp_path / "good.place").write_text(GOOD)
    (tmp_path / "bad.place").write_text(BAD)
    (tmp_path / "ds.json").write_text('{"train_batch_size": 8, "zero_optimization": {"stage": 1}}')
    program = f"{sys.executable} -c 'from placelogic.__main__ import run; raise SystemExit(run())'"
    script = f"""
        mount -t tmpfs -o size=64k none /mnt; cd /mnt; mkdir .git; echo 'mesh   dp' > here.place
        cat /dev/zero > filler 2>/dev/null
        find . -type f | sort > "$OUT/before"; cat here.place > "$OUT/here_before"
        {COMMANDS[command].replace("placelogic", program, 1).replace('"$0"', "")}
        echo $? > "$OUT/code"
        find . -type f | sort > "$OUT/after"; cat here.place > "$OUT/here_after"
    """
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script],
        env={**os.environ, "OUT": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    assert (tmp_path / "here_before").read_text() == (tmp_path / "here_after").read_text() == "mesh   dp\n"
    assert int((tmp_path / "code").read_text()) in ((2,) if command != "cache" else (1, 2))
