"""`placelogic cost` and `placelogic compare`, as printed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import placelogic
from placelogic.cli import main

ROOT = Path(__file__).parents[2]
STAGED = """mesh pp = 2, dp = 4
let h = 64, L = 8
microbatches 4
weights embed { size 96*h, kind embedding, used on first }
weights w { size 12*h*h*L, layers L }
use pipeline(pp) * zero1(dp)
"""
STAGES = "examples/zero_stages.place"


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_one_spec(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "cost", STAGES, "--spec", "published_pos_g_p") == (
        0,
        """\
examples/zero_stages.place: published_pos_g_p
sizes: P = 7500000000, N = 64
parameters: 7.5 billion

memory of one device
  params             234.4 MB (223.5 MiB)  2*P/N
  optimizer          1.406 GB (1.31 GiB)   12*P/N
  gradients          234.4 MB (223.5 MiB)  2*P/N
  held               1.875 GB (1.746 GiB)  16*P/N
  gathered unit      15 GB (13.97 GiB)     2*P
  largest transient  30 GB (27.94 GiB)     4*P
  peak               31.88 GB (29.69 GiB)  4*P + 16*P/N

traffic of one device and step
  sent                    44.3 GB (41.25 GiB)  6*P*(N - 1)/N
  limit for many devices  45 GB (41.91 GiB)    6*P

note: activations, and what layers send to each other, are not derived: the spec states no layer operations
note: not counted: scalars that are reduced, workspace of kernels and of the communication library, fragmentation
""",
        "",
    )


def test_every_spec_of_a_file_and_sizes_from_outside(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cost", STAGES, "--at", "N=64,M=1")
    assert code == 2  # the published specs have no M
    code, out, _ = run(capsys, "cost", STAGES, "--spec", "open_pos_g_p", "--at", "N=64,M=1")
    assert code == 0
    assert "  held                    1.875 GB (1.746 GiB)" in out or "  held               1.875 GB (1.746 GiB)" in out


def test_stages(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cost", "examples/bloom_176b.place", "--spec", "published", "--per", "stage")
    assert code == 0
    lines = out.splitlines()
    assert lines[5].split() == ["stage", "bytes"]
    names = [line.split("  ")[1] for line in lines if line.startswith("  ") and "(pp" in line]
    assert list(dict.fromkeys(name.split(" (")[0] for name in names)) == ["first", "middle", "last"]


def test_collectives(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cost", STAGES, "--spec", "open_pos_g_p", "--per", "collective")
    assert code == 0
    assert (
        """\
sent by one device in a step
  weights  what                 operation       over  times  bytes
  model    params for forward   all-gather      N     M             2*M*P*(N - 1)/N
  model    params for backward  all-gather      N     M             2*M*P*(N - 1)/N
  model    gradients            reduce-scatter  N     M             2*M*P*(N - 1)/N
