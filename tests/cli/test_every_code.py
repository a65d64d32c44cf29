"""Every code of the semantics can be reached through the command line, and prints what it should.

The specs are those that `placelogic explain` shows; `every_code.txt` holds what is printed about
each: the first line, the place with its carets, the smallest counterexample and its table."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from itertools import takewhile
from pathlib import Path
from types import ModuleType

import pytest

from placelogic.cli import main
from placelogic.explain.entries import codes, entry

PAGE = Path(__file__).resolve().with_name("every_code.txt")
WANTED = {
    code: text.strip("\n")
    for code, text in re.findall(r"^== (\w+)\n(.*?)(?=^== |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
}
GATE = {"EX03": 'fail-on = ["EX03"]\n', "EX04": "minimum-sizes = { dp = 64 }\n"}
GATE |= {"EX05": GATE["EX04"] + 'fail-on = ["EX05"]\n', "EX06": 'fail-on = ["EX06"]\n'}
"""What only the gate tells, and the configuration with which it does."""
OPTIONS = {"EX02": ["--require-stated"], "UN01": ["--rlimit", "200000"]}
EXIT = {"VA": 3, "UN": 3, "NT": 0}
"""By family; the others are refuted or not as expected, 1."""

ELSEWHERE = {"PL", "UN02", "UN04", "NT02", "NT06", "CL02"} | {
    code for code in codes() if code.startswith(("UB", "NT2"))
}
"""Errors in the input; tests below; what a second solver says; tests of costs; what is about a configuration (tests/frontends)."""


def spec(code: str) -> str:
    """The first spec of the entry, without the expectation that would make it pass."""
    text = re.search(r"^```place.*?\n(.*?)^```$", entry(code).body, re.M | re.S)
    assert text is not None
    return text[1] if code == "EX01" else re.sub(r"^expect .*\n", "", text[1], flags=re.M)


def printed(code: str) -> tuple[int, str]:
    """Exit code and what is printed about the code, when its spec is `a.place` in this folder."""
    Path("a.place").write_text(spec(code), encoding="utf-8")
    command = ["check", "a.place", *OPTIONS.get(code, [])]
    if code in GATE:
        Path("placelogic.toml").write_text(GATE[code], encoding="utf-8")
        command = ["gate", "a.place", "--no-cache"]
    out = StringIO()
    with redirect_stdout(out):
        exit_code = main(command)
    for block in out.getvalue().split("\n\n"):
        lines = block.split("\n")
        if lines[0].startswith(f"error[{code}]: "):
            # Fix and help come last, and have tests of their own.
            told = takewhile(lambda line: not re.match(r" *= (fix|help)", line), lines)
            return exit_code, "\n".join(told).strip("\n")
    return exit_code, "\n".join(line for line in out.getvalue().split("\n") if f"note[{code}]" in line)


@pytest.mark.parametrize("code", WANTED)
def test_what_is_printed(code: str, here: Path) -> None:
    """`python tests/cli/test_every_code.py` writes what is printed now; look at the difference."""
    assert printed(code) == (EXIT.get(code[:2], 1), WANTED[code])


def test_every_code_is_here() -> None:
    assert set(WANTED) == set(codes()) - ELSEWHERE
    for code, text in WANTED.items():
        if not code.startswith("NT"):
            first, place = text.split("\n")[:2]
            assert first.startswith(f"error[{code}]: ")
            assert re.fullmatch(r" +--> a\.place:\d+:\d+", place)
            assert re.search(r"^ +\|.*\^", text, re.M), code


def test_a_counterexample_that_does_not_survive(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Right:
        right = True

        def wrong(self, weights: str) -> bool:
            return False

    simulate = ModuleType("placelogic.simulate")
    simulate.SimulationTooLarge = ValueError  # type: ignore[attr-defined]
    simulate.simulate_any = lambda *arguments: Right()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "placelogic.simulate", simulate)
    (here / "a.place").write_text(spec("GI02"))
    assert main(["check", "a.place"]) == 3
    out = capsys.readouterr().out
    assert "error[UN02]: undecided: " in out
    assert ", but not in the exact simulation\n --> a.place:" in out
    assert "= help: this is a bug in placelogic: please report it with this file\n" in out


def test_nothing_stated_is_told_at_the_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(spec("NT02"))
    assert main(["check", "a.place"]) == 0
    assert "\nnothing is stated: what is derived is right by construction." in capsys.readouterr().out
    assert main(["check", "a.place", "--format", "json"]) == 0
    assert '"code": "NT02"' in capsys.readouterr().out


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    told = [f"== {code}\n{printed(code)[1]}\n" for code in codes() if code not in ELSEWHERE]
    about = "What `placelogic check` prints about each code, for the spec that `placelogic explain` shows."
    PAGE.write_text("\n".join([about + "\n", *told]), encoding="utf-8")
