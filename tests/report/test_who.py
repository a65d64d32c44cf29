"""The reviewer's table: who splits, who sums, who divides, and where."""

from __future__ import annotations

from placelogic.report.who import table as rows
from placelogic.session.session import Session

SPEC = """mesh dp, tp, pp
let P
batch over dp
microbatches M
weights mlp { size P }
weights norm { size P, kind vector }
weights embed { size P, kind embedding, used on first and last of pp }
use zero1(dp) * sequence_parallel(tp) * pipeline(pp)
sync norm over tp by none
scale mlp by 1/dp
freeze embed
"""


def table() -> list[str]:
    (spec,) = Session(SPEC, "x.place").specs
    return rows(spec.program).splitlines()


def line(weights: str, axis: str) -> str:
    lines = table()
    start = next(i for i, text in enumerate(lines) if text.startswith(weights))
    return next(text for text in lines[start:] if f" {axis} " in text)


def test_shares_and_their_reduction():
    assert "share of the work" in line("mlp", "dp")
    assert "mean, scattered (derived)" in line("mlp", "dp")
    assert "gather (derived)" in line("mlp", "dp")


def test_what_a_person_stated_has_its_line():
    assert "not combined (line 9)" in line("norm", "tp")
    assert any("times 1/dp (line 10)" in text for text in table())


def test_tensor_shards_need_nothing():
    assert "own shard, whole" in line("mlp", "tp")
    assert "nothing to combine" in line("mlp", "tp")


def test_frozen_weights_and_end_stages():
    assert "frozen" in line("embed", "dp")
    assert "first and last" in line("embed", "pp")
