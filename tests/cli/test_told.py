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


SCALED = """\
mesh dp, tp
microbatches M
weights attn { size 4096 }
weights norm { size 64, kind vector }
loss mean global
use data_parallel(dp) * sequence_parallel(tp)
sync * over dp by sum
sync * over microbatches by sum
sync norm over tp by sum
"""


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("scale * by 1/(dp*tp)", 10),
        ("scale * by dp*M*tp", 10),
        # Two factors that are wrong only together: no one of them is.
        ("scale * by 1/tp\nscale * by 1/dp", 7),
        ("scale * by 1/M\nscale * by 1/dp\nscale * by M", 11),
    ],
)
def test_the_only_factor_is_pointed_at(lines: str, line: int, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(SCALED + lines + "\n", here, capsys)
    assert out.startswith("error[GI03]: the gradient of `attn`, `norm` is wrong by the constant factor ")
    assert out.split("\n")[1].strip() == f"--> a.place:{line}:1"
