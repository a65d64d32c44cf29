"""`placelogic replay`, from the command line."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from placelogic.cli import main
from placelogic.report.replay import lines
from placelogic.report.replayed import NotReplayed, ReplayReport
from tests.replay.helpers import ROOT

RIGHT = "mesh dp\nlet P\nweights w { size P }\nuse zero3(dp)\n"
WRONG = "mesh tp\nlet P\nweights w { size P }\nweights norm { size P, kind vector }\nuse tensor_parallel(tp)\n"
WRONG += "sync norm over tp by sum\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers_hidden(text: str) -> str:
    return re.sub(r"\d\.\de[-+]\d\d", "#", text)


def test_a_proved_spec_trains_like_one_device(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "right.place").write_text(RIGHT)
    assert main(["replay", "right.place", "--way", "direct"]) == 0
    assert numbers_hidden(capsys.readouterr().out) == (
        "right.place: right: proved at dp = 2: equal, as the verdict says\n"
        "  direct on 2 processes, 3 steps of sgd and adam, float64\n"
        "  largest difference to one device: gradient #, params #, state #\n"
        "  params held: 48 B, derived 48 B\n"
        "  optimizer held: 96 B, derived 96 B\n"
        "  gradients held: 48 B, derived 48 B\n"
        "  reduce-scatter of gradients: 96 B, derived 96 B\n"
        "  all-gather of params: 96 B, derived 192 B, difference -96 B "
        "(the interpreter gathers what it computes with once a step, and keeps it)\n"
        "\n"
        "1 replayed: 1 as the verdict says\n"
    )


def test_a_refuted_spec_differs_by_the_factor(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "wrong.place").write_text(WRONG)
    assert main(["replay", "wrong.place"]) == 0
    assert numbers_hidden(capsys.readouterr().out) == (
        "wrong.place: wrong: refuted GI02 `norm` at tp = 2: different, as the verdict says\n"
        "  direct on 2 processes, 3 steps of sgd and adam, float64\n"
        "  no component of torch: components do what is right\n"
        "  largest difference to one device: gradient #, params #, state #\n"
        "  factor of the gradient: 2 by the counterexample, 2 measured\n"
        "\n"
        "1 replayed: 1 as the verdict says\n"
    )


def test_what_happens_inside_layers_is_replayed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = "block layer {\n  input x(batch, sequence, hidden)\n  u = linear x with up from hidden to ffn\n"
    block += "  g = gelu u\n  d = linear g with down from ffn to hidden\n}\n"
    (here / "inside.place").write_text(
        "mesh tp\nweights up { kind matrix }\nweights down { kind matrix }\nuse tensor_parallel(tp)\n"
        f"dims batch, sequence, hidden, ffn\n{block}backward d over tp by sum\n"
    )
    assert main(["replay", "inside.place"]) == 0
    assert numbers_hidden(capsys.readouterr().out) == (
        "inside.place: inside: refuted FW06 `up, down` at tp = 2: different, as the verdict says\n"
        "  direct on 2 processes, 3 steps of sgd and adam, float64\n"
        "  no component of torch: components do what is right\n"
        "  largest difference to one device: gradient #, forward #, params #, state #\n"
        "  factor of the gradient: 2 by the counterexample, 2 measured\n"
        "\n"
        "1 replayed: 1 as the verdict says\n"
    )


def test_broken_pieces_cannot_be_carried_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "broken.place").write_text(
        "mesh tp = 6\nmodel gpt { layers 2, hidden 64, heads 16, vocab 96 }\nuse tensor_parallel(tp)\n"
    )
    assert main(["replay", "broken.place"]) == 3
    assert "FW07: it cannot be carried out: what an axis cuts does not divide" in capsys.readouterr().out


def test_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "wrong.place").write_text(WRONG)
    assert main(["replay", "wrong.place", "--format", "json", "--optimizer", "spec", "--steps", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "placelogic" / "report" / "replay-1.schema.json").read_text())
    pytest.importorskip("jsonschema").validate(report, schema)
    (entry,) = report["replayed"]
    assert entry["result"] == "different"
    assert entry["agrees"] is True
    assert entry["mesh"] == {"tp": 2}
    assert entry["factor"]["named"] == 2
    assert entry["factor"]["measured"] == pytest.approx(2)
    assert entry["optimizers"] == ["spec"]


def test_a_mesh_of_ones_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "wrong.place").write_text(WRONG)
    assert main(["replay", "wrong.place", "--mesh", "tp=3", "--way", "direct"]) == 0
    assert "refuted at tp = 3: different, as the verdict says" in capsys.readouterr().out


def test_one_device_agrees_with_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both ways run, and nothing could have differed."""
    (here / "right.place").write_text(RIGHT)
    assert main(["replay", "right.place", "--mesh", "dp=1"]) == 0
    out = capsys.readouterr().out
    assert out.count("proved at dp = 1: equal, on one device, which decides nothing\n") == 2
    assert out.endswith("2 replayed: 0 as the verdict says, 2 on one device\n")


