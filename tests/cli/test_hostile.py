"""Input that nobody should write, through the command line: a coded error with its place, exit code 2,
nothing on standard error, within two seconds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placelogic.cli import main

ROOT = Path(__file__).parents[2]
LIMIT_S = 10.0

SPEC = "mesh dp\nlet P\nweights model { size P }\nuse data_parallel(dp)\n"
HUGE = "9" * 29

BYTES = {
    # name -> content, code, line
    "empty": (b"", "PL300", 1),
    "only_blanks_and_comments": (b"\n   \n# nothing\n\t\n", "PL300", 1),
    "only_a_byte_order_mark": (b"\xef\xbb\xbf", "PL300", 1),
    "over_a_megabyte": (b"# padding\n" * 100_001, "PL003", 1),
    "over_a_megabyte_on_one_line": (b"let " + b"a" * 1_000_001, "PL003", 1),
    "a_long_word": (SPEC.encode() + b"use " + b"a" * 900_000 + b"(dp)\n", "PL119", 5),
    "many_errors": (b"weights w { size Q }\n" * 2_000, "PL305", 1),
    "deep_parentheses": (SPEC.encode() + b"scale model by " + b"(" * 50_000 + b"1" + b")" * 50_000, "PL110", 5),
    "deep_minus": (SPEC.encode() + b"scale model by " + b"-" * 50_000 + b"1", "PL110", 5),
    "deep_blocks": (b"spec a { " * 10_000, "PL1", 1),
    "deep_loops": (SPEC.encode() + b"step * {\n" + b"each microbatch {\n" * 10_000, "PL108", 7),
    "a_million_operators": (SPEC.encode() + b"scale model by 1" + b"+1" * 400_000, "PL110", 5),
    "zero_bytes": (SPEC.encode() + b"let \0a\n", "PL006", 5),
    "not_utf8": (SPEC.encode() + b"# caf\xe9\n", "PL005", 5),
    "utf16": (SPEC.encode("utf-16"), "PL00", 1),
    "cut_in_a_character": (SPEC.encode() + b"# \xe2\x82", "PL005", 5),
    "carriage_returns_alone": (SPEC.replace("\n", "\r").encode(), "PL1", 1),
    "crlf_and_an_unknown_name": (SPEC.replace("\n", "\r\n").encode() + b"batch over dq\r\n", "PL200", 5),
    "byte_order_mark_and_an_unknown_name": (b"\xef\xbb\xbfbatch over dq\n" + SPEC.encode(), "PL200", 1),
    "invisible_characters": (SPEC.replace("dp", "d\u200bp").encode(), "PL1", 1),
    "letters_that_look_alike": ("mesh d\u0440\n".encode() + SPEC.encode(), "PL1", 1),
    "direction_marks": (SPEC.encode() + "batch over \u202edp\n".encode(), "PL1", 5),
    "terminal_codes": (SPEC.encode() + b"batch over \x1b[31mdp\n", "PL1", 5),
    "an_image": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PL006", 3),
}

TEXTS = {
    # name -> text after SPEC, code, line
    "unknown_axis": ("batch over data\n", "PL200", 5),
    "unknown_name_in_arithmetic": ("scale model by Q\n", "PL201", 5),
    "unknown_weights": ("freeze modle\n", "PL202", 5),
    "unknown_strategy": ("use zero4(dp)\n", "PL203", 5),
    "unknown_option": ("use fsdp(dp, reshard = true)\n", "PL205", 5),
    "division_by_zero": ("scale model by 1/0\n", "PL401", 5),
    "division_by_what_can_be_zero": ("scale model by 1/(dp - 2)\n", "PL401", 5),
    "division_by_a_hidden_zero": ("scale model by 1/(dp - dp)\n", "PL401", 5),
    "remainder_by_zero": ("assume P % 0 == 0\n", "PL401", 5),
    "size_zero": ("weights none_left { size 0 }\n", "PL4", 5),
    "size_negative": ("weights less { size -4 }\n", "PL4", 5),
    "axis_of_size_zero": ("mesh tp = 0\n", "PL4", 5),
    "axis_of_negative_size": ("mesh tp = -2\n", "PL4", 5),
    "axis_of_half_a_device": ("mesh tp = 1/2\n", "PL4", 5),
    "no_microbatches": ("microbatches 0\n", "PL4", 5),
    "integer_too_long": ("scale model by " + "9" * 100_000 + "\n", "PL109", 5),
    "axis_twice": ("mesh dp\n", "PL210", 5),
    "let_twice": ("let P = 2\n", "PL210", 5),
    "weights_twice": ("weights model { size 1 }\n", "PL210", 5),
    "strategy_twice": ("strategy a(d) { batch over d }\n" * 2, "PL210", 6),
    "strategies_in_a_circle": ("strategy a(d) { use b(d) }\nstrategy b(d) { use a(d) }\nuse a(dp)\n", "PL302", 7),
    "a_strategy_uses_itself": ("strategy a(d) { use a(d) }\nuse a(dp)\n", "PL302", 6),
    "lets_in_a_circle": ("let a = b, b = a\n", "PL4", 5),
    "strategies_that_double": (
        "strategy s0(d) { batch over d }\n"
        + "".join(f"strategy s{i}(d) {{\n  use s{i - 1}(d)\n  use s{i - 1}(d)\n}}\n" for i in range(1, 40))
        + "use s39(dp)\n",
        "PL30",
        None,
    ),
    "lets_that_double": (
        "let a0 = P\n" + "".join(f"let a{i} = a{i - 1}*a{i - 1} + a{i - 1}\n" for i in range(1, 60)) + "scale model by a59\n",
        "PL406",
        None,
    ),
    "numbers_that_double": (
        "let a0 = 2\n" + "".join(f"let a{i} = a{i - 1}*a{i - 1}\n" for i in range(1, 60)) + "scale model by a59\n",
        "PL406",
        None,
    ),
    "scales_without_end": (
        "let b, c\nstep * {\n  each microbatch { accumulate }\n" + "  scale by dp + P + b + c\n" * 150 + "  update\n}\n",
        "PL406",
        1,
    ),
    "imports_outside": ('import "../other.place"\n', "PL021", 5),
    "imports_from_the_root": ('import "/etc/hosts"\n', "PL021", 5),
    "imports_nothing": ('import "none.place"\n', "PL020", 5),
    "imports_a_folder": ('import "folder"\n', "PL02", 5),
    "a_name_too_long_for_a_file": ("use " + "a" * 250 + "(dp)\n", "PL203", 5),
    "imports_a_long_name": ("import \"" + "a" * 240 + ".place\"\n", "PL020", 5),
    "imports_a_longer_name": ("import \"" + "a" * 5_000 + ".place\"\n", "PL119", 5),
    "imports_from_a_deep_folder": ("import \"" + "a/" * 110 + "b.place\"\n", "PL020", 5),
    "imports_itself": ('import "a.place"\n', "PL022", 5),
    "imports_in_a_circle": ('import "b.place"\n', "PL023", 5),
    "imports_bad_text": ('import "bytes.place"\n', "PL02", 5),
    "imports_out_through_a_link": ('import "link.place"\n', "PL021", 5),
}  # fmt: skip


def checked(path: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    start = time.process_time()
    code = main(["check", path, *options])
    spent = time.process_time() - start
    out, err = capsys.readouterr()
    assert err == ""
    assert spent < LIMIT_S, f"{spent:.1f} s"
    assert max(map(len, out.split("\n"))) < 2_000, "the report is readable"
    return code, out


def assert_coded(out: str, code: str, line: int | None, path: str = "a.place") -> None:
    """The first error has this code (or one that begins so), in this line."""
    first = re.search(r"^error\[(\w+)\]: .+\n *--> ([^:\n]+)(?::(\d+):\d+)?$", out, re.MULTILINE)
    assert first is not None, out[:2000]
    assert first[1].startswith(code) and first[1] not in ("PL900", "PL902", "PL903"), out[:2000]
    if line is not None:
        assert (first[2], first[3]) == (path, str(line)), out[:2000]


@pytest.mark.parametrize("name", BYTES)
def test_bytes(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, code, line = BYTES[name]
    (here / "a.place").write_bytes(data)
    got, out = checked("a.place", capsys)
    assert got == 2, out[:2000]
    assert_coded(out, code, line)


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, code, line = TEXTS[name]
    inside = here / "inside"
    (inside / "folder").mkdir(parents=True)
    (here / "other.place").write_text("let a = 1\n")
    (inside / "b.place").write_text('import "a.place"\n')
    (inside / "bytes.place").write_bytes(b"let a\xff = 1\n")
    if hasattr(os, "symlink"):
        os.symlink(here / "other.place", inside / "link.place")
    os.chdir(inside)
    (inside / "a.place").write_text(SPEC + text)
    got, out = checked("a.place", capsys)
    assert got == 2, out[:2000]
    assert_coded(out, code, line)


@pytest.mark.parametrize(
    "text",
    [
        SPEC.replace("\n", "\r\n"),
        "\ufeff" + SPEC,
        SPEC.rstrip("\n"),
        SPEC + "\n" * 1_000,
        SPEC.replace(" ", " " * 1_000),
        SPEC.replace("size P", f"size {HUGE}*P"),
        SPEC + f"mesh tp = {HUGE}\n",
        SPEC.replace("mesh dp", f"mesh dp = {HUGE}"),
        SPEC + f"microbatches {HUGE}\n",
        SPEC + f"scale model by {HUGE}/{HUGE}\n",
    ],
)
def test_odd_and_right(text: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_bytes(text.encode())
    got, out = checked("a.place", capsys)
    assert got == 0, out[:2000]


def test_huge_sizes_on_the_command_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(SPEC)
    assert checked("a.place", capsys, "--at", f"dp={HUGE}")[0] == 0
    got, out = checked("a.place", capsys, "--at", "dq=2")
    assert got == 2
    assert_coded(out, "PL", None)


def test_a_wrong_spec_of_huge_size_is_no_hang(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mesh that cannot be simulated: undecided, with a reason, or refuted; and soon."""
    (here / "a.place").write_text(SPEC.replace("mesh dp", f"mesh dp = {HUGE}") + "sync model over dp by none\n")
    got, out = checked("a.place", capsys)
    assert got in (1, 3), out[:2000]


