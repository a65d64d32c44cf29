"""FW08: positions of a split sequence, and random numbers inside layers."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

import placelogic
from placelogic.report.diagnostic import SpecReport
from tests.layers.agree import judge
from tests.layers.draw import draw

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


def with_streams(seed: int) -> str | None:
    """A random spec, with random numbers and positions stated at random; None where it has neither."""
    random = Random(f"streams {seed}")
    text = draw(seed)
    if random.random() < 0.8:
        text = re.sub(r"^(forward|backward|sync|scale) .*\n", "", text, flags=re.MULTILINE)
    words = (" dropout", " positions", " dropout positions")
    text = re.sub(r"= attention .* fused", lambda match: match[0] + random.choice(words), text)
    axes = text.split("\n")[0].removeprefix("mesh ").split(", ")
    lines, block = [], ""
    for line in text.split("\n"):
        block = line.split(" ")[1] if line.startswith("block ") else block
        made = re.match(r"  (\w+) = (dropout|attention)(.*)", line)
        if made and (made[2] == "dropout" or "dropout" in made[3]):
            lines.append(f"random {made[1]} of {block} over {random.choice(axes)} {random.choice(['same', 'different'])}")
        if made and "positions" in made[3]:
            lines.append(f"positions {made[1]} of {block} over {random.choice(axes)} {random.choice(['local', 'global'])}")
    return text + "\n".join(lines) + "\n" if lines else None


def test_proof_and_simulation_agree() -> None:
    found: Counter[str] = Counter()
    for seed in range(40):
        text = with_streams(seed)
        if text is not None:
            judged = judge(text, seed, meshes=2)
            assert judged.disagreement is None, f"seed {seed}: {judged.disagreement}\n{text}"
            found[judged.verdict] += 1
            found.update(judged.codes)
    assert found["FW08"] >= 3 and found["proved"] >= 3, found
