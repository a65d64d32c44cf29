"""A file is read as the framework's that it belongs to, and no other file is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.frontends import FRAMEWORKS, Request, import_text
from placelogic.frontends.recognise import recognise
from placelogic.problem import SpecError
from tests.frontends.foreign import SMALL, foreign

CONFIGS = Path(__file__).parents[2] / "examples" / "configs"


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_no_foreign_file_makes_a_spec(framework: str) -> None:
    """200 files that are not of this framework: each is refused, and never proved."""
    made = []
    for name, text in foreign(200):
        try:
            made.append((name, import_text(framework, text, name, Request()).problems))
        except SpecError as error:
            assert {problem.code for problem in error.problems} <= {"PL500", "PL501", "PL506", "PL507"}, (name, error)
    assert [name for name, problems in made if not problems] == []


@pytest.mark.parametrize("path", sorted(CONFIGS.iterdir()), ids=lambda path: path.name)
def test_examples_are_recognised(path: Path) -> None:
    found = recognise(path.read_text(encoding="utf-8"), str(path))
    assert found is not None and found.name is not None and path.name.startswith(found.name)


def test_what_it_looks_like_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ppo.sh").write_text(SMALL["ppo.sh"])
    assert main(["check", "--from", "megatron", str(tmp_path / "ppo.sh")]) == 2
    out = capsys.readouterr().out
    assert "error[PL507]: this is no Megatron-LM configuration: it looks like verl" in out
    assert "= help: there is no importer for verl" in out


def test_a_configuration_needs_no_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1}')
    assert main(["check", str(tmp_path / "ds.json")]) == 0
    assert "proved" in capsys.readouterr().out
    (tmp_path / "package.json").write_text(SMALL["package.json"])
    assert main(["check", str(tmp_path / "package.json")]) == 2
    assert "there is no importer for this file: it looks like a package of npm" in capsys.readouterr().out
    (tmp_path / "odd.json").write_text('{"a": 1}')
    assert main(["check", "--from", "auto", str(tmp_path / "odd.json")]) == 2
    assert "which framework this file configures cannot be told from it" in capsys.readouterr().out


def test_a_file_that_sets_nothing_is_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ds.json").write_text('{"steps_per_print": 3}')
    assert main(["check", "--from", "deepspeed", str(tmp_path / "ds.json")]) == 2
    assert "no setting in it decides how it trains" in capsys.readouterr().out


def test_sizes_of_a_model_are_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.sh").write_text("MODEL_ARGS=(--num-layers 12 --hidden-size 64 --num-attention-heads 4)\n")
    assert main(["check", str(tmp_path / "model.sh")]) == 2
    assert "no setting in it decides how it trains" in capsys.readouterr().out


def test_a_folder_leaves_out_what_is_not_of_the_framework(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    (tmp_path / "package.json").write_text(SMALL["package.json"])
    (tmp_path / "ci.yml").write_text(SMALL["ci.yml"])
    assert main(["check", "--from", "deepspeed", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "1 spec in 1 file: 1 proved" in printed.out
    assert "2 files are no configuration of deepspeed: left out" in printed.err
    (tmp_path / "ds.json").unlink()
    assert main(["check", "--from", "deepspeed", str(tmp_path)]) == 2


def test_an_unknown_name_that_may_decide_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "stage_count": 3}')
    assert main(["check", "--from", "deepspeed", str(tmp_path / "ds.json")]) == 2
    assert "error[PL508]: `stage_count` is not known here, and its name speaks of what decides" in capsys.readouterr().out
    assert main(["check", "--from", "deepspeed", str(tmp_path / "ds.json"), "--allow-unknown", "stage_count"]) == 0
    assert "warning[NT20]: `stage_count` is not known here" in capsys.readouterr().out
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "tensor_paralell_size": 4}')
    assert main(["check", "--from", "deepspeed", str(tmp_path / "ds.json")]) == 2
    assert "error[PL508]: `tensor_paralell_size`" in capsys.readouterr().out
