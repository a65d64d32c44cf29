"""What comes from a file or its name stays text, in every language that is written here."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from placelogic.cli import main
from placelogic.io import quoting

GOOD = "mesh dp\nlet P\nweights model { size P }\nuse data_parallel(dp)\n"
BAD = GOOD + "sync model over dp by none\n"

NAMES = [
    '"""; import os; os.system("touch PWNED"); """.place',
    "'''+__import__('os').system('touch PWNED')+'''.place",
    '\\".place',
    '\\\\".place',
    "a\nimport os; os.system('touch PWNED')\n.place",
    "a\r\nimport os\r.place",
    "# -*- coding: utf-7 -*-\n+AG8-.place",
    "$(touch PWNED)`touch PWNED`; touch PWNED.place",
    "}\\input{x}%$^_&#~.place",
    "|a|**b**<img src=x>[l](http:x)`.place",
    "::error file=a::b%0A,:.place",
    "=cmd|' 'A1.place",
    "\x1b[31mred\x1b]0;title\x07.place",
    "a\u202eb\u2066c\u2028d.place",
    "\udcff\udc80.place",
    "\x00\x01.place".replace("\x00", "\x02"),
    "a\fb\vc\x85d.place",
    "é漢字😀.place",
]
"""Names of files, each made to be more than text in some language."""


def harmless(text: str) -> bool:
    """Nothing that moves a cursor or turns the direction of writing."""
    return all(line == quoting.visible(line) for line in text.split("\n"))


@pytest.fixture(params=NAMES, ids=ascii)
def bad(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name: str = request.param
    with open(name, "w") as file:
        file.write(BAD)
    return name


@pytest.fixture(params=NAMES, ids=ascii)
def good(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name: str = request.param
    with open(name, "w") as file:
        file.write(GOOD)
    return name


def run(*arguments: str) -> int:
    return main([*arguments])


def only_literals(text: str, names: set[str]) -> None:
    """Besides its docstring the program is the one that any other name leads to."""
    tree = ast.parse(text)
    assert isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"__import__", "exec", "eval", "compile"}
    assert {n.names[0].name for n in ast.walk(tree) if isinstance(n, ast.Import)} <= names


def test_a_script_that_replay_writes(bad: str) -> None:
    assert run("replay", "--script", "shown.py", "--", bad) == 0
    text = Path("shown.py").read_text(encoding="utf-8")
    only_literals(text, {"sys", "torch", "torch.distributed", "torch.multiprocessing"})
    assert harmless(text)


def test_costs_as_python(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cost", "--format", "python", "--", good) == 0
    text = capsys.readouterr().out
    only_literals(text, {"numpy"})
    pytest.importorskip("numpy")
    space: dict[str, object] = {}
    exec(compile(text, "costs", "exec"), space)  # what it defines can be called, and nothing else has happened
    assert space["memory_held"](P=1) > 0 and os.listdir() == [good]  # type: ignore[operator]


def test_costs_in_other_forms(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("latex", "markdown", "csv", "text", "json"):
        assert run("cost", "--format", form, "--", good) == 0
        text = capsys.readouterr().out
        assert harmless(text), form
        if form == "csv":
            rows = list(csv.reader(io.StringIO(text)))
            assert {len(row) for row in rows} == {6} and not any(row[0].startswith("=") for row in rows)
        if form == "latex":
            head = text.split("\n")[0]
            assert head.startswith(r"\subsection*{") and head.endswith("}") and r"\input" not in head


def test_reports_for_services(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("sarif", "github", "junit", "json", "text"):
        assert run("check", "--format", form, "--output", "summary=s.md", "--output", "s.sarif", "--", bad) == 1
        text = capsys.readouterr().out
        text.encode("utf-8")
        assert harmless(text), form
        if form == "sarif":
            json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")
        if form == "junit":
            fromstring(text)
        if form == "github":
            commands = [line for line in text.split("\n") if line.startswith("::")]
            assert len(commands) == 2 and len(text.split("\n")) == 4  # two findings, and the summary
    assert harmless(Path("s.md").read_text(encoding="utf-8"))


def test_what_a_person_sees(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["fmt", "--check"], ["fmt", "--diff"], ["check"], ["cost"], ["gate", "--no-cache"], ["show"]):
        run(*arguments, "--", bad)
        seen = capsys.readouterr()
        assert harmless(seen.out + seen.err), arguments
    run(f"no-{bad}")
    assert harmless(capsys.readouterr().err)


def test_a_folder_with_such_files_keeps_every_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        with open(name, "w") as file:
            file.write(GOOD)
    assert run("check", "--quiet", "--output", "all.json", "--output", "all.sarif", "--output", "summary=s.md", ".") == 0
    assert len(json.loads(Path("all.json").read_text())["files"]) == len(NAMES)


def test_words_of_a_shell() -> None:
    for text in NAMES:
        code = [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.argv[1].encode())"]
        shown = subprocess.run(["sh", "-c", f'"$0" -c "$1" {quoting.shell(text)}', code[0], code[2]], capture_output=True)
        assert shown.stdout.decode() == quoting.visible(text)
