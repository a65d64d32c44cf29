"""The questions as they stand notice what is wrong with a normal form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import placelogic
from placelogic.prove import differ, divide, formula, kinds, ratio, sizes
from placelogic.prove.formula import FALSE
from placelogic.prove.ratio import ONE, ONE_POLY, Ratio
from placelogic.report.diagnostic import SpecReport

HEAD = "mesh dp, tp\nbatch over dp\nmicrobatches M\nweights w { size 4096 }\nuse data_parallel(dp)\n"
SUMMED_TWICE = HEAD + "sync w over dp by sum\nscale w by dp\n"
SHARE = HEAD + "sync w over dp by mean\nscale w by (dp + 1)/(dp + 2)\n"
REMAINDER = HEAD + "sync w over dp by mean\nscale w by 1 + dp % 2\n"
UNSYNCED = "mesh dp, tp\nbatch over dp\nweights w { size 4096 }\nuse data_parallel(dp)\nstep w { update }\n"
SUMMED = HEAD + "sync w over tp by sum\n"
ODD = """\
mesh tp
model llama { layers 32, hidden 4096, heads 32, kv_heads 8, ffn 14336, vocab 128256 }
use tensor_parallel(tp)
assume tp > 8
"""


def check(text: str) -> SpecReport:
    (report,) = placelogic.check(text).specs
    return report


def constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def no_numbers(num: Any, den: Any) -> Ratio:
    """A quotient whose numbers are lost."""
    found = RIGHT_RATIO(num, den)
    return Ratio(tuple((m, 1) for m, _ in found.num), tuple((m, 1) for m, _ in found.den))


RIGHT_RATIO, RIGHT_REDUCE = ratio.ratio, kinds._reduce

MUTANTS: dict[str, tuple[Any, str, Any, str]] = {
    "a product of polynomials is 1": (ratio, "poly_mul", constant(ONE_POLY), HEAD + "scale w by dp\n"),
    "a sum of polynomials is its first part": (ratio, "poly_add", lambda a, b: a, SHARE),
    "what is divided is cancelled": (ratio, "ratio", lambda num, den: ONE if num else ratio.ZERO, SUMMED_TWICE),
    "polynomials with one monomial are one": (ratio, "ratio", no_numbers, HEAD + "scale w by 2\n"),
    "two factors never differ": (
        formula, "_compare", lambda op, value: op in ("=", ">=", "<="), HEAD + "scale w by 2\n"),
    "sums never differ": (differ, "differs", constant(FALSE), UNSYNCED),
    "an `or` is false": (formula, "_either", constant(FALSE), SHARE),
    "an `and` is false": (formula, "_both", constant(FALSE), UNSYNCED),
    "a remainder is 0": (sizes.Sizes, "_rest", constant(ratio.ZERO), REMAINDER),
    "shares add up to copies": (differ, "_sum_differs", constant(FALSE), SUMMED),
    "a sum of copies counts them once": (
        kinds, "_reduce", lambda kind, *more: kinds.Moved(kind) if kind == kinds.REPLICATED else RIGHT_REDUCE(kind, *more),
        SUMMED),
    "what does not divide is whole": (divide, "_whole", constant(True), ODD),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_normal_form_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would prove what is wrong, or refuse to; a solver does not confirm it."""
    module, function, wrong, text = MUTANTS[name]
    monkeypatch.setattr(module, function, wrong)
    report = check(text)
    assert report.verdict == "undecided", report
    assert "UN04" in {finding.code for finding in report.findings}
