"""Claims and budgets, through `check`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sympy

import placelogic
from placelogic.cli import main
from placelogic.cost.budget import falls, least
from placelogic.report.diagnostic import SpecReport
from tests.cost.specs import ADAM16

SHARED = "mesh N\nlet P\nweights model { size P, layers 32 }\n" + ADAM16
PAIR = "spec zero3 { use zero3(N) }\nspec data_parallel { use data_parallel(N) }\n"


def reports(text: str, **at: int) -> dict[str, SpecReport]:
    return {spec.name: spec for spec in placelogic.check(text, at=at).specs}


def codes(report: SpecReport, severity: str = "error") -> list[str]:
    return [finding.code for finding in report.findings if finding.severity == severity and finding.code != "NT02"]


@pytest.mark.parametrize(
    "claim",
    [
        "memory(zero3) * N == memory(data_parallel)",
        "traffic(zero3) == 3/2 * traffic(data_parallel)",
        "memory(zero3) == 16*P/N",
        "unit(zero3) == memory(zero3) + 2*P/32",
        "peak(zero3) - memory(zero3) <= P/8",
        "host(zero3) == 0",
        "memory(zero3) <= memory(data_parallel)",
        "peak(zero3) > memory(data_parallel) - 16*P",
        "3 * traffic(zero3) != 3 * traffic(data_parallel) + 1",
    ],
)
def test_a_claim_is_proved_for_every_size(claim: str) -> None:
    (report, other) = reports(SHARED + PAIR + f"claim {claim}\n").values()
    assert report.verdict == "proved", [f.message for f in report.findings]
    (note,) = [f for f in report.findings if f.code == "NT30"]
    assert note.message.startswith("the claim `") and "` is proved" in note.message
    assert not [f for f in other.findings if f.code == "NT30"]
    assert report.obligations.proved == other.obligations.proved + 1


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("memory(zero3) * (N + 1) == memory(data_parallel)", "false at N = 1, P = 1: 32 B against 16 B"),
        ("32 * unit(zero3) <= 32 * memory(data_parallel)", "false at N = 1, P = 1: 514 B against 512 B"),
        ("traffic(zero3) <= traffic(data_parallel)", "false at N = 2, P = 1"),
        ("memory(zero3) < 80000000000", "false at N = 1, P = 5000000000: 80 GB (74.51 GiB) against 80 GB (74.51 GiB)"),
    ],
)
def test_a_false_claim_is_refuted_at_the_smallest_sizes(claim: str, told: str) -> None:
    report = reports(SHARED + PAIR + f"claim {claim}\n")["zero3"]
    assert report.verdict == "refuted"
    assert codes(report) == ["CL01"]
    (finding,) = [f for f in report.findings if f.severity == "error"]
    assert told in finding.message


def test_what_micro_batches_do_to_a_claim() -> None:
    text = SHARED + "microbatches M\n" + PAIR
    false = reports(text + "claim traffic(zero3) == 3/2 * traffic(data_parallel)\n")["zero3"]
    assert any("is false at M = 2, N = 2, P = 1" in f.message for f in false.findings)
    true = reports(text + "claim traffic(zero3) == 3/2 * M * traffic(data_parallel)\n")["zero3"]
    assert true.verdict == "proved"
    at_one = reports(text + "claim traffic(zero3) == 3/2 * traffic(data_parallel)\n", M=1)["zero3"]
    assert at_one.verdict == "proved"


def test_assumptions_are_used() -> None:
    text = SHARED + PAIR + "claim unit(zero3) <= memory(data_parallel)\n"
    assert reports(text)["zero3"].verdict == "refuted"
    assert reports(text + "assume N >= 2\n")["zero3"].verdict == "proved"
    empty = reports(text + "spec b { assume N == 3\n use zero1(N) }\nspec c { assume N == 4\n use zero1(N) }\n"
                    "claim memory(b) == memory(c)\n")["b"]  # fmt: skip
    assert empty.verdict == "undecided"
    assert codes(empty) == ["CL02"]


def test_a_claim_about_stages_holds_for_one_stage_too() -> None:
    text = "mesh pp\nweights layer { size 60, layers 6 }\nweights embed { size 7, used on first and last }\n" + ADAM16
    specs = "spec s { use pipeline(pp) }\n"
    assert reports(text + specs + "claim memory(s) == 16*(60/pp + 7)\n")["s"].verdict == "proved"
    assert reports(text + specs + "claim traffic(s) == 28\n")["s"].verdict == "refuted"  # nothing at pp = 1
    assert reports(text + specs + "assume pp >= 2\nclaim traffic(s) == 14\n")["s"].verdict == "proved"


def test_a_product_of_axes_can_be_named() -> None:
    text = "mesh a, b\naxis n = a*b\nlet P\nweights model { size P }\n" + ADAM16 + "spec z { use zero3(n) }\n"
    assert reports(text + "claim memory(z) * n == 16*P\n")["z"].verdict == "proved"


def test_expectations_meet_claims() -> None:
    text = SHARED + "spec zero3 {\n  use zero3(N)\n  claim memory(zero3) == P\n  expect refuted CL01\n}\n"
    assert placelogic.check(text).exit_code == 0


@pytest.mark.parametrize(
    ("claim", "code", "message"),
    [
        ("memory(zero9) == 1", "PL014", "there is no spec `zero9` in this file"),
        ("memory(zero3) == Q", "PL201", "`Q` is not declared"),
        ("speed(zero3) == 1", "PL363", "there is no cost `speed`"),
        ("N == N", "PL364", "speaks of no cost"),
        ("memory(broken) == 1", "PL365", "spec `broken` has errors"),
        ("memory(zero3) == P/(N - N)", "PL401", "divides"),
        ("memory(a64) == memory(a32)", "PL367", "`K` is 64 in one of these specs and 32 in another"),
    ],
)
def test_claims_that_mean_nothing(claim: str, code: str, message: str) -> None:
    text = SHARED + PAIR + "spec broken { use zero9(N) }\n"
    text += "spec a64 {\n  mesh K = 64\n use zero3(K) }\nspec a32 {\n mesh K = 32\n use zero3(K) }\n"
    found = [f for report in reports(text + f"claim {claim}\n").values() for f in report.findings]
    assert any(f.code == code and message in f.message for f in found), [f.message for f in found]


BUDGET = SHARED.replace("let P\n", "let P = 7500000000\n")


def test_a_budget_at_given_sizes() -> None:
    text = BUDGET + "budget 80 GB\n" + PAIR
    found = reports(text, N=64)
    assert found["zero3"].verdict == "proved"
    (note,) = [f for f in found["zero3"].findings if f.code == "NT31"]
    assert note.message == (
        "within the budget: the peak of one device is 2.812 GB (2.619 GiB), the budget 80 GB (74.51 GiB)"
    )
    assert found["data_parallel"].verdict == "refuted"
    (over,) = [f for f in found["data_parallel"].findings if f.severity == "error"]
    assert over.code == "BU01"
    assert over.label == "optimizer 90 GB (83.82 GiB), params 15 GB (13.97 GiB), gradients 15 GB (13.97 GiB)"


def test_a_budget_is_solved_for_the_sizes_that_fit() -> None:
    """16 P/N + 4 P/32 within 8 GiB of which 0.9375 GB are the unit: N >= 15.68, so 16."""
    report = reports(BUDGET + "budget 8 GiB\n" + PAIR)["zero3"]
    assert [f.message for f in report.findings if f.code == "NT31"] == ["the budget of 8 GiB is enough for N >= 16"]
    assert report.verdict == "proved"
    for n, verdict in ((15, "refuted"), (16, "proved")):
        assert reports(BUDGET + "budget 8 GiB\n" + PAIR, N=n)["zero3"].verdict == verdict


def test_sizes_beyond_those_tried_are_only_claimed_where_the_peak_never_grows() -> None:
    n, p = sympy.symbols("N P")
    assert falls(16 * sympy.ceiling(p / n) + 3, n)
    assert falls(sympy.Max(p / n, 2 * p / n**2) * 5, n)
    for grows in (n, p / n + n, -p / n, p * (n - 1) / n, sympy.Piecewise((1, sympy.Eq(n, 1)), (2, True))):
        assert not falls(grows, n)
    (report,) = reports(BUDGET + "assume N % 2 == 0\nbudget 8 GiB\nuse zero3(N)\n").values()
    (note,) = [f for f in report.findings if f.code == "NT31"]
    assert "N = 16, N = 18" in note.message


def test_a_budget_that_no_size_meets() -> None:
    report = reports(BUDGET + "budget 80 GB\n" + PAIR)["data_parallel"]
    assert codes(report) == ["BU01"]
    small = reports(BUDGET + "budget 900 MB\n" + PAIR)["zero3"]
    assert "the budget is exceeded at every N" in next(f for f in small.findings if f.code == "BU01").message


def test_a_budget_over_several_axes_names_the_fewest_devices() -> None:
    text = BUDGET.replace("mesh N", "mesh dp, tp") + "budget 32 GB\nuse zero1(dp) * tensor_parallel(tp)\n"
    (report,) = reports(text).values()
    (note,) = [f for f in report.findings if f.code == "NT31"]
    told = re.findall(r"dp = (\d+), tp = (\d+)", note.message)
    assert told
    for dp, tp in ((int(d), int(t)) for d, t in told):
        peak = 7.5e9 * (4 + 12 / dp) / tp
        assert peak <= 32e9
        for fewer in ((dp // 2, tp), (dp, tp // 2)):
            if min(fewer) >= 1:
                assert 7.5e9 * (4 + 12 / fewer[0]) / fewer[1] > 32e9


def test_a_budget_needs_its_sizes() -> None:
    (report,) = reports(SHARED + "budget 8 GiB\nuse zero3(N)\n").values()
    assert codes(report) == ["PL366"]
    (fixed,) = reports(SHARED + "budget 8 GiB\nuse zero3(N)\n", P=1000).values()
    assert fixed.verdict == "proved"


def test_a_budget_may_be_computed() -> None:
    (report,) = reports(BUDGET + "budget 2*P/10**9 GB\nuse zero3(N)\n".replace("10**9", "1000000000"), N=64).values()
    assert report.verdict == "proved"


def test_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.place").write_text(SHARED + "claim memory(zero3) == memory(data_parallel)\n" + PAIR)
    assert main(["check", "a.place"]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "error[CL01]: the claim `memory(zero3) == memory(data_parallel)` is false at N = 2, P = 1: 8 B against 16 B\n"
        " --> a.place:6:1\n"
    )
    assert "a.place: zero3: refuted (1 of 6 obligations fails, none stated)" in out


def test_specs_without_claims_load_no_sympy(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "a.place").write_text(SHARED + PAIR)
    code = "import sys; from placelogic.cli import main; main(['check', 'a.place']); print('sympy' in sys.modules)"
    code = code.replace("'a.place'", repr(str(tmp_path / "a.place")))
    root = Path(placelogic.__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout.endswith("False\n")


def test_shown_specs_keep_their_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.place"
    path.write_text(SHARED + "spec z {\n  use zero3(N)\n  claim memory(z) == 16*P/N\n  budget 80 GiB\n}\n")
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert "  claim memory(z) == 16*P/N\n" in out
    assert "  budget 80 GiB\n" in out


def test_states_are_without_activations() -> None:
    text = "mesh N\nlet b, s\ndims batch = b, sequence = s\nmodel gpt { layers 2, hidden 8, heads 2, vocab 16 }\n"
    text += "spec z { use zero3(N) }\nspec d { use data_parallel(N) }\n"
    found = reports(text + "claim states(z) * N == states(d)\n")["z"]
    assert found.verdict == "proved", [f.message for f in found.findings]
    assert reports(text + "claim memory(z) * N == memory(d)\n")["z"].verdict == "refuted"


@pytest.mark.parametrize(
    ("claim", "divisor"),
    [
        ("1/(3 - N) <= memory(zero3)", "`3 - N` is zero at N = 3,"),
        ("memory(zero3)*(N - 2)/(N - 2) == memory(zero3)", "`N - 2` is zero at N = 2,"),
        ("memory(zero3)/traffic(zero3) > 0", "`traffic(zero3)` is zero at N = 1,"),
    ],
)
def test_a_claim_that_divides_by_zero_somewhere_has_no_meaning(claim: str, divisor: str) -> None:
    report = reports(SHARED + PAIR + f"claim {claim}\n")["zero3"]
    assert (report.verdict, codes(report)) == ("error", ["PL401"])
    assert any(divisor in finding.message for finding in report.findings)
    assert reports(SHARED + PAIR + f"assume N >= 4\nclaim {claim}\n")["zero3"].verdict == "proved"


def test_what_has_no_meaning_is_told_where_the_claim_stands() -> None:
    report = reports(SHARED + PAIR + "claim memory(zero3) % 2 == 0\n")["zero3"]
    (finding,) = [f for f in report.findings if f.severity == "error"]
    assert (finding.code, finding.span.line) == ("PL402", (SHARED + PAIR).count("\n") + 1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sync model over N by none", "expect refuted GI01"),
        ("freeze model", "expect vacuous"),
        ("scale model by 1/(N - 1)", "expect error PL401"),
    ],
)
def test_no_expectation_about_training_covers_a_false_claim(line: str, expected: str) -> None:
    specs = f"spec odd {{\n  use data_parallel(N)\n  {line}\n  {expected}\n}}\nspec plain {{ use data_parallel(N) }}\n"
    assert placelogic.check(SHARED + specs + "claim memory(odd) <= memory(plain)\n").exit_code == 0
    report = reports(SHARED + specs + "claim memory(odd) > memory(plain)\n")["odd"]
    assert report.expected is False
    assert {"CL01", "EX01"} <= set(codes(report))


def test_a_false_claim_can_be_expected_beside_a_fault() -> None:
    both = "spec s {\n  use data_parallel(N)\n  sync model over N by none\n  budget 1 B\n  expect refuted GI01\n"
    at = SHARED.replace("let P", "let P = 7")
    assert placelogic.check(at + both + "}\n").exit_code == 1
    assert placelogic.check(at + both + "  expect refuted BU01\n}\n").exit_code == 0
    assert placelogic.check(at + both.replace(" GI01", "") + "}\n").exit_code == 0


ENDS = (
    "mesh pp, dp\nweights layer { size 24000000, layers 24 }\n"
    "weights embed { size 70000000, kind embedding, used on first and last }\n"
    "assume pp <= 24\nuse pipeline(pp) * zero1(dp)\n"
)
MILLION = "mesh dp, tp\nweights model { size 1000000, layers 4 }\nuse zero3(dp) * tensor_parallel(tp)\n"


@pytest.mark.parametrize(
    ("assumed", "told"),
    [
        ("tp == 3", "is enough at dp = 1, tp = 3"),
        ("tp % 3 == 0", "is enough at dp = 1, tp = 3"),
        ("dp*tp == 15", "is enough at dp = 1, tp = 15 or dp = 3, tp = 5 or dp = 5, tp = 3"),
    ],
)
def test_a_budget_is_tried_at_sizes_that_the_assumptions_allow(assumed: str, told: str) -> None:
    (report,) = reports(MILLION + f"assume {assumed}\nbudget 80 GiB\n").values()
    assert report.verdict == "proved"
    assert any(told in f.message for f in report.findings if f.code == "NT31")


def test_a_budget_is_exceeded_at_every_size_only_where_that_is_known() -> None:
    one = "mesh N\nweights model { size 1000000 }\nuse zero3(N)\n"
    for text, verdict, code in [
        (one + "assume N == 5000\nbudget 80 GiB\n", "error", "PL366"),
        (one + "assume N == 50\nbudget 1 MB\n", "refuted", "BU01"),
        (one + "budget 1 MB\n", "refuted", "BU01"),
        (MILLION + "assume tp <= 3, dp <= 9\nbudget 900 kB\n", "refuted", "BU01"),
        (ENDS + "budget 559 MB\n", "refuted", "BU01"),
        (MILLION + "assume tp >= 5000\nassume tp <= 5001\nbudget 900 kB\n", "error", "PL366"),
    ]:
        (report,) = reports(text).values()
        assert (report.verdict, codes(report)) == (verdict, [code]), text


LAYERED = "mesh r, s\nweights model { size 1000000, layers 10 }\nuse hsdp(shard = s, replicate = r)\n"


@pytest.mark.parametrize(
    ("assumed", "verdict", "told"),
    [
        ("assume r*s == 64", "refuted", "exceeded at every s"),
        ("let k\nassume s == 2*k, k <= 2", "refuted", "exceeded at every s"),
        ("assume r*s == 128", "proved", "is enough for s >= 80"),
        ("let k\nassume s == 3*k", "proved", "is enough for s >= 80"),
    ],
)
def test_assumptions_about_other_sizes_bound_those_of_a_budget(assumed: str, verdict: str, told: str) -> None:
    (report,) = reports(LAYERED + f"{assumed}\nbudget 1 MB\n").values()
    assert report.verdict == verdict
    assert any(told in f.message for f in report.findings if f.code in ("NT31", "BU01")), report.findings


def test_a_world_of_fixed_size_bounds_several_axes() -> None:
    text = "mesh r, s, t\nweights model { size 1000000, layers 10 }\nuse hsdp(shard = s, replicate = r) * tensor_parallel(t)\n"
    (report,) = reports(text + "assume r*s*t == 33\nbudget 1 MB\n").values()
    assert any("at s = 1, t = 33 or s = 3, t = 11 or s = 11, t = 3" in f.message for f in report.findings)


def test_numbers_that_differ_never_read_the_same() -> None:
    text = "mesh N = 1\nweights model { size 1000000 }\nuse data_parallel(N)\n"
    (report,) = reports(text + "budget 15999999 B\n").values()
    assert any("is 16,000,000 B, the budget 15,999,999 B" in f.message for f in report.findings)
    told = placelogic.check("spec b {\n" + text + "}\nclaim memory(b) <= 15.9999999*1000000\n").files[0].specs[0]
    assert any("16,000,000 B against 159,999,999/10 B" in f.message for f in told.findings), told.findings


def test_what_a_peak_is_at_least() -> None:
    n, m = sympy.symbols("N M")
    for expr, below in [
        (16 / n + 5, 5), (sympy.ceiling(10 / n) * 2 + sympy.Max(0, 3 - n), 0), (n * m + (n - 1) / n, 1),
        (sympy.Piecewise((7 + n, sympy.Eq(n, 1)), (3 + 1 / n, True)), 3), (5 - n, -sympy.oo), (1 / (n - 2), -sympy.oo),
        ((n - 1) * (2 - n), -sympy.oo), (sympy.Mod(n, 3), -sympy.oo),
    ]:  # fmt: skip
        assert least(expr) == below, expr


STAGED = """mesh dp, pp
let L, K
dims batch, sequence, hidden, ffn, vocab
weights embed { kind embedding }
weights one { kind matrix }
weights two { kind matrix }
precision { params bf16, compute bf16, gradients fp32, master fp32, moments fp32 }
block start {
  input ids(batch, sequence)
  x = embedding ids with embed from vocab to hidden
}
block dense repeat K {
  input x(batch, sequence, hidden)
  u = linear x with one from hidden to ffn
  a = gelu u
  y = linear a with one from ffn to hidden
}
block wide repeat L {
  input x(batch, sequence, hidden)
  u = linear x with two from hidden to ffn
  a = gelu u
  y = linear a with two from ffn to hidden
}
block finish {
  input x(batch, sequence, hidden)
  logits = linear x with embed from hidden to vocab
  loss = cross_entropy logits over vocab
}
spec shards { use zero1(dp) * pipeline(pp) }
spec copies { use data_parallel(dp) * pipeline(pp) }
"""


@pytest.mark.parametrize(
    ("claim", "code", "told"),
    [
        ("memory(shards) <= memory(copies)", "NT30", "is proved for every K, L, batch, dp, ffn, hidden, pp, sequence, vocab"),
        pytest.param("3 * memory(shards) + 1 > memory(copies)", "NT30", "is proved for every K, L, batch,", marks=pytest.mark.slow),
        pytest.param("2 * memory(shards) + 1 > memory(copies)", "CL01", "is false at K = 1, L = 1, batch = 1, dp = 5,", marks=pytest.mark.slow),
        pytest.param("memory(shards) == memory(copies)", "CL01", "is false at K = 1, L = 1, batch = 1, dp = 2,", marks=pytest.mark.slow),
        pytest.param("memory(shards) != 2 * memory(copies)", "CL02", "cannot be decided: it falls into more than 256 cases of K, L, pp", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_claims_about_layers_of_several_blocks_on_stages(claim: str, code: str, told: str) -> None:
    """Which layers a stage has falls into many cases. Both sides share them: what is the same in both cancels."""
    report = reports(STAGED + f"claim {claim}\n")["shards"]
    (finding,) = [f for f in report.findings if f.code in ("NT30", "CL01", "CL02")]
    assert finding.code == code, finding.message
    assert told in finding.message


@pytest.mark.slow
def test_a_claim_that_the_solver_has_too_few_steps_for_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not that there are too many cases: the stronger claim that was tried first has fewer."""
    file = tmp_path / "a.place"
    file.write_text(STAGED + "claim 3 * memory(shards) + 1 > memory(copies)\n", encoding="utf-8")
    assert main(["check", str(file), "--rlimit", "10000"]) == 3
    said = "the claim `3*memory(shards) + 1 > memory(copies)` cannot be decided: it used 10000 solver steps, the limit\n"
    assert f"error[CL02]: {said}" in capsys.readouterr().out


def test_a_claim_at_given_sizes_says_what_rounding_makes_of_it() -> None:
    head = "mesh N = 3\nweights model { size 10 }\n"
    text = "claim memory(z)*N == 160\nclaim states(z)*N <= 200\nspec z { use zero3(N) }\n"
    helps = [f.help for f in reports(head + text)["z"].findings if f.code == "NT30"]
    apart = "shards do not divide evenly at these sizes: rounded up, it "
    assert helps == [apart + "is false, 192 B against 160 B", apart + "holds too, 192 B against 200 B"]
    helps = [f.help for f in reports(head.replace("10", "12") + text.replace("160", "192"))["z"].findings if f.code == "NT30"]
    assert helps == [None, None]
    text = text.replace("160", "16*10").replace("200", "16*10")
    assert {f.help for f in reports(head.replace(" = 3", "") + text)["z"].findings if f.code == "NT30"} == {None}
