"""What can be written at a place."""

from __future__ import annotations

import pytest

from placelogic.editor.complete import choices
from placelogic.editor.text import Text

HEAD = """mesh dp, tp = 8
axis all = dp * tp
let h
weights norm { size 2*h, dims wide, kind vector }
model llama { layers 80, hidden h, heads 4, ffn 9, vocab 9 }
"""


def offered(line: str, head: str = HEAD) -> list[str]:
    """The choices at the end of a line below the head; `|` marks another place in it."""
    at = line.find("|") if "|" in line else len(line)
    source = head + line.replace("|", "") + "\n"
    return [choice.text for choice in choices(Text("t.place", source), head.count("\n") + 1, at + 1)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("use tens", ["tensor_parallel"]),
        ("use zero1(dp) * pipe", ["pipeline"]),
        ("use zero1(d", ["dp", "d = "]),
        ("use pipeline(tp, sch", ["schedule = "]),
        ("use pipeline(tp, schedule = zb", ["zbv"]),
        ("sync norm ov", ["over"]),
        ("sync norm over t", ["tp"]),
        ("sync norm over a", ["all"]),
        ("sync norm over tp by ", ["mean", "sum", "none"]),
        ("sync n", ["norm"]),
        ("freeze at", ["attn"]),  # of the model
        ("sync vec", ["vector"]),
        ("scale norm by 1/t", ["tp"]),
        ("scale norm b", ["by"]),
        ("place * over dp { params sh", ["sharded"]),
        ("place * over dp { params sharded on w", ["wide"]),
        ("place * over dp { opt", ["optimizer"]),
        ("place * over dp = (S", ["S", "S*", "sharded"]),
        ("place * over t| { params sharded }", ["tp"]),
        ("optimizer mu", ["muon"]),
        ("precision { par", ["params"]),
        ("precision { params bf", ["bf16"]),
        ("expect refuted GI02 no", ["norm"]),
        ("expect refuted GI07", ["GI07"]),
        ("model ll", ["llama"]),
        ("model moe { exp", ["experts", "experts_over"]),
        ("weights x { size 2*", ["h"]),
        ("weights x { kind mat", ["matrix"]),
        ("weights x { size h, routed over d", ["dp"]),
        ("step norm { red", ["reduce"]),
        ("clip glob", ["global_norm"]),
        ("stages over tp { schedule gp", ["gpipe"]),
        ("mesh x = ", ["h"]),
        ("let y = ", ["h"]),
        ("let n", []),  # a name is being declared
        ("mesh d", []),
        ("# sync n", []),
        ("sync norm over tp # ov", []),
        ('import "x', []),
        ("sync ! over t", []),  # an error before the place, on its line
    ],
)
def test_choices(line: str, expected: list[str]) -> None:
    assert [text for text in offered(line) if text not in ("microbatches", "none")] == [
        text for text in expected if text != "none"
    ]


def test_the_beginning_of_a_line_takes_every_statement() -> None:
    found = offered("")
    assert {"mesh", "weights", "use", "step", "strategy", "expect"} <= set(found)
    assert "over" not in found


def test_in_blocks_over_several_lines() -> None:
    head = HEAD + "step norm {\n  each microbatch {\n"
    assert {"reduce", "accumulate"} <= set(offered("    ", head))
    head = HEAD + "place norm over dp {\n  params sharded\n"
    assert offered("  optimizer ga", head) == ["gathered"]


def test_lines_with_errors_before_the_place_are_passed_over() -> None:
    head = HEAD + "sync norm ovr tp\nplace norm over (\n"
    assert offered("sync norm over t", head) == ["tp"]


def test_details() -> None:
    found = {c.text: c for c in choices(Text("t.place", HEAD + "use fs\n"), 6, 7)}
    assert found["fsdp"].detail == "fsdp(d, reshard_after_forward = true)"
    found = {c.text: c for c in choices(Text("t.place", HEAD + "batch over \n"), 6, 12)}
    assert found["tp"].detail == "axis of size 8"
    assert found["all"].detail == "axis = dp * tp"
