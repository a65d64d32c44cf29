"""Large specs, and specs that are hard for the solver: quick, or undecided with a reason; never a hang."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

import placelogic
from placelogic.cli import main
from placelogic.report.diagnostic import SpecReport

AXES = [f"a{i}" for i in range(8)]


def checked(text: str, limit: float, **options: int) -> SpecReport:
    """The report on a text of one spec, within so many seconds of CPU time."""
    start = time.process_time()
    (spec,) = placelogic.check(text + "\n", **options).specs  # type: ignore[arg-type]
    spent = time.process_time() - start
    assert spent < limit, f"{spent:.1f} s"
    return spec


def weights(count: int) -> str:
    """Groups of every kind, in turn."""
    kinds = ("matrix", "vector", "matrix", "embedding")
    return "\n".join(f"weights w{i} {{ size h*{i + 1}, kind {kinds[i % 4]} }}" for i in range(count))


EIGHT_AXES = f"""\
mesh {", ".join(AXES)}
let h
microbatches M
{weights(12)}
weights expert {{ size h, kind expert, routed over a5 }}
use hsdp(shard = a0, replicate = a1) * zero1(a2) * context_parallel(a3) * ulysses(a7)
use sequence_parallel(a4) * expert_parallel(a5) * pipeline(a6, schedule = 1f1b)
clip global_norm
"""


def test_eight_axes() -> None:
    spec = checked(EIGHT_AXES, 10)
    assert spec.verdict == "proved", placelogic.check(EIGHT_AXES)
    assert set(spec.open_sizes) == {*AXES, "M"}


def test_a_fault_on_one_of_eight_axes() -> None:
    spec = checked(EIGHT_AXES + "sync w1 over a3 by none\n", 20)
    assert spec.verdict == "refuted"
    found = next(finding for finding in spec.findings if finding.severity == "error")
    assert (found.code, found.weights) == ("GI01", "w1")
    assert found.counterexample is not None
    assert {axis: size for axis, size in found.counterexample.mesh.items() if size > 1} == {"a3": 2}


def test_two_hundred_weights() -> None:
    text = f"mesh dp, tp\nlet h\nmicrobatches M\n{weights(200)}\nuse zero2(dp) * sequence_parallel(tp)\nclip global_norm\n"
    assert checked(text, 20).verdict == "proved"
    spec = checked(text + "sync w101 over tp by none\n", 30)
    assert spec.verdict == "refuted"
    assert {finding.weights for finding in spec.findings if finding.code == "GI01"} == {"w101"}


def test_thirty_strategies_composed() -> None:
    axes = [f"x{i}" for i in range(30)]
    names = ("data_parallel", "zero1", "context_parallel", "fsdp", "ulysses", "zero2")
    uses = " * ".join(f"{names[i % len(names)]}({axis})" for i, axis in enumerate(axes))
    spec = checked(f"mesh {', '.join(axes)}\nlet h\nweights w {{ size h }}\nuse {uses}\n", 20)
    assert spec.verdict == "proved"
    assert len(spec.open_sizes) == 30


def test_strategies_nested_thirty_deep() -> None:
    text = "strategy s0(d) { use data_parallel(d) }\n"
    text += "".join(f"strategy s{i}(d) {{ use s{i - 1}(d) }}\n" for i in range(1, 30))
    text = f"mesh dp\nlet h\nweights w {{ size h }}\n{text}"
    assert checked(text + "use s28(dp)\n", 5).verdict == "proved"
    deeper = checked(text + "use s29(dp)\n", 5)
    assert [finding.code for finding in deeper.findings] == ["PL303"], "31 definitions, the library's among them"


def test_forty_assumptions() -> None:
    lines = [f"assume a{i % 8} <= {1000 + i}, a{i % 8} % {i % 3 + 1} == 0" for i in range(20)]
    text = f"mesh {', '.join(AXES)}\nlet h\nweights w {{ size h }}\nuse data_parallel(a0)\n" + "\n".join(lines) + "\n"
    spec = checked(text, 10)
    assert spec.verdict == "proved"
    assert len(spec.assumptions) >= 32, "each once, and what is always assumed"


@pytest.mark.parametrize(
    ("assumption", "verdict"),
    [
        ("dp*tp == 64", "proved"),
        ("dp*tp*pp <= 4096", "proved"),
        ("dp*dp == tp", "proved"),
        ("dp*dp + tp*tp == pp*pp", "proved"),
        ("dp*tp % pp == 0", "proved"),
        ("h % (dp*tp) == 0", "proved"),
        ("dp*dp == 2*tp*tp", "undecided"),  # no such numbers
        ("dp*dp*dp + tp*tp*tp == pp*pp*pp", "undecided"),  # nor such
    ],
)
def test_assumptions_that_are_not_linear(assumption: str, verdict: str) -> None:
    text = f"mesh dp, tp, pp\nlet h\nweights w {{ size h }}\nuse zero1(dp) * tensor_parallel(tp)\nassume {assumption}\n"
    spec = checked(text, 10, rlimit=300_000)
    allowed = {verdict, "vacuous"} if verdict == "undecided" else {verdict}
    assert spec.verdict in allowed, placelogic.check(text, rlimit=300_000)


HARD = """\
mesh dp, tp, ep
let h
weights attn { size 4*h*h }
weights norm { size h, kind vector }
use data_parallel(dp) * tensor_parallel(tp)
scale * by (dp*dp*dp + tp*tp*tp)/(ep*ep*ep)
"""


@pytest.mark.parametrize(("rlimit", "about"), [(1, "whether any mesh"), (100, "gradient of attn"), (3_000, "any mesh")])
def test_a_tiny_limit_is_undecided(
    rlimit: int, about: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reason, cost and what to try; exit 3."""
    monkeypatch.chdir(tmp_path)
    impossible = "" if rlimit == 100 else "assume dp*dp*dp + tp*tp*tp == ep*ep*ep\n"
    Path("a.place").write_text(HARD + impossible)
    start = time.process_time()
    assert main(["check", "a.place", "--rlimit", str(rlimit)]) == 3
    assert time.process_time() - start < 5
    out = capsys.readouterr().out
    assert re.search(rf"^error\[UN01\]: .*{about}.* \(?it used {rlimit} solver steps, the limit\)?$", out, re.M)
    assert "= help: fix some sizes in the spec (or with `placelogic check --at`), or" in out
    assert "a.place: undecided" in out and "this is not a pass" in out