"""
        in out
    )


def test_groups(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cost", STAGES, "--spec", "published_pos", "--per", "group")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.startswith("  model")]
    assert [" ".join(row).split(" (")[0] for row in rows] == [
        "model params fp16 15 GB", "model master fp32 468.8 MB", "model moments fp32 937.5 MB",
        "model gradients fp16 15 GB", "model sent 29.53 GB",
    ]  # fmt: skip


def test_nodes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.place"
    path.write_text("mesh node, local\naxis dp = node*local\nlet P\nweights model { size P }\nuse data_parallel(dp)\n")
    code, out, _ = run(capsys, "cost", str(path), "--inter", "node")
    assert code == 0
    assert "  within a node           8*P*(local - 1)/local\n" in out
    assert "  between nodes           8*P*(node - 1)/(local*node)\n" in out
    code, _, err = run(capsys, "cost", str(path), "--inter", "nodes")
    assert code == 2
    assert "error[PL200]: there is no axis `nodes`" in err
    assert "= help: did you mean `node`?" in err


@pytest.mark.parametrize("form", ["text", "json", "latex", "markdown", "csv", "python"])
@pytest.mark.parametrize(
    "per", [pytest.param(per, marks=() if per == "rank" else pytest.mark.slow) for per in ("rank", "stage", "group", "collective")]
)
def test_every_form_of_every_view(form: str, per: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "published.place"
    path.write_text(STAGED)
    code, out, err = run(capsys, "cost", str(path), "--format", form, "--per", per)
    assert (code, err) == (0, "")
    assert out.endswith("\n") and "published" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "cost", STAGES, "--format", "json")
    data = json.loads(out)
    assert code == 0
    assert data["schema"] == "placelogic/cost/1"
    assert [spec["memory"]["held"]["value"] for spec in data["specs"][:4]] == [
        120_000_000_000, 31_406_250_000, 16_640_625_000, 1_875_000_000,
    ]  # fmt: skip


def test_standalone_is_for_latex(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "cost", STAGES, "--standalone")
    assert code == 2
    assert "--standalone goes with --format latex" in err
    code, out, _ = run(capsys, "cost", STAGES, "--format", "latex", "--standalone")
    assert code == 0
    assert out.startswith(r"\documentclass{article}")


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "mesh N\nlet P\nweights model { size P }\nuse zero3(N)\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, _ = run(capsys, "cost", "-")
    assert code == 0
    assert out.startswith("<stdin>: <stdin>\nparameters: P\n")


def test_problems_go_to_standard_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.place"
    path.write_text("mesh N\nweights model { size 4 }\nspec bad { use zero9(N) }\nspec good { use zero3(N) }\n"
                    "spec shaped {\n  use zero3(N)\n  optimizer adafactor\n}\n")  # fmt: skip
    code, out, err = run(capsys, "cost", str(path))
    assert code == 2
    assert out.startswith(f"{path}: good\n") and out.count(f"{path}: ") == 1
    assert "error[PL203]" in err
    assert "error[PL360]: the state of adafactor depends on the shapes of tensors, and `model` has only a size" in err
    assert run(capsys, "cost", str(path), "--spec", "god")[2].count("did you mean `good`?") == 1
    assert run(capsys, "cost", "none.place")[0] == 2


def test_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.place"
    path.write_text("mesh N\nlet P\nweights model { size P, layers 32 }\noptimizer adam\n"
                    "precision { params fp16, gradients fp16, master fp32, moments fp32 }\n"
                    "spec zero3 { use zero3(N) }\nspec ddp { use data_parallel(N) }\n")  # fmt: skip
    code, out, err = run(capsys, "compare", f"{path}:zero3", f"{path}:ddp")
    assert (code, err) == (0, "")
    assert out.startswith("""\
held
  zero3        16*P/N
  ddp          16*P
  zero3 / ddp  1/N
  ddp / zero3  N

held and gathered unit
  zero3        P/16 + 16*P/N
  ddp          16*P
  zero3 / ddp  (N + 256)/(256*N)
  ddp / zero3  256*N/(N + 256)
""")
    assert (
        """
sent
  zero3        6*P*(N - 1)/N
  ddp          4*P*(N - 1)/N
  zero3 / ddp  3/2
  ddp / zero3  2/3
