"""What a check tells, on specs that newcomers wrote: the table, the line it points at, and the way forward."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.cli import main

UNEVEN = """\
mesh dp = {}
let P
weights w {{ size P }}
batch over dp
tokens uneven
"""


def told(text: str, here: Path, capsys: pytest.CaptureFixture[str], code: int = 1) -> str:
    """What `check` prints."""
    (here / "a.place").write_text(text)
    assert main(["check", "a.place"]) == code
    return capsys.readouterr().out


def test_a_long_sum_says_that_it_is_cut_short(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(UNEVEN.format(4), here, capsys)
    assert "+ (7/8) g[dp=3: 2 tokens]   g[dp=0: 1 token] " in out and "..." not in out
    out = told(UNEVEN.format(6), here, capsys)
    rest = "g[dp=1: 2 tokens] + {0}g[dp=2: 2 tokens] + {0}g[dp=3: 2 tokens] + ..."
    assert f"(11/6) g[dp=0: 1 token] + (11/12) {rest.format('(11/12) ')}   " in out
    assert f"   g[dp=0: 1 token] + {rest.format('')}\n" in out
