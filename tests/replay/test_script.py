"""`placelogic replay --script`: programs that need PyTorch alone show the counterexample, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from placelogic.cli import main
from tests.replay.helpers import ROOT
from tests.replay.shown import DIFFERENT, SAME, Shown, named, of_right_steps, printed, written

WRONG = "mesh tp\nlet P\nweights w { size P }\nweights norm { size P, kind vector }\nuse tensor_parallel(tp)\n"
WRONG += "sync norm over tp by sum\n"
FILES = sorted([*(ROOT / "tests/verdicts/cases").glob("*.place"), *(ROOT / "tests/verdicts/more").glob("*.place")])
QUICK = {
    "clipping: shards_left_out": "GI07",
    "norms_of_stages: tied_embedding_counted_twice": "GI07",
    "norms_and_ends: first_not_seen_by_last": "GI07",
    "tied: cut_before_summed": "GI06",
    "flat_and_fed: flat_before_stages": "GI06",
    "alignment: rows_and_columns": "SC03",
    "alignment: nested_otherwise": "CC02",
    "state: start_different": "SC05",
    "state: muon_on_pieces": "SC06",
    "language_start: streams_differ": "SC07",
    "turn_by_turn: shard_of_the_first_decides": "SC08",
    "denominators: mean_of_means": "GI04",
    "experts: summed_and_never_divided": "GI03",
    "forward: other_samples": "FW02",
    "publish: master_forgotten": "SC04",
    "sizes: fixed_and_wrong": "GI02",
}
"""Of every kind one: run by every test run."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def every() -> list[Shown]:
    return [one for path in FILES for one in written(path)]


def imports(text: str) -> set[str]:
    return set(re.findall(r"^import (.*)$", text, re.MULTILINE))


def test_the_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    (here / "wrong.place").write_text(WRONG)
    assert main(["replay", "wrong.place", "--script", "shown.py"]) == 0
    assert capsys.readouterr().out == "shown.py shows GI02 of wrong\n"
    text = (here / "shown.py").read_text()
    assert len(text.splitlines()) <= 80
    run = subprocess.run([sys.executable, "shown.py"], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.endswith("2 devices: DIFFERENT from one device\n")
    assert "step 1, device 1: norm is tensor(" in run.stdout


def test_most_counterexamples_have_a_script(every: list[Shown]) -> None:
    """Written without torch. The others have no step that could be carried out."""
    shown = [one for one in every if one.text is not None]
    assert len(every) >= 218
    assert len(shown) >= 194
    left_out = {one.name: one.reason for one in every if one.text is None}
    wanted = (
        "its step cannot be carried out",
        "a step skips twice",
        # Of specs with blocks: decisions, and what the step leaves out altogether.
        "whether to skip or clip",
        "its step clips, skips",
        "it is not what the operations of its layers do",
    )
    # Three specs are about counterexamples that are too large to be run at all.
    assert {name for name, reason in left_out.items() if not reason.startswith(wanted)} == {
        "large_and_wrong: a_large_product", "large_and_wrong: many_microbatches",
        "sizes_that_fit: a_product_that_must_divide",
    }  # fmt: skip
    # With the operations of blocks scripts are longer: test_layer_scripts.py.
    shown = [one for one in shown if "move = Move.apply" not in (one.text or "")]
    assert len(shown) >= 194
    lines = sorted(len((one.text or "").splitlines()) for one in shown)
    assert lines[-1] <= 92
    assert sum(length <= 80 for length in lines) / len(lines) > 0.85
    assert all(
        imports(one.text or "")
        == {"sys, tempfile", "torch", "torch.distributed as dist", "torch.multiprocessing as mp"}
        for one in shown
    )
    assert len(Counter(one.code for one in shown)) >= 16


@pytest.mark.parametrize("name", QUICK)
def test_the_difference_shows(name: str) -> None:
    pytest.importorskip("torch")
    one = named(name, FILES)
    assert one.code == QUICK[name]
    assert one.text is not None, one.reason
    told = printed(one.text)
    assert told.rstrip().endswith(DIFFERENT), told


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_difference_shows(path: Path) -> None:
    pytest.importorskip("torch")
    for one in written(path):
        assert one.text is None or DIFFERENT in (told := printed(one.text)), (one.name, told)


QUICK_FILES = ("cases/tied", "cases/zero2_pipeline", "more/norms_and_ends")


@pytest.mark.parametrize("name", QUICK_FILES)
def test_a_right_step_shows_nothing(name: str) -> None:
    """It is the step that makes the difference, not the script."""
    pytest.importorskip("torch")
    scripts = list(of_right_steps(ROOT / "tests" / "verdicts" / f"{name}.place"))
    assert scripts
    for one in scripts:
        assert SAME in (told := printed(one.text or "")), (one.name, told)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in FILES if f"{path.parent.name}/{path.stem}" not in QUICK_FILES], ids=lambda path: path.stem
)
def test_no_right_step_shows_anything(path: Path) -> None:
    pytest.importorskip("torch")
    for one in of_right_steps(path):
        assert SAME in (told := printed(one.text or "")), (one.name, told)


def test_who_is_wrong_is_what_is_shown() -> None:
    """Weights that are right are left out, unless the norm of all needs them."""
    alone = named("tensor_axis: matrix_summed", FILES)
    assert alone.text is not None
    assert 'START = {"attn": ' in alone.text
    together = named("norms_and_ends: first_not_seen_by_last", FILES)
    assert together.text is not None
    assert together.text.count("clip by the global norm") == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mesh dp\nlet P\nweights w { size P }\nuse zero3(dp)\n", "no spec here is refuted"),
        (WRONG.replace("mesh tp", "mesh tp = 16"), "it needs 16 devices"),
        (
            "mesh dp\nlet P\nweights w { size P }\nbatch over dp\nplace w over dp = (S, S, S, R)\n",
            "cannot be carried out",
        ),
    ],
)
def test_no_script(text: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(text)
    assert main(["replay", "a.place", "--script", "shown.py"]) == 2
    err = capsys.readouterr().err
    assert "error[PL062]" in err
    assert said in err
