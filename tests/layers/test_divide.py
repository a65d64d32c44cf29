"""FW07: what is dealt out must come out even, and what is assumed of an axis that is open."""

from __future__ import annotations

import pytest

import placelogic
from placelogic.elaborate import elaborate_file
from placelogic.elaborate.derive import derive
from placelogic.prove.divide import division_obligations, divisors, settle
from placelogic.prove.formula import FALSE, Formula, both
from placelogic.prove.sizes import sizes_of
from placelogic.prove.solver import Answer
from placelogic.report.diagnostic import SpecReport
from placelogic.simulate import uneven
from placelogic.syntax.parse import parse

LLAMA = "model llama { layers 4, hidden 4096, heads 32, kv_heads 8, ffn 14336, vocab 128256 }\n"


def check(text: str, **at: int) -> SpecReport:
    (spec,) = placelogic.check(LLAMA + text, at=at).specs
    return spec


def broken(text: str, **at: int) -> set[str]:
    """The dimensions that FW07 is about; everything else must be fine."""
    report = check(text, **at)
    errors = [f for f in report.findings if f.severity == "error"]
    assert all(f.code == "FW07" for f in errors)
    assert report.verdict == ("refuted" if errors else "proved")
    return {f.message.split(" ")[0] for f in errors}


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("mesh tp = 8\nuse tensor_parallel(tp)", set()),
        ("mesh tp = 16\nuse tensor_parallel(tp)", {"kv_heads"}),
        ("mesh tp = 7\nuse tensor_parallel(tp)", {"heads", "kv_heads", "vocab"}),
        ("mesh tp = 4, pp = 3\nuse tensor_parallel(tp) * pipeline(pp)", set()),
        ("mesh x = 4, y = 4\nuse tensor_parallel(x*y)", {"kv_heads"}),
        ("mesh tp\nuse tensor_parallel(tp)", set()),
        ("mesh tp\nassume tp == 16\nuse tensor_parallel(tp)", {"kv_heads"}),
        ("mesh 3 <= tp <= 4\nuse tensor_parallel(tp)", set()),
        ("mesh 5 <= tp <= 7\nuse tensor_parallel(tp)", {"heads", "kv_heads", "ffn"}),
        ("mesh dp = 4\ndims batch = 6\nuse zero1(dp)", {"batch"}),
        ("mesh dp = 4\ndims batch = 2*dp\nuse zero1(dp)", set()),
        ("mesh cp = 4\ndims sequence = 8\nuse context_parallel(cp)", set()),
        ("mesh cp = 4\ndims sequence = 4\nuse context_parallel(cp)", {"sequence"}),
        ("mesh cp = 4\ndims sequence = 4\nsequence over cp", set()),
        ("mesh cp = 2, tp = 2\ndims sequence = 4\nuse context_parallel(cp) * sequence_parallel(tp)", set()),
        ("mesh cp = 2, tp = 4\ndims sequence = 4\nuse context_parallel(cp) * sequence_parallel(tp)", {"sequence"}),
        # Open sizes that fit at no mesh, or at some.
        ("mesh dp, x = 3\ndims batch = 4*dp\nuse data_parallel(dp) * data_parallel(x)", {"batch"}),
        ("mesh dp, x\ndims batch = 4*dp\nuse data_parallel(dp) * data_parallel(x)", set()),
        ("mesh dp, x = 2\ndims batch = 4*dp\nuse data_parallel(dp) * data_parallel(x)", set()),
        ("mesh tp = 2\nlet k\ndims sequence = 2*k + 1\nuse sequence_parallel(tp)", {"sequence"}),
        ("mesh tp = 4\nlet k\ndims sequence = 2*k + 2\nuse sequence_parallel(tp)", set()),
        ("mesh tp, cp = 3\ndims sequence = 12\nuse ulysses(cp) * tensor_parallel(tp)", {"heads", "kv_heads"}),
    ],
)
def test_what_does_not_divide(text: str, dims: set[str]) -> None:
    # 128256 = 2**8 * 3 * 167 and 14336 = 2**11 * 7; sizes without a number may be anything
    assert broken(text) == dims


def test_experts_and_sizes_from_outside() -> None:
    moe = "mesh ep\nmodel moe { layers 2, hidden 64, heads 4, ffn 64, vocab 96, experts 8, experts_over ep }\n"
    moe += "use expert_parallel(ep)\n"

    def verdict(**at: int) -> tuple[str, list[str]]:
        (spec,) = placelogic.check(moe, at=at).specs
        return spec.verdict, [f.message for f in spec.findings if f.severity == "error"]

    assert verdict(ep=4) == ("proved", [])
    assert verdict(ep=3) == ("refuted", ["expert (8) cannot be dealt out evenly over ep"])
    assert verdict() == ("proved", [])


