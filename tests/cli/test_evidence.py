"""`check --recheck` and `check --emit-smt2` over the real solvers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import placelogic
from placelogic.cli import main

ROOT = Path(__file__).parents[2]
SPECS = """\
mesh dp, tp
batch over dp
microbatches M
weights attn { size 4096 }
weights norm { size 64, kind vector }
use data_parallel(dp) * tensor_parallel(tp)
assume dp % tp == 0
spec right {
  sync norm over tp by mean
}
spec wrong {
  sync norm over tp by sum
}
"""


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "manifest.json").read_text())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def llama(here: Path) -> Path:
    (here / "llama.place").write_text(SPECS)
    return here


def test_recheck_is_told(llama: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cvc5")
    assert main(["check", "llama.place", "--recheck"]) == 1
    out = capsys.readouterr().out
    counts = re.findall(r"^  rechecked as it stands: z3 (\d+) of (\d+), cvc5 (\d+) of (\d+)$", out, re.M)
    assert len(counts) == 2
    assert all(len(set(found)) == 1 and int(found[0]) > 3 for found in counts)
    assert main(["check", "llama.place", "--recheck", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    schema = json.loads((Path(placelogic.__file__).parent / "report/check-1.schema.json").read_text())
    jsonschema.validate(report, schema)
    for spec in report["files"][0]["specs"]:
        assert spec["recheck"]["z3"] == spec["recheck"]["cvc5"] == spec["recheck"]["questions"] > 3
        assert {one["by"] for one in spec["settled"]} <= {"normal form", "z3"}
        assert all(one["confirmed_by"] == ["z3", "cvc5"] for one in spec["settled"])
    assert main(["check", "llama.place", "--format", "json"]) == 1
    assert all(spec["recheck"] is None for spec in json.loads(capsys.readouterr().out)["files"][0]["specs"])


def test_without_cvc5_nothing_is_checked(
    llama: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cvc5", None)
    assert main(["check", "llama.place", "--recheck", "--emit-smt2", "out"]) == 2
    out = capsys.readouterr().out
    assert out.startswith("error[PL017]: cvc5, the second solver, is not installed\n")
    assert "= help: pip install '.[recheck]' in the checkout, or pip install cvc5\n" in out
    assert not Path("out").exists()
    assert main(["check", "llama.place", "--emit-smt2", "out"]) == 1, "writing the questions needs z3 only"
    assert manifest(Path("out"))["solvers"]["cvc5"] is None


def test_files_decide_the_same_without_us(llama: Path) -> None:
    z3 = pytest.importorskip("z3")
    pytest.importorskip("cvc5")
    from placelogic.prove import second

    assert main(["check", "llama.place", "--recheck", "--emit-smt2", "out"]) == 1
    written = manifest(Path("out"))
    assert written["placelogic"] == placelogic.__version__
    assert written["solvers"] == {"z3": z3.get_version_string(), "cvc5": second.version()}
    assert [(spec["spec"], spec["verdict"]) for spec in written["specs"]] == [("right", "proved"), ("wrong", "refuted")]
    seen: dict[bytes, str] = {}
    for spec in written["specs"]:
        assert spec["sha256"] == hashlib.sha256(Path(spec["path"]).read_bytes()).hexdigest()
        assert spec["questions"][0]["kind"] == "assumptions"
        for one in spec["questions"]:
            data = (Path("out") / one["file"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == one["sha256"]
            assert f"; spec: {spec['spec']}\n; {one['kind']}: {one['name']}\n".encode() in data
            if data not in seen:
                solver = z3.Solver()
                solver.from_string(data.decode())
                seen[data] = str(solver.check())
                assert second.answer(data.decode()).status == seen[data]
            assert one["says"] == one["z3"] == one["cvc5"] == seen[data]
    assert {"sat", "unsat"} == set(seen.values())
    listed = {one["file"] for spec in written["specs"] for one in spec["questions"]}
    assert listed == set(tree(Path("out"))) - {"manifest.json"}


@pytest.mark.slow
def test_two_runs_write_the_same_bytes(llama: Path) -> None:
    for name, seed in (("a", "1"), ("b", "2")):
        subprocess.run(
            [sys.executable, "-m", "placelogic", "check", "--emit-smt2", name, "llama.place"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        )
    assert tree(Path("a")) == tree(Path("b")) != {}


def test_our_own_folder_is_brought_up_to_date(llama: Path) -> None:
    assert main(["check", "llama.place", "--emit-smt2", "out"]) == 1
    (llama / "out" / "notes.txt").write_text("mine")
    (llama / "right.place").write_text(SPECS.split("spec wrong")[0])
    assert main(["check", "right.place", "--emit-smt2", "out", "--at", "tp=1"]) == 0
    assert main(["check", "right.place", "--emit-smt2", "fresh", "--at", "tp=1"]) == 0
    assert tree(Path("out")) == {**tree(Path("fresh")), "notes.txt": b"mine"}
    assert manifest(Path("out"))["at"] == {"tp": 1}
    assert not (llama / "out" / "llama.wrong").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"notes.txt": "mine"}, "it is not empty"),
        ({"manifest.json": "{}"}, "its manifest.json is not of this program"),
        ({"manifest.json": "[1]"}, "its manifest.json is not of this program"),
        ({"manifest.json": "not json"}, "its manifest.json is not of this program"),
        (None, "it is a file"),
    ],
)
def test_other_folders_are_left_alone(
    llama: Path, capsys: pytest.CaptureFixture[str], content: dict[str, str] | None, reason: str
) -> None:
    if content is None:
        (llama / "out").write_text("a file")
    else:
        (llama / "out").mkdir()
        for name, text in content.items():
            (llama / "out" / name).write_text(text)
    before = tree(llama)
    assert main(["check", "llama.place", "--emit-smt2", "out"]) == 2
    said = f"error[PL016]: nothing is written into `out`, which placelogic did not make: {reason}\n"
    assert capsys.readouterr().out.startswith(said)
    assert tree(llama) == before


def test_a_manifest_cannot_make_us_remove_other_files(llama: Path) -> None:
    (llama / "out").mkdir()
    (llama / "precious.smt2").write_text("mine")
    names = ["../precious.smt2", "../llama.place", "/etc/hostname", "manifest.json", "..", 7]
    specs = [{"questions": [{"file": name} for name in names]}]
    (llama / "out" / "manifest.json").write_text(json.dumps({"schema": "placelogic/smt2/1", "specs": specs}))
    assert main(["check", "llama.place", "--emit-smt2", "out"]) == 1
    assert (llama / "precious.smt2").read_text() == "mine"
    assert (llama / "llama.place").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_made(llama: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (llama / "locked").mkdir(mode=0o500)
    assert main(["check", "llama.place", "--emit-smt2", "locked/out"]) == 1
    assert "error[PL012]: `locked/out` cannot be written: permission denied\n" in capsys.readouterr().out


def test_a_folder_below_a_file(llama: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "llama.place", "--emit-smt2", "llama.place/out", "--at", "tp=1"]) == 2
    assert "cannot be written" in capsys.readouterr().out


def test_specs_without_questions_are_listed(llama: Path) -> None:
    (llama / "broken.place").write_text("mesh dp\nbatch over dq\nweights w { size 4 }\n")
    (llama / "more").mkdir()
    (llama / "more" / "llama.place").write_text(SPECS)
    assert main(["check", "broken.place", "llama.place", "more/llama.place", "--emit-smt2", "out"]) == 1
    specs = manifest(Path("out"))["specs"]
    assert [(spec["path"], spec["verdict"], bool(spec["questions"])) for spec in specs] == [
        ("broken.place", "error", False),
        ("llama.place", "proved", True),
        ("llama.place", "refuted", True),
        ("more/llama.place", "proved", True),
        ("more/llama.place", "refuted", True),
    ]
    folders = [spec["questions"][0]["file"].split("/")[0] for spec in specs if spec["questions"]]
    assert folders == ["llama.right", "llama.wrong", "llama.right-2", "llama.wrong-2"]
