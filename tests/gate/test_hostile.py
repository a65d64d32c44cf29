"""Repositories made to mislead the gate: a configuration that cannot be read, files put in the way of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placelogic.cli import main

GOOD = "mesh dp\nlet P\nweights model { size P }\nuse data_parallel(dp)\n"
BAD = GOOD + "sync model over dp by none\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PLACELOGIC_CACHE_DIR", str(tmp_path / "cache"))
    return root


DEEP = "a = " + "[" * 20_000 + "]" * 20_000
CONFIGURATIONS = {
    "a_long_number": "rlimit = " + "1" * 5_001,
    "a_long_size": "minimum-sizes = { dp = " + "1" * 4_000 + " }",
    "a_large_count": "rlimit = 99999999999999999999",
    "deep_lists": DEEP,
    "deep_tables": "a = " + "{a = " * 20_000,
    "a_zero_byte_in_a_path": 'paths = ["a\\u0000b"]',
    "a_zero_byte_in_a_pattern": 'exclude = ["a\\u0000b"]',
    "a_zero_byte_in_a_name": 'baseline = "a\\u0000b"',
    "a_long_time": "timeout = 1e308",
    "endless": "timeout = inf",
    "no_number": "timeout = nan",
    "a_dotted_key": "a." * 20_000 + "a = 1",
    "a_dotted_setting": "minimum-sizes" + ".a" * 20_000 + " = 1",
    "a_dotted_heading": "[" + "a." * 20_000 + "a]",
    "many_settings": "".join(f"k{n} = 1\n" for n in range(20_000)),
    "blank_headings": "".join("[" + " " * 5_000 + "\n" for _ in range(20)),
    "too_large": "#" * 1_000_001,
    "no_text": "\udcff\udcfe",
    "zero_bytes": "\0",
    "a_budget_that_is_none": 'budget = "' + "(" * 5_000 + '"',
    "two_lines": 'budget = "1 GiB\\nuse none(dp)"',
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("project", [False, True])
def test_a_configuration_that_makes_no_sense(name: str, project: bool, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CONFIGURATIONS[name]
    (here / "a.place").write_text(GOOD)
    head = "[tool.placelogic]\n" if project else ""
    (here / ("pyproject.toml" if project else "placelogic.toml")).write_text(head + text, errors="surrogateescape")
    before = time.process_time()
    assert main(["gate", "--no-cache"]) == 2
    assert "error[PL03" in capsys.readouterr().err
    assert time.process_time() - before < 5


BASELINES = {
    "a_long_number": '{"schema": "placelogic/baseline/1", "accepted": [' + "1" * 5_001 + "]}",
    "deep": "[" * 20_000,
    "null": '{"schema": "placelogic/baseline/1", "accepted": null}',
    "nothing": "",
    "no_text": "\udcff",
    "another": "{}",
    "half_a_character": '{"schema": "placelogic/baseline/1", "accepted": ["\\ud800"]}',
}


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_that_makes_no_sense(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(BAD)
    (here / "placelogic.toml").write_text('baseline = "b.json"\n')
    (here / "b.json").write_text(BASELINES[name], errors="surrogateescape")
    assert main(["gate", "--no-cache"]) == 2
    assert "error[PL034]" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="links")
@pytest.mark.parametrize("way", ["dangling", "circle", "folder", "pipe", "device"])
def test_a_configuration_that_is_no_file(way: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(GOOD)
    path = here / "placelogic.toml"
    match way:
        case "dangling":
            path.symlink_to("nowhere")
        case "circle":
            path.symlink_to("placelogic.toml")
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
    assert main(["gate", "--no-cache"]) == 2
    assert "error[PL035]: the configuration cannot be read" in capsys.readouterr().err


# --- what the gate covers -------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="links")
@pytest.mark.parametrize("way", ["upper", "mixed", "link", "link to the outside", "link to a hidden folder", "link to a link", "links in a circle"])
def test_no_spec_is_left_out_without_a_word(way: str, here: Path, tmp_path: Path) -> None:
    (here / "good.place").write_text(GOOD)
    outside = tmp_path / "outside"
    outside.mkdir()
    match way:
        case "upper":
            (here / "BAD.PLACE").write_text(BAD)
        case "mixed":
            (here / "bad.Place").write_text(BAD)
        case "link":
            (here / "x").mkdir()
            (here / "x" / "bad.place").write_text(BAD)
            (here / "y").symlink_to("x")
        case "link to the outside":
            (outside / "bad.place").write_text(BAD)
            (here / "y").symlink_to(outside)
        case "link to a hidden folder":
            (here / ".x").mkdir()
            (here / ".x" / "bad.place").write_text(BAD)
            (here / "y").symlink_to(".x")
        case "link to a link":
            (outside / "bad.place").write_text(BAD)
            (here / "y").symlink_to("z")
            (here / "z").symlink_to(outside)
        case "links in a circle":
            (outside / "back").symlink_to(here)
            (outside / "bad.place").write_text(BAD)
            (here / "y").symlink_to(outside)
    for _ in range(2):
        assert main(["gate"]) == 1


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_to_a_whole_disk(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("placelogic.files.MOST_BEHIND_LINKS", 50)
    (here / "good.place").write_text(GOOD)
    (here / "all").symlink_to("/usr")
    assert main(["gate"]) == 2
    assert "too large to be searched" in capsys.readouterr().out
    (here / "placelogic.toml").write_text('exclude = ["all"]\n')
    assert main(["gate"]) == 0


# --- modules in the current folder ------------------------------------------------------------------


@pytest.mark.parametrize("module", ["json", "lark", "click", "gc", "__future__", "typing", "os", "z3", "msgspec"])
def test_modules_in_the_repository_are_not_run(module: str, here: Path) -> None:
    (here / "a.place").write_text(BAD)
    (here / f"{module}.py").write_text("open('RUN', 'w')\nimport os\nos._exit(0)\n")
    done = subprocess.run([sys.executable, "-m", "placelogic", "gate", "--no-cache", "--jobs", "2"], capture_output=True, timeout=60)
    assert (done.returncode, (here / "RUN").exists()) == (1, False)
