"""What a check tells, on specs that newcomers wrote: the table, the line it points at, and the way forward."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.cli import main

UNEVEN = """\
mesh dp = {}
let P
weights w {{ size P }}
batch over dp
tokens uneven
"""


def told(text: str, here: Path, capsys: pytest.CaptureFixture[str], code: int = 1) -> str:
    """What `check` prints."""
    (here / "a.place").write_text(text)
    assert main(["check", "a.place"]) == code
    return capsys.readouterr().out


def test_a_long_sum_says_that_it_is_cut_short(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(UNEVEN.format(4), here, capsys)
    assert "+ (7/8) g[dp=3: 2 tokens]   g[dp=0: 1 token] " in out and "..." not in out
    out = told(UNEVEN.format(6), here, capsys)
    rest = "g[dp=1: 2 tokens] + {0}g[dp=2: 2 tokens] + {0}g[dp=3: 2 tokens] + ..."
    assert f"(11/6) g[dp=0: 1 token] + (11/12) {rest.format('(11/12) ')}   " in out
    assert f"   g[dp=0: 1 token] + {rest.format('')}\n" in out


SCALED = """\
mesh dp, tp
microbatches M
weights attn { size 4096 }
weights norm { size 64, kind vector }
loss mean global
use data_parallel(dp) * sequence_parallel(tp)
sync * over dp by sum
sync * over microbatches by sum
sync norm over tp by sum
"""


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        ("scale * by 1/(dp*tp)", 10),
        ("scale * by dp*M*tp", 10),
        # Two factors that are wrong only together: no one of them is.
        ("scale * by 1/tp\nscale * by 1/dp", 7),
        ("scale * by 1/M\nscale * by 1/dp\nscale * by M", 11),
    ],
)
def test_the_only_factor_is_pointed_at(lines: str, line: int, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(SCALED + lines + "\n", here, capsys)
    assert out.startswith("error[GI03]: the gradient of `attn`, `norm` is wrong by the constant factor ")
    assert out.split("\n")[1].strip() == f"--> a.place:{line}:1"


EARLY = """\
mesh dp, tp
let h, f, L
dims batch, sequence, hidden = h, ffn = f
microbatches M
weights mlp { layers L }
weights norm { layers L, kind vector }
weights b2 { layers L, kind vector }
block layer repeat L {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with mlp from hidden to ffn
  g = gelu u
  d = linear g with mlp from ffn to hidden
  db = bias d with b2 over hidden
  r = reduce_scatter db over tp on sequence
  y = add x, r
}
use data_parallel(dp) * sequence_parallel(tp)
sync vector over tp by sum
"""


def test_what_comes_of_a_bias_added_too_early(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every layer behind it finds it, and its gradient is whole: there is one thing to mend, and it mends all."""
    out = told(EARLY, here, capsys)
    assert out.startswith("error[FW04]: a part of `y` is counted tp times") and out.count("error[FW04]") == 1
    assert out.count("= fix (verified): from line 14 on write") == 1
    gradient = out.split("error[GI02]: ")[1].split("\n\n")[0]
    first = "the gradient of `b2` counts every contribution tp times (a consequence of the finding above)"
    assert gradient.startswith(first) and "help" not in gradient
    mended = EARLY.replace("bias d with", "reduce_scatter d over tp on sequence", 1).replace(
        " b2 over hidden\n", "\n", 1
    )
    mended = mended.replace("r = reduce_scatter db over tp on sequence", "r = bias db with b2 over hidden")
    assert "proved" in told(mended, here, capsys, 0)


def test_a_bias_summed_twice_over_is_a_fault_of_its_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without sequence parallelism the gradient of the bias stays whole, wherever it is added."""
    text = EARLY.replace("sequence_parallel", "tensor_parallel").replace(
        "reduce_scatter db over tp on sequence", "reduce db over tp by sum"
    )
    out = told(text.replace("sync vector", "sync b2"), here, capsys)
    assert "error[FW04]" in out
    assert "error[GI02]: the gradient of `b2` counts every contribution tp times\n" in out


def test_lines_beside_a_step_are_one_problem(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(SCALED + "scale * by 1/tp\nstep * {\n  each microbatch { accumulate }\n  update\n}\n")
    assert main(["check", "a.place"]) == 2
    out = capsys.readouterr().out
    assert out.count("error[") == 1 and "\n --> a.place:7:1\n" in out
    assert out.startswith(
        "error[PL323]: `attn` has a step of its own (line 11), which replaces only less specific `sync` lines "
        "than this one and lines 8, 9, 10\n"
    )
    assert "  = help: say them in the step, or leave these lines or the step out\n" in out


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "gradient accumulation 8",
            "micro-batches are counted by `gradient_accumulation`, or `microbatches`, "
            "for example `gradient_accumulation M`",
        ),
        ("world 8", "axes of devices are declared with `mesh`, for example `mesh dp, tp = 8, 2 <= pp <= 16`"),
        ("params w { size P }", "parameters are declared with `weights`, for example `weights norm { size 2*h"),
        ("stage pp", "did you mean `stages`?"),
    ],
)
def test_a_word_that_other_tools_use(line: str, wanted: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(f"mesh dp\n{line}\n")
    assert main(["check", "a.place"]) == 2
    out = capsys.readouterr().out
    assert out.startswith(f"error[PL108]: `{line.split()[0]}` begins no statement\n")
    assert f"  = help: {wanted}" in out


def test_two_strategies_that_cut_one_axis(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "mesh dp\nlet P\nweights w { size P }\nuse fsdp(dp) * tensor_parallel(dp)\n"
    gathered = "use `gathered` (S*) for params, which gathers them before use\n"
    out = told(text, here, capsys)
    assert out.startswith("error[FW01]: ")
    assert f"  = help: dp splits the batch already: cut them over another axis, or {gathered}" in out


def test_how_to_tie_embeddings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "mesh dp\nmodel llama {{ layers 8, hidden 64, heads 8, ffn 256, vocab 128, {} }}\nuse fsdp(dp)\n"
    for name in ("tied", "tie_word_embeddings"):
        out = told(text.format(f"{name} true"), here, capsys, 2)
        assert out.startswith(f"error[PL205]: model `llama` has no parameter `{name}`\n")
        assert (
            "  = help: it has layers, hidden, heads, kv_heads, ffn, vocab. Whether embeddings are tied is none " in out
        )
        assert "one table, `used on first and last`" in out and "(docs/language.md, Tied embeddings)\n" in out
    out = told(text.format("bias 1"), here, capsys, 2)
    assert "  = help: it has layers, hidden, heads, kv_heads, ffn, vocab\n" in out
