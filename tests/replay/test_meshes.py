"""On which mesh a spec is replayed, and what is expected there; without any process."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.program.program import Program
from placelogic.prove import prove
from placelogic.replay.cases import Case, Left, cases
from placelogic.replay.meshes import NoMesh, exercising
from placelogic.syntax.parse import parse

WEIGHTS = "let P\nweights w { size P }\n"


def program_of(text: str) -> Program:
    (spec,) = elaborate_file(parse(text, "a.place"))
    return complete(spec)


def found(text: str, wanted: Mapping[str, int] | None = None) -> Case | Left:
    program = program_of(text)
    return next(cases(program, prove(program), wanted or {}))


@pytest.mark.parametrize(
    ("mesh", "sizes", "turns"),
    [
        ("mesh dp, tp\nmicrobatches M\n", {"dp": 2, "tp": 2}, 2),
        ("mesh dp, tp\nassume dp % 3 == 0\n", {"dp": 3, "tp": 2}, None),
        ("mesh dp, tp\nassume tp == 1\nmicrobatches M\nassume M > 2\n", {"dp": 2, "tp": 1}, 3),
        ("mesh dp = 3, tp\nassume dp == 3\n", {"dp": 3, "tp": 2}, None),
        ("mesh dp = 64, tp = 1\n", {"dp": 2, "tp": 1}, None),
    ],
)
def test_every_axis_is_in_use(mesh: str, sizes: dict[str, int], turns: int | None) -> None:
    program = program_of(mesh + WEIGHTS + "use data_parallel(dp) * tensor_parallel(tp)\n")
    meeting = exercising(program, {})
    assert meeting.sizes == sizes
    assert meeting.quantities.get("M") == turns


def test_micro_batches_are_whole() -> None:
    program = program_of(f"mesh dp\nlet G, M = G / 4\nmicrobatches M\n{WEIGHTS}use data_parallel(dp)\n")
    assert exercising(program, {}).quantities["G"] == 4


def test_many_microbatches_become_two_and_are_divided_by_two() -> None:
    case = found(f"mesh dp = 8\nmicrobatches 384\n{WEIGHTS}use data_parallel(dp)\n")
    assert isinstance(case, Case)
    assert case.verdict == "proved"
    assert case.meeting.smaller == {"dp": 8, "microbatches": 384}


def test_a_step_that_is_right_at_its_own_sizes_only() -> None:
    text = f"mesh dp = 64\n{WEIGHTS}batch over dp\nsync * over dp by sum\nscale * by 1/64\n"
    left = found(text)
    assert isinstance(left, Left)
    assert left.reason.startswith("with its sizes made smaller it is another step")


def test_sizes_of_ones_own() -> None:
    case = found(f"mesh dp = 64\n{WEIGHTS}use data_parallel(dp)\n", {"dp": 4})
    assert isinstance(case, Case)
    assert (case.meeting.sizes, case.expected) == ({"dp": 4}, "equal")
    with pytest.raises(NoMesh, match="no size `tp`"):
        exercising(program_of(f"mesh dp\n{WEIGHTS}use data_parallel(dp)\n"), {"tp": 2})


def test_a_counterexample_names_weights_and_a_factor() -> None:
    text = (
        f"mesh tp\n{WEIGHTS}weights norm {{ size P, kind vector }}\nuse tensor_parallel(tp)\nsync norm over tp by sum\n"
    )
    case = found(text)
    assert isinstance(case, Case)
    assert (case.code, case.weights, case.expected) == ("GI02", "norm", "different")
    assert {factor for _, factor in case.factors} == {Fraction(2)}


def test_counts_of_uneven_tokens_are_taken_over() -> None:
    case = found(f"mesh dp\n{WEIGHTS}use data_parallel(dp)\ntokens uneven\nloss mean local\n")
    assert isinstance(case, Case)
    assert case.code == "GI04"
    assert case.counts == {("dp", 0): 1, ("dp", 1): 2}


def test_sizes_that_do_not_divide_cannot_be_carried_out() -> None:
    one = found("mesh tp = 6\nmodel gpt { layers 2, hidden 64, heads 16, vocab 96 }\nuse tensor_parallel(tp)\n")
    assert isinstance(one, Left)
    assert "cannot be carried out" in one.reason
