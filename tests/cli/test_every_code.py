"""Every code of the semantics can be reached through the command line, and prints what it should.

The specs are those that `placelogic explain` shows; `every_code.txt` holds what is printed about
each: the first line, the place with its carets, the smallest counterexample and its table."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from placelogic.cli import main
from placelogic.explaining import codes, entry

PRINTED = Path(__file__).with_name("every_code.txt").read_text(encoding="utf-8")
WANTED = {code: text.strip("\n") for code, text in re.findall(r"^== (\w+)\n(.*?)(?=^== |\Z)", PRINTED, re.M | re.S)}
OPTIONS = {"EX02": ["--require-stated"], "UN01": ["--rlimit", "200000"]}
EXIT = {"VA": 3, "UN": 3, "NT": 0}
"""By family; the others are refuted or not as expected, 1."""


def spec(code: str) -> str:
    """The first spec of the entry, without the expectation that would make it pass."""
    text = re.search(r"^```place.*?\n(.*?)^```$", entry(code).body, re.M | re.S)
    assert text is not None
    return text[1] if code == "EX01" else re.sub(r"^expect .*\n", "", text[1], flags=re.M)


@pytest.mark.parametrize("code", WANTED)
def test_what_is_printed(code: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(spec(code))
    assert main(["check", "a.place", *OPTIONS.get(code, [])]) == EXIT.get(code[:2], 1)
    out = capsys.readouterr().out
    blocks = [block for block in out.split("\n\n") if f"[{code}]: " in block]
    told = [line for block in blocks for line in _told(block, code)]
    assert "\n".join(told).startswith(WANTED[code])


def _told(block: str, code: str) -> list[str]:
    """The block of an error without help and fix, which have tests of their own; of a note its line."""
    lines = block.split("\n")
    if lines[0].startswith(f"error[{code}]"):
        return [line for line in lines if not re.match(r" *= (fix|help)", line)]
    return [line for line in lines if f"note[{code}]" in line]


def test_every_code_is_here() -> None:
    elsewhere = {"PL", "UN02", "NT02"}  # NT02 is told by the closing lines
    assert set(WANTED) == set(codes()) - elsewhere
    for code, text in WANTED.items():
        if not code.startswith("NT"):
            first, place = text.split("\n")[:2]
            assert first.startswith(f"error[{code}]: ")
            assert re.fullmatch(r" --> a\.place:\d+:\d+", place)
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