def test_sizes_that_fit_one_by_one_but_not_together() -> None:
    """6 divides the heads and 7 the width of the MLP, and nothing allowed divides both."""
    text = (
        "model llama { layers 4, hidden 36, heads 12, ffn 14, vocab 84 }\nmesh 6 <= tp <= 7\nuse tensor_parallel(tp)\n"
    )
    (spec,) = placelogic.check(text).specs
    assert [f.message for f in spec.findings if f.severity == "error"] == [
        "ffn (14) cannot be dealt out evenly over tp"
    ]
    (spec,) = placelogic.check(text.replace("7", "12").replace("ffn 14", "ffn 24")).specs
    assert spec.verdict == "proved"


def test_what_is_printed() -> None:
    text = str(placelogic.check("mesh tp = 16\n" + LLAMA + "use tensor_parallel(tp)\n"))
    for line in (
        "error[FW07]: kv_heads (8) cannot be dealt out evenly over tp",
        "1 | mesh tp = 16",
        "^^^^^^^ tp cuts `k` on kv_heads: 1, 2, 4 or 8 would divide it",
        "= smallest counterexample: tp = 16 (everything else 1)",
        "= fix (verified): write `tp = 8` in line 1",
    ):
        assert line in text, text
    (spec,) = placelogic.check("mesh tp\n" + LLAMA + "use tensor_parallel(tp)\n").specs
    (assumed,) = [text for text in spec.assumptions if text.startswith("tp")]
    assert assumed == "tp divides vocab (128256), heads (32), kv_heads (8) and ffn (14336)"
    implied = "assume 32 % tp == 0, 8 % tp == 0, 14336 % tp == 0, 128256 % tp == 0\n"
    (spec,) = placelogic.check("mesh tp\n" + LLAMA + implied + "use tensor_parallel(tp)\n").specs
    assert not [text for text in spec.assumptions if "divides" in text]


def test_help_where_there_is_no_edit() -> None:
    (finding, *_) = [f for f in check("mesh tp\nuse tensor_parallel(tp)", tp=7).findings if f.code == "FW07"]
    assert finding.help == "sizes of tp that divide all that it cuts: 1, 2, 4 or 8"
    (finding,) = check("mesh cp = 4\ndims sequence = 7\nuse context_parallel(cp)").findings[:1]
    assert finding.help == "make sequence even"


def test_divisors() -> None:
    assert divisors(1) == [1]
    assert divisors(36) == [1, 2, 3, 4, 6, 9, 12, 18, 36]


def test_the_simulation_deals_out_by_itself() -> None:
    """At every small size the simulator finds exactly what the proof finds."""
    for tp in range(1, 10):
        (spec,) = elaborate_file(parse(LLAMA + f"mesh tp = {tp}\nuse tensor_parallel(tp)", "d.place"))
        assert spec.program is not None and spec.stated is not None
        program = derive(spec.program, spec.stated)
        found = {one.dim for one in uneven(program, {"tp": tp}, {"batch": 1, "sequence": 1})}
        assert found == broken(f"mesh tp = {tp}\nuse tensor_parallel(tp)")


def test_what_is_refuted_is_not_assumed() -> None:
    """Where the assumptions leave no size that divides, the report does not say that it assumes one."""
    report = check("mesh cp, tp\nassume tp >= 16\nuse tensor_parallel(tp) * context_parallel(cp)\ndims sequence = 64\n")
    assert report.verdict == "refuted"
    assert [text for text in report.assumptions if "divides" in text] == ["cp divides sequence (32)"]


@pytest.mark.parametrize(
    ("text", "assumed"),
    [
        ("mesh dp, x\ndims batch = 4*dp\nuse data_parallel(dp) * data_parallel(x)", "dp*x divides batch (4*dp)"),
        ("mesh tp = 4\nlet k\ndims sequence = 2*k + 2\nuse sequence_parallel(tp)", "tp divides sequence (2*k + 2)"),
    ],
)
def test_what_is_assumed_of_sizes_that_depend_on_others(text: str, assumed: str) -> None:
    assert assumed in check(text).assumptions


def test_what_always_divides_is_not_assumed() -> None:
    report = check("mesh dp, x = 2\ndims batch = 4*dp\nuse data_parallel(dp) * data_parallel(x)")
    assert not [text for text in report.assumptions if "batch" in text]


def test_what_the_solver_gives_up_on_is_told() -> None:
    """The first of two; neither counts as violated, nor as met."""

    class Tired:
        def check(self, condition: Formula, model: bool) -> Answer:
            assert model
            return Answer("unknown", reason=f"question {condition}")

    (spec,) = elaborate_file(
        parse("mesh tp, cp = 3\nassume tp >= 16\n" + LLAMA + "use ulysses(cp) * tensor_parallel(tp)", "d.place")
    )
    assert spec.program is not None and spec.stated is not None
    program = derive(spec.program, spec.stated)
    open_ones = [one for one in division_obligations(program, sizes_of(program)[0]) if one.possible is not None]
    settled, doubtful = settle(open_ones, Tired())  # type: ignore[arg-type]
    assert len(settled) >= 2 and all(one.violation == FALSE and one.possible is None for one in settled)
    first = open_ones[0]
    assert doubtful == f"whether any allowed size fits {first.name}: question {both(first.possible)}"
