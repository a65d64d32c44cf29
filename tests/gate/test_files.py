"""The files for other services, and the commands that help to set up."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from placelogic.cli import main
from placelogic.commands import NAMES, diagnosis
from placelogic.gate.config import load
from tests.gate.conftest import BAD, BAD_LINE, GOOD

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
yaml = pytest.importorskip("yaml")


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


# --- the action ---------------------------------------------------------------------------------


def action() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_the_action_is_pinned_and_takes_nothing_as_code() -> None:
    runs = action()["runs"]
    assert runs["using"] == "composite"
    for step in runs["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", step["uses"]), "a commit, not a tag that can move"
        else:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"], "what an input says is data, handed over in the environment"


def test_the_action_uses_the_inputs_it_has() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action()["inputs"])


@pytest.mark.skipif(os.name != "posix", reason="needs bash")
@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_step_of_the_action(repository: Path, text: str, code: int) -> None:
    (repository / "specs" / "a b.place").write_text(text)
    program = repository.parent / "placelogic"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m placelogic "$@"\n')
    program.chmod(0o755)
    (step,) = [one for one in action()["runs"]["steps"] if one.get("id") == "gate"]
    names = {name: "" for name in step["env"]}
    files = {name: repository.parent / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    more = {name: str(path) for name, path in files.items()}
    given = {"PROGRAM": str(program), "SARIF": "r.sarif", "JUNIT": "r junit.xml", "FILES": "specs/a b.place\n"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        capture_output=True, text=True, timeout=120, env=environment(**{**names, **given, **more}),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "")
    assert files["GITHUB_OUTPUT"].read_text() == f"exit-code={code}\n"
    assert files["GITHUB_STEP_SUMMARY"].read_text().startswith("## placelogic\n")
    assert (f"::error file=specs/a b.place,line={BAD_LINE}," in done.stdout) == (code == 1)
    assert Path("r.sarif").exists() and Path("r junit.xml").exists()


# --- pre-commit, GitLab -------------------------------------------------------------------------


def test_the_hooks_run_what_there_is() -> None:
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    for name, hook in hooks.items():
        assert f"- id: {name}" in PAGE
        program, command, *_ = hook["entry"].split()
        assert program == "placelogic" and command in NAMES
        assert hook["language"] == "python"
    assert hooks["placelogic-gate"]["pass_filenames"] is False, "a library concerns every spec that imports it"
    files = re.compile(hooks["placelogic-gate"]["files"])
    assert all(
        files.search(name) for name in ("a.place", "x/placelogic.toml", "pyproject.toml", "placelogic-baseline.json")
    )
    assert not files.search("place.py")


def test_what_the_page_shows_can_be_read(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    github, gitlab, hooks = map(yaml.safe_load, blocks)
    assert set(github["jobs"]["placelogic"]["steps"][1]["with"]) <= set(action()["inputs"])
    assert gitlab["placelogic"]["artifacts"]["reports"]["junit"] == "placelogic.xml"
    assert {hook["id"] for hook in hooks["repos"][0]["hooks"]} == {"placelogic-fmt", "placelogic-gate"}
    (repository / "specs" / "a.place").write_text(BAD)
    command = next(line for line in gitlab["placelogic"]["script"] if line.startswith("placelogic "))
    assert main(command.split()[1:]) == 1
    assert Path("placelogic.xml").read_text().startswith("<?xml")
    (config,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (repository / "placelogic.toml").write_text(config)
    assert load().config.minimum_sizes == {"dp": 64, "tp": 8}


# --- init -----------------------------------------------------------------------------------------


def test_init(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert capsys.readouterr().out == (
        f"wrote placelogic.toml\nwrote {os.path.join('specs', 'training.place')}\nnext: placelogic gate\n"
    )
    assert main(["gate"]) == 0
    assert "training.place: ok (1 proved)" in capsys.readouterr().out
    assert main(["fmt", "--check", "specs"]) == 0
    assert main(["check", "specs", "--require-stated"]) == 0


def test_every_setting_that_init_shows_can_be_used(repository: Path) -> None:
    assert main(["init"]) == 0
    config = repository / "placelogic.toml"
    settings = re.sub(r"^# ([a-z-]+ = )", r"\1", config.read_text(), flags=re.MULTILINE)
    assert settings.count("\n# ") < config.read_text().count("\n# ")
    config.write_text(settings)
    assert load().config.minimum_sizes == {"dp": 64, "tp": 8}


def test_what_the_first_spec_says_of_a_forgotten_line_is_true(repository: Path) -> None:
    assert main(["init"]) == 0
    spec = repository / "specs" / "training.place"
    for line in ("sync norms over tp by sum", "sync embed over pp by sum"):
        text = spec.read_text()
        spec.write_text(text.replace(line, line.replace("by sum", "by none")))
        assert main(["gate"]) == 1
        spec.write_text(text)


def test_init_writes_over_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "pyproject.toml").write_text("[tool.placelogic]\n")
    (repository / "specs" / "training.place").write_text("mine\n")
    assert main(["init"]) == 0
    out = capsys.readouterr().out
    assert "left alone pyproject.toml: it is there already\n" in out
    assert (repository / "specs" / "training.place").read_text() == "mine\n"
    assert not (repository / "placelogic.toml").exists()


def test_init_elsewhere(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "my trainer").mkdir()
    assert main(["init", "my trainer", "--specs", "a/b"]) == 0
    assert capsys.readouterr().out.endswith("next: cd 'my trainer' && placelogic gate\n")
    os.chdir("my trainer")
    assert main(["gate"]) == 0
    assert main(["init", "..", "--specs", "../out"]) == 2
    assert main(["init", "a/b/training.place"]) == 2


# --- doctor, completion ------------------------------------------------------------------------


def test_doctor(repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        diagnosis, "_TORCH", "import json; print(json.dumps(dict(version='9', devices=['H', 'H'], distributed=False)))"
    )
    assert main(["doctor", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    signs = {sign["name"]: (sign["state"], sign["told"]) for sign in told["signs"]}
    assert signs["z3-solver"][0] == "ok"
    assert signs["a spec that is right"] == ("ok", "proved")
    assert signs["a spec that is wrong"] == ("ok", "refuted")
    assert signs["torch"] == ("ok", "9, 2 x H, without torch.distributed")
    assert signs["cache"] == ("ok", str(repository.parent / "cache"))
    assert main(["doctor"]) == 0
    assert "z3-solver              ok      " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            "import nothing_of_this_name as torch",
            "is broken: ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("raise ModuleNotFoundError(\"No module named 'torch'\")", diagnosis._NO_TORCH),
        ("import os; os._exit(9)", "is broken: it ended without a word"),
    ],
)
def test_a_broken_torch_does_not_take_the_doctor_along(
    program: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_TORCH", program)
    assert diagnosis._torch() == diagnosis.Sign("torch", "missing", told)


def test_doctor_lists_what_replays_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch can be there without NumPy, which it does not bring along."""

    def version(name: str) -> str:
        if name == "numpy":
            raise PackageNotFoundError(name)
        return "9"

    monkeypatch.setattr("importlib.metadata.version", version)
    signs = {sign.name: (sign.state, sign.told) for sign in diagnosis._libraries()}
    told = "not installed: needed for replay, beside torch; pip install '.[replay]' in the checkout"
    assert signs["numpy"] == ("missing", told) and signs["z3-solver"] == ("ok", "9")