"""
        in out
    )
    code, out, _ = run(capsys, "compare", f"{path}:zero3", f"{path}:ddp", "--at", "N=8", "--format", "json")
    data = json.loads(out)
    assert data["schema"] == "placelogic/compare/1"
    assert data["quantities"][0]["ratio"] == "1/N"


def test_compare_with_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "compare", f"{STAGES}:open_pos_g_p", f"{STAGES}:open_baseline", "--at", "N=8,M=1")
    assert code == 0
    assert "  open_baseline / open_pos_g_p  8  N\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([STAGES, STAGES], "error[PL014]: the file has several specs"),
        ([f"{STAGES}:open_pos", f"{STAGES}:nothing"], "error[PL014]: there is no spec `nothing`"),
        (["none.place:a", STAGES], "error[PL001]"),
        ([f"{STAGES}:open_pos", f"{STAGES}:open_pos_g", "--at", "Q=1"], "error[PL221]: --at fixes `Q`"),
    ],
)
def test_what_cannot_be_compared(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "compare", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_sizes_that_differ_are_filled_in(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.place"
    path.write_text("let P\nweights model { size P }\nspec a {\n  mesh N = 8\n  use zero3(N)\n}\n"
                    "spec b {\n  mesh N = 64\n  use zero3(N)\n}\n")  # fmt: skip
    code, out, _ = run(capsys, "compare", f"{path}:a", f"{path}:b")
    assert code == 0
    assert out.startswith(
        "note: filled in, as the two specs fix it differently: N\n\nheld\n  a      2*P\n  b      P/4\n  a / b  8\n"
    )


STEP = """\
use zero1(dp)
step model {
  each microbatch { accumulate }
  reduce over dp by mean
  update
  gather params over dp
}
"""
"""An all-reduce where a reduce-scatter would do."""
NODES = """\
mesh node, local
axis dp = node*local
let P = 10000000000
weights model { size P }
precision { params bf16, gradients bf16, master fp32, moments fp32 }
"""


def test_a_stated_step_that_costs_more_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.place"
    path.write_text(NODES + STEP)
    told = "note: costly: the step that is stated sends 3/2 times what the one that would be derived sends\n"
    assert told in run(capsys, "cost", str(path))[1]
    path.write_text(NODES + STEP.replace("reduce over", "reduce scattered over"))
    assert "costly" not in run(capsys, "cost", str(path))[1]
    path.write_text(NODES + "use zero1(dp)\n")
    assert "costly" not in run(capsys, "cost", str(path))[1]


def test_an_estimate_of_the_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.place"
    path.write_text(NODES + STEP)
    at = ("cost", str(path), "--at", "node=4,local=8", "--inter", "node")
    out = run(capsys, *at, "--bandwidth", "400", "--inter-bandwidth", "50", "--latency", "5")[1]
    # 52.5 GB at 400 GB/s, 5.625 GB at 50 GB/s, 3 * 31 rounds of 5 microseconds
    assert "  time to send, an estimate  244.2 ms " in out
    assert "time to send" not in run(capsys, *at)[1]
    code, _, err = run(capsys, *at, "--latency", "5")
    assert code == 2
    assert "--inter-bandwidth and --latency go with --bandwidth" in err
    for value in ("nan", "inf", "0"):
        code, _, err = run(capsys, *at, "--bandwidth", value)
        assert (code, "invalid value for '--bandwidth'" in err) == (2, True), err


def test_options_of_the_function_that_make_no_sense() -> None:
    for options in ({"unit": "tensor"}, {"ahead": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            placelogic.cost(NODES + STEP, **options)  # type: ignore[arg-type]
    one = placelogic.cost(NODES + STEP, inter="node")
    assert one.traffic.inter == placelogic.cost(NODES + STEP, inter=["node"]).traffic.inter != 0


def test_a_table_of_positions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the size that the operations give; a person may say that it is longer than the sequence."""
    spec = (
        "mesh dp = 2\nweights embed { kind embedding }\nweights positions { kind vector }\n"
        "dims batch = 2*dp, sequence = 64, hidden = 64, vocab = 1024\nblock start {\n  input ids(batch, sequence)\n"
        "  e = embedding ids with embed from vocab to hidden\n  f = bias e with positions over sequence, hidden\n}\n"
        "use data_parallel(dp)\n"
    )
    path = tmp_path / "a.place"
    path.write_text(spec)
    assert main(["check", str(path)]) == 0
    assert main(["cost", str(path)]) == 0
    assert "PL" not in capsys.readouterr().err
    path.write_text(spec.replace("kind vector", "kind vector, size 2048*64"))
    assert main(["cost", str(path)]) == 0
    path.write_text(spec + "budget 1 GiB\n")
    assert main(["check", str(path)]) == 0
