"""What a step sends the more of, the more micro-batches it has."""

from __future__ import annotations

import pytest

import placelogic
from placelogic.cost.repeated import Repeated, repeated
from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.syntax.parse import parse

HEAD = "mesh dp, tp, pp\nlet h, L\n"
WEIGHTS = "weights attn { size 4*h*h*L, layers L }\nweights norm { size 2*h*L, layers L, kind vector }\n"


def of(text: str, microbatches: str = "microbatches M\n") -> tuple[Repeated, ...]:
    (spec,) = elaborate_file(parse(HEAD + microbatches + WEIGHTS + text, "t.place"))
    return repeated(complete(spec))


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("use zero2(dp)", "(M + 1)/2"),  # M reduce-scatters and a gather, instead of one and one
        ("use zero3(dp)", "M"),  # two gathers and a reduce-scatter each time
        ("use fsdp(dp, reshard_after_forward = false)", "M"),
        ("use fsdp(dp, reshard_after_forward = true) * pipeline(pp)", "M"),
        ("use zero2(dp) * pipeline(pp) * tensor_parallel(tp)", "(M + 1)/2"),
    ],
)
def test_factors(text: str, factor: str) -> None:
    (one,) = of(text)
    assert (one.axes, one.weights, one.count, one.factor) == (("dp",), ("attn", "norm"), "M", factor)


@pytest.mark.parametrize("text", ["use zero1(dp)", "use data_parallel(dp) * tensor_parallel(tp)", "use pipeline(pp)"])
def test_what_is_sent_once_is_not_told(text: str) -> None:
    assert of(text) == ()


def test_messages() -> None:
    (one,) = of("use zero3(dp)")
    assert [(sent.operation, sent.what, sent.times) for sent in one.sent] == [
        ("all-gather", "params for forward", "M"),
        ("all-gather", "params for backward", "M"),
        ("reduce-scatter", "gradients", "M"),
    ]


def test_counts_that_are_given() -> None:
    (one,) = of("use zero2(dp)", "let M = 8\nmicrobatches M\n")
    assert (one.count, one.factor, one.sent[0].times) == ("8", "9/2", "8")
    (one,) = of("use zero2(dp)", "microbatches 8\n")
    assert (one.count, one.factor, one.sent[0].times) == ("8", "9/2", "8")
    assert of("use zero2(dp)", "let M = 1\nmicrobatches M\n") == ()
    assert of("use zero2(dp)", "") == ()


def test_stated_loops() -> None:
    step = "step * {\n  each microbatch but last { accumulate }\n  last microbatch {\n    accumulate\n  }\n"
    text = "use data_parallel(dp)\n" + step + "  scale by 1/M\n  reduce over dp by mean\n  update\n}\n"
    assert of(text) == ()
    text = "use data_parallel(dp)\nstep * {\n  each microbatch {\n    reduce over dp by mean\n    accumulate\n  }\n  update\n}\n"
    (one,) = of(text)
    assert one.factor == "M"


@pytest.mark.parametrize(
    ("strategy", "why"),
    [
        ("zero2(dp)", "it is the price of keeping gradients cut between micro-batches"),
        ("data_parallel(dp)", "gradients are kept whole along dp, so they could be reduced once, after the loop"),
    ],
)
def test_the_note_says_whether_it_could_be_reduced_once(strategy: str, why: str) -> None:
    step = "step w {\n  each microbatch {\n    reduce over dp by mean\n    accumulate\n  }\n  scale by 1/M\n  update\n"
    gather = "  gather params over dp\n" if strategy.startswith("zero2") else ""
    text = f"mesh dp\nlet P\nmicrobatches M\nweights w {{ size P }}\nuse {strategy}\n{step}{gather}}}\n"
    (spec,) = placelogic.check(text).specs
    assert spec.verdict == "proved"
    (note,) = [finding for finding in spec.findings if finding.code == "NT04"]
    assert note.help == f"right, only costly: {why}"
