"""`placelogic explain` as a command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.explain.entries import codes, entry, page
from placelogic.report.explained import entry_lines, overview_lines
from placelogic.report.layout import cells, plain

ROOT = Path(__file__).parents[2]


def test_one_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GI02"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("GI02: counted more than once: copies were summed, or a share twice\n\n")
    assert "\n\nA spec that shows it\n\n    mesh tp\n    let h, L\n" in out
    assert "\n    expect refuted GI02 norm\n\nMended\n\n" in out
    assert "```" not in out and "##" not in out


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    for code in codes():
        assert f"\n  {code:<6}{entry(code).title}\n" in out
    assert out.startswith("Gradient integrity\n  GI01  ")


def test_all_as_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--all"]) == 0
    assert capsys.readouterr().out == page()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["SC1"], "placelogic explain: there is no code `SC1`; did you mean `SC01`? (see placelogic explain --help)\n"),
        (["GI02", "--all"], "placelogic explain: name a code or say --all, not both (see placelogic explain --help)\n"),
    ],
)
def test_wrong_use(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_prose_fits_the_terminal(width: int) -> None:
    for code in codes():
        for line in entry_lines(entry(code), width):
            text = plain(line)
            assert cells(text) <= min(width, 100) or text.startswith("    ") or " " not in text.strip(), text
    for line in overview_lines(width):
        assert cells(plain(line)) <= max(width, 44)


def test_it_loads_little() -> None:
    script = "import sys; from placelogic.cli import main; main(['explain', 'GI02']); print(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)}
    )
    loaded = {name.split(".")[0] for name in done.stdout.split("\n")[-2].split()}
    assert not loaded & {"z3", "lark", "rich", "sympy", "torch"}
    assert "placelogic.syntax" not in done.stdout and "placelogic.prove" not in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_colours_on_a_terminal_only() -> None:
    import pty

    main_end, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "placelogic", "explain", "SC04"], stdout=other, stderr=other,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(other)
    out = b""
    try:
        while chunk := os.read(main_end, 65536):
            out += chunk
    except OSError:
        pass  # how Linux reports the end
    process.wait(timeout=60)
    os.close(main_end)
    shown = out.decode().replace("\r\n", "\n")
    assert re.match(r"\x1b\[[0-9;]*mSC04\x1b", shown)
    text = "\n".join(plain(line) for line in entry_lines(entry("SC04"), 100)).strip()
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).strip() == re.sub(r"\n{3,}", "\n\n", text)


@pytest.mark.parametrize("failing", [True, False])
def test_a_report_says_once_where_to_read_more(failing: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = "mesh tp\nlet h\nweights norm { size 2*h, kind vector }\nuse tensor_parallel(tp)\n"
    by = "sum" if failing else "mean"
    for name in ("a", "b"):
        (tmp_path / f"{name}.place").write_text(f"{spec}sync norm over tp by {by}\n")
    assert main(["check", str(tmp_path)]) == int(failing)
    line = "\nnext: `placelogic explain GI02` says how this comes about and what mends it\n"
    assert capsys.readouterr().out.count(line) == int(failing)