def test_without_pytorch(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (here / "right.place").write_text(RIGHT)
    assert main(["replay", "right.place"]) == 2
    err = capsys.readouterr().err
    assert "error[PL061]: a replay needs PyTorch, which is not installed" in err
    assert "= help: pip install '.[replay]' in the checkout" in err


def test_without_numpy(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "numpy" else found(name))
    (here / "right.place").write_text(RIGHT)
    assert main(["replay", "right.place"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error[PL061]: a replay needs NumPy, which is not installed\n")
    assert "= help: pip install '.[replay]' in the checkout\n" in err


def test_a_failure_of_many_lines_is_told_in_lines() -> None:
    left = NotReplayed("right", "proved", "rank 0 failed:\nTraceback:\n  here\x1b[2J\n", True)
    told = [
        "".join(text for text, _ in line) for line in lines(ReplayReport("a.place", "cpu", "float64", 3, (), (left,)))
    ]
    assert told == [
        "a.place: right: proved, not replayed: rank 0 failed:",
        "  Traceback:",
        "    here\ufffd[2J",
        "",
        "0 replayed: 0 as the verdict says; 1 not replayed",
    ]


@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        (RIGHT, ["--mesh", "tp=2"], 3, "not replayed: the spec has no size `tp`"),
        (RIGHT, ["--counterexample"], 3, "not replayed: it has no counterexample"),
        (RIGHT.replace("P }", "Q }"), [], 2, "error, not replayed: PL"),
        ("mesh dp = 3\nassume dp % 2 == 0\nlet P\nweights w { size P }\nuse zero1(dp)\n", [], 3, "no mesh at all"),
    ],
)
def test_nothing_to_replay(
    text: str, arguments: list[str], code: int, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.place").write_text(text)
    assert main(["replay", "a.place", *arguments]) == code
    assert said in capsys.readouterr().out


def test_no_such_spec(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "a.place").write_text(RIGHT)
    assert main(["replay", "a.place", "--spec", "b"]) == 2
    assert "error[PL014]: there is no spec `b` in this file" in capsys.readouterr().err


def test_a_disagreement_is_told_as_a_bug(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from placelogic.run import buffers

    def forgotten(*arguments: object) -> None:
        """A reduction that does nothing."""

    monkeypatch.setattr(buffers, "reduce", forgotten)
    (here / "a.place").write_text("mesh dp\nlet P\nweights w { size P }\nuse data_parallel(dp)\n")
    assert main(["replay", "a.place", "--way", "direct"]) == 1
    out = capsys.readouterr().out
    assert "proved at dp = 2: different, which the verdict denies" in out
    assert "this is a bug in placelogic: please report it with the spec and this output" in out


def test_an_example_that_is_wrong_on_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(ROOT / "examples" / "refuted_expert_scale.place")]) == 0
    assert "factor of the gradient: 2 by the counterexample, 2 measured" in capsys.readouterr().out