def test_a_tiny_limit_never_makes_a_wrong_spec_pass() -> None:
    for rlimit in (1, 10, 100, 1_000, 10_000, 100_000):
        spec = checked(HARD, 10, rlimit=rlimit)
        assert spec.verdict in ("undecided", "refuted"), rlimit


def test_what_costs_nothing_is_proved_at_any_limit() -> None:
    """What is right by construction needs no query beyond whether a mesh exists."""
    text = "mesh dp, tp\nlet h\nweights w { size h }\nuse zero1(dp) * sequence_parallel(tp)\n"
    assert checked(text, 5, rlimit=5_000).verdict == "proved"


def test_a_short_time_limit() -> None:
    start = time.monotonic()
    (spec,) = placelogic.check(HARD + "assume dp*dp*dp + tp*tp*tp == ep*ep*ep\n", timeout=0.2).specs
    assert spec.verdict in ("undecided", "vacuous")
    assert time.monotonic() - start < 30, "far from the seconds it takes without"


def test_a_product_of_many_axes_against_nested_ones() -> None:
    axes = ", ".join(f"a{n}" for n in range(14))
    text = f"mesh {axes}\nweights w {{ size 4096, dims rows }}\nbatch over {axes}\n"
    text += f"place w over {axes.replace(', ', '*')} {{ optimizer sharded on rows }}\n"
    text += f"place w over {axes} {{ gradients sharded on rows }}\n"
    (spec,) = placelogic.check(text).specs
    assert spec.verdict == "refuted" and {finding.code for finding in spec.findings} >= {"CC02"}
