"""`import` and `check --from` on the command line, with the printed text."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.syntax.format import format_text

DS = """\
{
  // stage 2
  "zero_optimization": {"stage": 2},
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "steps_per_print": 10
}
"""
SPEC = """\
# ds.json, as DeepSpeed 0.19 runs it.

mesh dp = 16  # --world

let P  # sizes of the model are not in the file: every size
let Q
let V

microbatches 8  # line 5: gradient_accumulation_steps 8

weights linear { size P, kind matrix }    # the matrices of all layers
weights norm { size Q, kind vector }      # norms and biases
weights embed { size V, kind embedding }  # token embedding and output matrix

use deepspeed_zero2(dp)        # line 3: zero_optimization.stage 2
use deepspeed_accumulation()  # the loss is a mean over the tokens of a micro-batch

optimizer adamw  # the optimizer is not in the file: one that acts on each element
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text(DS)
    return tmp_path


def test_import_prints_a_spec_with_the_setting_of_each_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "deepspeed", "ds.json", "--world", "16"]) == 0
    told = capsys.readouterr()
    assert told.out == SPEC.replace("use deepspeed_zero2(dp)        #", "use deepspeed_zero2(dp)       #")
    assert told.err == ""
    assert format_text(told.out, "a.place") == told.out


def test_import_writes_a_file_that_check_reads(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "deepspeed", "ds.json", "-o", "run.place", "--ignored"]) == 0
    assert "ds.json: settings without meaning for placement: steps_per_print" in capsys.readouterr().err
    assert main(["check", "run.place"]) == 0
    assert "run.place: proved" in capsys.readouterr().out
    assert main(["import", "deepspeed", "ds.json", "-o", "no/such/folder.place"]) == 2
    assert "PL012" in capsys.readouterr().err


def test_import_several_into_a_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "b.json").write_text('{"oops": }')
    (here / "specs").mkdir()
    assert main(["import", "deepspeed", "ds.json", "b.json", "-o", "specs"]) == 2
    assert sorted(path.name for path in (here / "specs").iterdir()) == ["ds.place"]
    assert "error[PL500]: a value is expected here\n --> b.json:1:10" in capsys.readouterr().err


def test_check_from(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--from", "deepspeed", "ds.json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ds.json (spec): proved (12 obligations, 12 stated) for every dp\n")
    assert (
        main(["check", "--from", "deepspeed", "ds.json", "--set", "gradient_allreduce_op=sum", "--format", "json"]) == 1
    )
    assert '"UB05"' in capsys.readouterr().out


def test_check_from_a_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "more").mkdir()
    (here / "more" / "zero3.json").write_text('{"zero_optimization": {"stage": 3}}')
    (here / "notes.txt").write_text("nothing")
    assert main(["check", "--from", "deepspeed", "."]) == 0
    assert "2 specs in 2 files: 2 proved" in capsys.readouterr().out


def test_a_wrong_setting_is_shown_in_its_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "ds.json").write_text(DS.replace('"stage": 2', '"stage": "two"'))
    assert main(["check", "--from", "deepspeed", "ds.json"]) == 2
    assert capsys.readouterr().out.startswith(
        "error[PL501]: `zero_optimization.stage` must be a whole number, not `two`\n --> ds.json:3:34\n  |\n"
        '3 |   "zero_optimization": {"stage": "two"},\n  |                                  ^^^^^\n'
    )


def test_unlike_samples_are_told_of_by_check_and_import(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "axo.yml").write_text("sample_packing: true\nbase_model: ours\n")
    hint = "packed samples have unlike numbers of loss tokens, which are taken as equal here; `--tokens uneven` asks about that"
    assert main(["check", "--from", "axolotl", "axo.yml"]) == 0
    assert f"  note[NT25]: axo.yml:1:17: {hint}\n" in capsys.readouterr().out
    assert main(["import", "axolotl", "axo.yml"]) == 0
    told = capsys.readouterr()
    assert "NT25" in told.err and "`--tokens uneven` asks about that.\n" in told.out
    for given, code in (("even", 0), ("uneven", 1)):
        assert main(["check", "--from", "axolotl", "axo.yml", "--tokens", given, "--world", "4"]) == code
        out = capsys.readouterr().out
        assert "NT25" not in out and ("error[GI04]" in out) == bool(code)


def test_from_standard_input(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(DS.encode())))
    assert main(["check", "--from", "deepspeed", "-"]) == 0
    assert "<stdin> (spec): proved" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "deepsped", "ds.json"], "PL505"),
        (["import", "deepspeed", "gone.json"], "PL001"),
        (["import", "deepspeed", "ds.json", "--framework-version", "new"], "PL505"),
        (["import", "deepspeed", "ds.json", "--set", "stage"], "is not NAME=VALUE"),
        (["import", "deepspeed", "ds.json", "--world", "0"], "0 is not in the range"),
        (["check", "x.place", "--world", "4"], "go with --from"),
    ],
)
def test_wrong_usage(here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert said in told.err + told.out