def test_doctor_fails_when_something_is_broken(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "_torch", lambda: diagnosis.Sign("torch", "missing", ""))
    monkeypatch.setitem(diagnosis._SPECS, "refuted", diagnosis._SPECS["proved"])
    (repository / "placelogic.toml").write_text("nothing = 1\n")
    assert main(["doctor"]) == 2
    out = capsys.readouterr().out
    assert re.search(r"^a spec that is wrong +bad +proved$", out, re.MULTILINE)
    assert re.search(r"^configuration +bad +placelogic.toml: there is no setting `nothing`$", out, re.MULTILINE)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert f"_PLACELOGIC_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("placelogic g", {"gate"}),
        ("placelogic explain SC0", {f"SC0{n}" for n in range(1, 9)}),
        ("placelogic gate --no", {"--no-cache"}),
    ],
)
def test_what_is_completed(
    words: str, wanted: set[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    monkeypatch.setenv("_PLACELOGIC_COMPLETE", "bash_complete")
    assert main([]) == 0
    assert {line.split(",")[1] for line in capsys.readouterr().out.splitlines()} == wanted


@pytest.mark.skipif(
    subprocess.run(["bash", "-c", "complete -p >/dev/null"], check=False).returncode != 0, reason="needs bash"
)
def test_bash_takes_the_script(tmp_path: Path) -> None:
    script = 'eval "$(' + f'"{sys.executable}" -m placelogic completion bash)" && complete -p placelogic'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 0 and "_placelogic_completion" in done.stdout
