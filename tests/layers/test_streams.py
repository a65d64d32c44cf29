"""FW08: positions of a split sequence, and random numbers inside layers."""

from __future__ import annotations

import pytest

import placelogic
from placelogic.report.diagnostic import SpecReport

GPT = "mesh tp, cp, dp, pp\nmodel gpt { layers 4, hidden 64, heads 4, vocab 96, positions 128 }\n"
LLAMA = "mesh tp, cp, dp\nmodel llama { layers 4, hidden 64, heads 4, ffn 64, vocab 96 }\n"


def check(text: str) -> SpecReport:
    (spec,) = placelogic.check(text + "\n").specs
    return spec


@pytest.mark.parametrize(
    ("lines", "axis"),
    [
        ("use context_parallel(cp)\npositions c of layer over cp local", "cp"),
        ("use ulysses(cp)\npositions c of layer over cp local", "cp"),
        ("use context_parallel(cp)\npositions c of layer over cp global", None),
        ("use tensor_parallel(tp)\npositions c of layer over tp local", None),
        ("use data_parallel(dp)\npositions c of layer over dp local", None),
        ("use context_parallel(cp) * data_parallel(dp)\npositions c of layer over cp, dp local", "cp"),
    ],
)
def test_rotary_positions(lines: str, axis: str | None) -> None:
    report = check(LLAMA + lines)
    errors = [(f.code, f.axes) for f in report.findings if f.severity == "error"]
    assert errors == ([("FW08", (axis,))] if axis else [])
    assert report.verdict == ("refuted" if axis else "proved")


def test_learned_positions_are_read_where_the_piece_is_made() -> None:
    assert check(GPT + "use context_parallel(cp)\npositions f of start over cp local").verdict == "refuted"
    assert check(GPT + "use context_parallel(cp)\npositions f of start over cp global").verdict == "proved"


@pytest.mark.parametrize(
    ("lines", "verdict", "severity"),
    [
        # after the all-reduce of tensor parallelism every device has all of the stream
        ("use tensor_parallel(tp)\nrandom d of layer over tp same", "proved", None),
        ("use tensor_parallel(tp)\nrandom d of layer over tp different", "refuted", "error"),
        # sequence parallelism cuts it
        ("use sequence_parallel(tp)\nrandom d of layer over tp different", "proved", None),
        ("use sequence_parallel(tp)\nrandom d of layer over tp same", "proved", "warning"),
        # attention works on its own heads either way
        ("use tensor_parallel(tp)\nrandom c of layer over tp different", "proved", None),
        ("use tensor_parallel(tp)\nrandom c of layer over tp same", "proved", "warning"),
        ("use data_parallel(dp)\nrandom d of layer over dp different", "proved", None),
        ("use data_parallel(dp)\nrandom d of layer over dp same", "proved", "warning"),
        ("use context_parallel(cp)\nrandom d of layer over cp different", "proved", None),
        # every stage has layers of its own
        ("use pipeline(pp)\nrandom d of layer over pp different", "proved", None),
        ("use pipeline(pp)\nrandom d of layer over pp same", "proved", None),
    ],
)
def test_random_numbers(lines: str, verdict: str, severity: str | None) -> None:
    report = check(GPT + lines)
    assert report.verdict == verdict
    assert [f.severity for f in report.findings if f.code == "FW08"] == ([severity] if severity else [])


def test_what_is_printed() -> None:
    text = str(placelogic.check(LLAMA + "use context_parallel(cp)\npositions c of layer over cp local\n"))
    for line in (
        "error[FW08]: each device along cp has its own piece of the sequence, and counts its places from 0 for `c`",
        "= smallest counterexample: cp = 2 (everything else 1)",
        "cp=1     positions of piece 0, for piece 1   positions of the whole sequence",
        "= fix (verified): write `positions c of layer over cp global` in line 4",
    ):
        assert line in text, text