def test_a_folder_named_as_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").mkdir()
    got, out = checked("a.place", capsys)
    assert got == 2
    assert_coded(out, "PL010", None)
    assert main(["show", "a.place"]) == 2
    assert "error[PL002]: this is a folder\n" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the administrator may read everything")
def test_what_may_not_be_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(SPEC)
    (here / "a.place").chmod(0)
    got, out = checked("a.place", capsys)
    assert got == 2
    assert_coded(out, "PL004", 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs special files")
def test_names_that_are_no_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("none.place", "a\nb.place", "x" * 5_000, "none/../a.place"):
        assert main(["check", path]) == 2
        out, err = capsys.readouterr()
        assert err == ""
        assert re.match(r"error\[PL00[14]\]: ", out), out


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way there")
@pytest.mark.parametrize("command", [["check", "a.place"], ["explain"], ["show", "a.place"], ["fmt", "--diff", "a.place"]])
def test_a_closed_pipe(command: list[str], here: Path) -> None:
    (here / "a.place").write_text("mesh  dp\n" + SPEC.split("\n", 1)[1] + "sync model over dp by none\n")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "placelogic", *command],
            stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("limit", ["nan", "inf"])
def test_endless_timeouts(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-", "--timeout", limit]) == 2
    said = "is not in the range" if limit == "inf" else "is no number that can be computed with"
    assert f"{limit} {said}" in capsys.readouterr().err
