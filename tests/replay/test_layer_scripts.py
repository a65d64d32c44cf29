"""`placelogic replay --script` of faults inside layers: the operations of the blocks, with what crosses between them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.problem import SpecError
from placelogic.replay.script import script
from placelogic.replay.specs import judged
from tests.replay.helpers import ROOT
from tests.replay.shown import DIFFERENT, SAME, Shown, named, of_right_steps, printed, written

LAYERS = ROOT / "tests" / "layers" / "cases"
REPLAY = ROOT / "tests" / "replay" / "cases"
FILES = [*sorted(LAYERS.glob("*.place")), REPLAY / "blocks.place", REPLAY / "turns.place"]
QUICK = {
    "reports: b150_bias_before_the_sum": "FW04",
    "reports: b08_only_the_head_itself": "FW06",
    "reports: b12_sliced_on_the_way_back": "FW06",
    "reports: b13_remote_experts_missing": "FW06",
    "reports: b160_whole_logits": "FW05",
    "reports: never_reduced": "FW03",
    "rules: different_columns_added_up": "FW06",
    "rules: traded_and_multiplied_on_the_way_back": "FW06",
    "rules: other_numbers_on_two_devices": "FW08",
    "rules: places_counted_anew_on_two_devices": "FW08",
    "rules: whole_filters_not_summed": "GI01",
    "turns: summed_turn_by_turn": "GI05",
    "turns: doubled_before_anything_is_trained": "FW04",
}
"""Of every kind one: run by every test run."""


@pytest.fixture(scope="module")
def every() -> list[Shown]:
    return [one for path in FILES for one in written(path)]


def test_what_can_be_carried_out_has_a_script(every: list[Shown]) -> None:
    assert len(every) >= 75
    left_out = {one.name: one.reason for one in every if one.text is None}
    assert {name: reason for name, reason in left_out.items() if "cannot be carried out" not in reason} == {}
    shown = [one.text for one in every if one.text is not None]
    assert len(shown) >= 63
    lines = sorted(len(text.splitlines()) for text in shown)
    assert lines[-1] <= 130
    assert lines[len(lines) // 2] <= 98
    assert all("placelogic" not in text.split('"""', 2)[2] for text in shown)  # but for where it comes from


@pytest.mark.parametrize("name", QUICK)
def test_the_difference_shows(name: str) -> None:
    pytest.importorskip("torch")
    one = named(name, FILES)
    assert one.code == QUICK[name]
    assert one.text is not None, one.reason
    told = printed(one.text)
    assert told.rstrip().endswith(DIFFERENT), told
    assert "nan" not in told


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_difference_shows(path: Path) -> None:
    pytest.importorskip("torch")
    for one in written(path):
        assert one.text is None or DIFFERENT in (told := printed(one.text)), (one.name, told)


def test_micro_batches_one_by_one_and_together() -> None:
    """It is what crosses that makes the difference, not the script."""
    pytest.importorskip("torch")
    scripts = list(of_right_steps(REPLAY / "turns.place"))
    assert len(scripts) == 3
    for one in scripts:
        assert SAME in (told := printed(one.text or "")), (one.name, told)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES[:-1], ids=lambda path: path.stem)
def test_no_right_layers_show_anything(path: Path) -> None:
    pytest.importorskip("torch")
    scripts = [one for one in of_right_steps(path) if one.name.endswith(" inside")]
    assert len(scripts) >= {"reports": 15, "rules": 35, "blocks": 6}.get(path.stem, 1)
    for one in scripts:
        assert SAME in (told := printed(one.text or "")), (one.name, told)


def test_the_page_shows_what_is_written() -> None:
    page = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    one = named("reports: b150_bias_before_the_sum", FILES)
    assert one.text is not None and shown in one.text


NEIGHBOURS = """mesh tp
weights norm { kind vector }
weights conv { kind vector }
place * over tp { params replicated, optimizer replicated, gradients replicated }
place norm over tp { activations sharded on sequence }
dims batch, sequence, hidden, taps
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  c = convolve n with conv over sequence width taps for hidden
  y = add x, c
}
"""


def test_the_single_device_convolves_too(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "a.place"
    path.write_text(NEIGHBOURS, encoding="utf-8")
    *_, one = of_right_steps(path)
    assert one.text is not None and "picked(" in one.text
    assert SAME in (told := printed(one.text)), told


TWO_KINDS = """mesh cp
weights qkv { kind matrix }
use context_parallel(cp)
dims batch, sequence, hidden, heads, head
block layer {
  input x(batch, sequence, hidden)
  q = linear x with qkv from hidden to heads, head
  k = linear x with qkv from hidden to heads, head
  c = attention q, k, k causal
  d = attention q, k, k
  y = add c, d
}
"""


def test_two_kinds_of_attention(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "two.place").write_text(TWO_KINDS)
    (one,) = (one for one in of_right_steps(tmp_path / "two.place") if one.name.endswith(" inside"))
    assert one.text is not None
    assert one.text.count(", causal=False)") == 1
    assert SAME in (told := printed(one.text)), told


# --- as a person has it ---------------------------------------------------------------------------

BIAS = """mesh tp
weights up { kind matrix }
weights down { kind matrix }
weights bias { kind vector }
use tensor_parallel(tp)
dims batch, sequence, hidden, ffn
block layer {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  a = gelu u
  p = linear a with down from ffn to hidden
  b = bias p with bias over hidden
  r = reduce b over tp by sum
  w = gelu r
}
"""


def test_a_bias_that_every_device_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("bias.place").write_text(BIAS)
    assert main(["replay", "bias.place", "--script", "shown.py"]) == 0
    assert capsys.readouterr().out == "shown.py shows FW04 of bias\n"
    text = Path("shown.py").read_text()
    layer = text[text.index("def layer(") : text.index("def step(")]
    assert layer.splitlines() == [
        "def layer(x, held, rank):",
        '    x_u = move(x, rank, "tp", "none", "sum")',
        '    u = torch.einsum("bsh,hf->bsf", x_u, held["up"])',
        "    a = F.gelu(u)",
        '    p = torch.einsum("bsf,fh->bsh", a, held["down"])',
        '    b = p + held["bias"]',
        '    r = move(b, rank, "tp", "sum", "none")  # line 13',
        "    return F.gelu(r)",
        "",
    ]
    run = subprocess.run([sys.executable, "shown.py"], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.endswith("2 devices: DIFFERENT from one device\n")
    assert "step 1, device 1: w of layer [" in run.stdout


SHARDED = BIAS.replace("mesh tp\n", "mesh dp, tp\n").replace("use tensor", "use zero2(dp) * tensor")


def at(**sizes: int) -> Callable[[str], str]:
    def fixed(text: str) -> str:
        for axis, size in sizes.items():
            text = text.replace(f"mesh {axis},", f"mesh {axis} = {size},").replace(
                f", {axis}\n", f", {axis} = {size}\n"
            )
        return text

    return fixed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (at(dp=2)(SHARDED), "`up` lies in shards between steps that are not what is computed with"),
        (BIAS.replace("mesh tp", "mesh tp = 16"), "it needs 16 devices"),
        (BIAS + "loss main mean local\nloss other mean local\n", "it has several losses"),
        (BIAS + "clip global_norm\n", "its step clips, skips, gathers or broadcasts"),
    ],
)
def test_what_is_left_out_is_told(text: str, said: str) -> None:
    (_, program, report) = next(judged(text, "a.place", None, lambda told: None))
    assert program is not None
    finding = next(f for f in report.findings if f.severity == "error" and f.counterexample is not None)
    with pytest.raises(SpecError, match=said):
        script(program, finding, "a.place")
