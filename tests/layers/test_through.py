"""Gradients that do not come as the facts say have conditions of their own, named and counted; all others stay as they are."""

from __future__ import annotations

from collections import Counter

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.prove.prover import Decision, decide
from placelogic.syntax.parse import parse

# In the first of two layers the gradients have a factor that is 1 where tp is 2.
TEXT = """\
mesh dp, tp
assume tp == 2
dims batch, sequence, hidden, ffn
weights norm { kind vector }
weights up { kind matrix }
weights down { kind matrix }
block layer repeat 2 {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  n = norm d with norm over hidden
}
freeze up, down
use zero1(dp) * tensor_parallel(tp)
backward x of layer over tp by sum scale tp/2
"""
UNPUBLISHED = "step norm {\n  each microbatch { accumulate }\n  reduce over dp by mean\n  update\n}\n"
LINES = """\
mesh dp, tp
weights w { size 8 }
weights v { size 8 }
use zero1(dp)
assume tp >= 2
backward w over tp by none scale 1/tp
backward v over tp by sum
"""


def decided(text: str) -> Decision:
    (spec,) = elaborate_file(parse(text, "layer.place"), {})
    return decide(complete(spec))


def told(text: str) -> list[tuple[str, str | None]]:
    return [(finding.code, finding.weights) for finding in decided(text).report.findings if finding.severity == "error"]


def names(text: str) -> Counter[str]:
    return Counter(one.name for one in decided(text).basis.questions if one.kind == "obligation")


def test_the_gradient_of_each_way_is_asked_about_by_its_name() -> None:
    found = names(TEXT)
    assert [name for name in found if name.startswith("gradient of norm")] == [
        "gradient of norm at the update",
        "gradient of norm at the update, by n of layer",
    ]
    assert set(found.values()) == {1}


def test_what_comes_through_a_stated_line_is_stated() -> None:
    """Also where the step is derived: the gradient of the norm, and that its copies along tp stay equal."""
    report = decided(TEXT).report
    assert report.verdict == "proved"
    assert report.obligations is not None and report.obligations.stated == 2


def test_what_is_no_value_is_asked_once() -> None:
    """That new parameters are kept back does not depend on how the gradient came."""
    assert told(TEXT + UNPUBLISHED) == [("SC04", "norm")]


def test_a_fault_of_other_kind_does_not_make_a_line_wrong() -> None:
    """w is right where it comes before v; that the shards of v are not published changes nothing about that."""
    assert told(LINES + UNPUBLISHED.replace("norm", "v").replace("  update", "  scale by 1/tp\n  update")) == [
        ("SC04", "v")
    ]
