"""The configuration: where it is found, what it may say, and where each value comes from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.gate.config import Config, load
from tests.gate.conftest import BAD, GOOD, HEAD, UNKNOWN

DOCS = Path(__file__).parents[2] / "docs" / "gate.md"


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, tuple[str, str]]:
    """Setting -> its value, and where it comes from."""
    assert main(["gate", "--config-show", *arguments]) == 0
    rows = {}
    for line in capsys.readouterr().out.splitlines()[2:]:
        said, _, origin = line.rpartition("# ")
        name, _, value = said.replace("# ", "").strip().partition(" ")
        rows[name] = (value.removeprefix("= "), origin)
    return rows


def gate(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["gate", *arguments])
    out, err = capsys.readouterr()
    return code, out + err


def test_without_one_there_are_defaults(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = shown(capsys)
    assert list(rows) == [name.replace("_", "-") for name in Config.__struct_fields__]
    assert {origin for _, origin in rows.values()} == {"default"}
    (repository / "specs" / "a.place").write_text(GOOD)
    assert gate(capsys)[0] == 0


def test_every_setting_is_documented() -> None:
    page = DOCS.read_text(encoding="utf-8")
    for name in Config.__struct_fields__:
        assert f"`{name.replace('_', '-')}`" in page


def test_a_file_of_its_own(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text(
        '# ours\npaths = ["specs"]\n\nexclude = [\n  "drafts",\n]\nfail-on = ["SC07"]\ntimeout = 3\n'
        "[minimum-sizes]\ndp = 64\n"
    )
    rows = shown(capsys)
    assert rows["paths"] == ('["specs"]', "placelogic.toml:2")
    assert rows["exclude"] == ('["drafts"]', "placelogic.toml:4")
    assert rows["fail-on"] == ('["SC07"]', "placelogic.toml:7")
    assert rows["timeout"] == ("3.0", "placelogic.toml:8")
    assert rows["minimum-sizes"] == ("{ dp = 64 }", "placelogic.toml:9")
    assert rows["recheck"] == ("false", "default")


def test_a_table_of_the_project(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.other]\npaths = ["no"]\n[tool.placelogic]\npaths = ["specs"]\nrlimit = 7\n'
    )
    assert shown(capsys)["paths"] == ('["specs"]', "pyproject.toml:6")
    (repository / "specs" / "below").mkdir()
    monkeypatch.chdir(repository / "specs" / "below")
    assert shown(capsys)["rlimit"] == ("7", "../../pyproject.toml:7")


def test_paths_are_those_of_the_configuration(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nbaseline = "known.json"\n')
    (repository / "specs" / "a.place").write_text(BAD)
    assert gate(capsys, "--write-baseline", "--reason", "known")[0] == 0
    (repository / "other").mkdir()
    monkeypatch.chdir(repository / "other")
    code, out = gate(capsys)
    assert code == 0
    assert "../specs/a.place: ok (1 refuted, accepted)" in out


def test_options_go_first(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text('rlimit = 5\nfail-on = ["SC07"]\n')
    rows = shown(capsys, "--rlimit", "9", "--fail-on", "NT04", "--fail-on", "warnings", "--require-stated")
    assert rows["rlimit"] == ("9", "--rlimit")
    assert rows["fail-on"] == ('["NT04", "warnings"]', "--fail-on")
    assert rows["require-stated"] == ("true", "--require-stated")


def test_the_search_ends_at_the_root_of_the_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository.parent / "placelogic.toml").write_text("rlimit = 5\n")
    assert load().path is None
    monkeypatch.chdir(repository.parent)
    assert load().config.rlimit == 5


@pytest.mark.parametrize(
    ("text", "code", "line", "said"),
    [
        ('path = ["specs"]\n', "PL036", 1, "there is no setting `path`"),
        ("\nfail_on = []\n", "PL036", 2, "there is no setting `fail_on`"),
        ("paths = []\n", "PL036", 1, "`paths` names no path, so there would be nothing to check"),
        ('paths = "specs"\n', "PL036", 1, "`paths` is a list of texts"),
        ('exclude = [""]\n', "PL036", 1, "`exclude` is a list of texts"),
        ("minimum-sizes = { dp = 0 }\n", "PL036", 1, "`minimum-sizes` is a table of names and positive whole numbers"),
        (
            "minimum-sizes = { dp = true }\n",
            "PL036",
            1,
            "`minimum-sizes` is a table of names and positive whole numbers",
        ),
        ('budget = "80"\n', "PL036", 1, "`budget` is a size with a unit"),
        ("budget = 80\n", "PL036", 1, "`budget` is a text with a unit"),
        ('budget = "80 GiB\\nmesh dp"\n', "PL036", 1, "`budget` is a size with a unit"),
        ('fail-on = ["GI99"]\n', "PL036", 1, "`fail-on` names `GI99`, which is no code of a finding"),
        ("require-stated = 1\n", "PL036", 1, "`require-stated` is true or false"),
        ("rlimit = 0\n", "PL036", 1, "`rlimit` is a positive whole number"),
        ("rlimit = true\n", "PL036", 1, "`rlimit` is a positive whole number"),
        ("timeout = inf\n", "PL036", 1, "`timeout` is a number of seconds, more than 0"),
        ("timeout = nan\n", "PL036", 1, "`timeout` is a number of seconds, more than 0"),
        ("rlimit = 1\npaths = [\n", "PL035", 2, "this is not TOML"),
    ],
)
def test_what_it_cannot_say(
    repository: Path, text: str, code: str, line: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "placelogic.toml").write_text(text)
    got, out = gate(capsys)
    assert got == 2
    assert f"error[{code}]: {said}" in out
    assert f"--> placelogic.toml:{line}:" in out


def test_every_problem_is_told_at_once(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text("rlimit = 0\npathes = []\n")
    out = gate(capsys)[1]
    assert out.count("error[PL036]") == 2
    assert "did you mean `paths`?" in out


def test_two_of_them_are_one_too_many(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text("")
    (repository / "pyproject.toml").write_text("[tool.placelogic]\n")
    code, out = gate(capsys)
    assert code == 2
    assert "error[PL037]: `placelogic.toml` and `pyproject.toml` beside it both configure placelogic" in out
    (repository / "pyproject.toml").write_text("# placelogic\n[tool.other]\n")
    assert load().path == "placelogic.toml"


def test_a_named_file(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "ci.toml").write_text("rlimit = 3\n")
    assert shown(capsys, "--config", "ci.toml")["rlimit"] == ("3", "ci.toml:1")
    assert gate(capsys, "--config", "none.toml")[0] == 2
    (repository / "pyproject.toml").write_text("[tool.other]\n")
    code, out = gate(capsys, "--config", "pyproject.toml")
    assert code == 2 and "there is no table [tool.placelogic] in this file" in out


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("drafts", {"specs/a.place", "specs/old_a.place"}),
        ("specs/drafts/", {"specs/a.place", "specs/old_a.place"}),
        ("./specs/drafts", {"specs/a.place", "specs/old_a.place"}),
        ("old_*.place", {"specs/a.place", "specs/drafts/a.place"}),
        ("specs/a.place", {"specs/old_a.place", "specs/drafts/a.place"}),
        ("a.place", {"specs/old_a.place"}),
        ("specs/*/*.place", {"specs/a.place", "specs/old_a.place"}),
        ("nothing", {"specs/a.place", "specs/old_a.place", "specs/drafts/a.place"}),
    ],
)
def test_excludes(repository: Path, pattern: str, left: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text(f'exclude = ["{pattern}"]\n')
    (repository / "specs" / "drafts").mkdir()
    for name in ("a.place", "old_a.place", "drafts/a.place"):
        (repository / "specs" / name).write_text(GOOD)
    out = gate(capsys)[1]
    assert {line.split(":")[0] for line in out.splitlines() if ": ok" in line} == left
    named = gate(capsys, "specs/drafts/a.place")
    assert (named[0] == 0) == ("specs/drafts/a.place" in left), "also what is named"


def test_nothing_to_check_is_no_pass(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nexclude = ["*"]\n')
    (repository / "specs" / "a.place").write_text(GOOD)
    code, out = gate(capsys)
    assert code == 2 and "error[PL015]: there is nothing to check: no spec in `specs`" in out


def test_minimum_sizes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = repository / "placelogic.toml"
    config.write_text("minimum-sizes = { dp = 64, tp = 8 }\n")
    spec = repository / "specs" / "a.place"
    spec.write_text(GOOD)
    assert gate(capsys)[0] == 0
    spec.write_text(GOOD + "assume dp * tp == 128\n")
    code, out = gate(capsys)
    assert code == 1
    assert "error[EX04]: no mesh that this spec allows has dp >= 64 and tp >= 8, which the configuration" in out
    spec.write_text(GOOD.replace("mesh dp, tp", "mesh dp = 8, tp"))
    assert "error[EX04]: no mesh that this spec allows has dp >= 64, which" in gate(capsys)[1]
    spec.write_text(GOOD.replace("mesh dp, tp", "mesh a, b = 4, tp\naxis dp = a*b"))
    assert gate(capsys)[0] == 0, "products too"
    spec.write_text(GOOD + "assume dp <= 63, tp == 1\nexpect proved\n")
    assert gate(capsys)[0] == 1, "an expectation does not help"
    spec.write_text(GOOD)
    config.write_text("minimum-sizes = { dq = 64 }\n")
    code, out = gate(capsys)
    assert code == 0 and "warning[EX03]: no spec has a size `dq`, which minimum-sizes names" in out
    assert "warning[EX05]: this spec has no size `dq`, for which the configuration asks for a least one" in out
    config.write_text("minimum-sizes = { dp = 64, tp = 8 }\n")
    (repository / "specs" / "b.place").write_text(GOOD.replace("dp", "data").replace("zero2(data)", "zero2(data) # dp"))
    code, out = gate(capsys)
    assert code == 0 and "EX03" not in out and "EX05" not in out, "tp is still asked for: a note"
    code, out = gate(capsys, "--fail-on", "EX05")
    assert code == 1 and "error[EX05]: this spec has no size `dp`, for" in out
    (repository / "specs" / "a.place").unlink()
    assert "warning[EX03]: no spec has a size `dp`" in gate(capsys)[1], "a comment is no size"


def test_a_budget_is_asked_of_every_spec(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As if each spec said so itself, and told at the place of the setting."""
    (repository / "placelogic.toml").write_text('budget = "80 GiB"\n')
    spec = repository / "specs" / "a.place"
    spec.write_text(GOOD)
    with_setting = gate(capsys)
    (repository / "placelogic.toml").write_text("")
    spec.write_text(GOOD + "budget 80 GiB\n")
    with_line = gate(capsys)
    assert with_setting[0] == with_line[0]
    codes = [
        [line.split(":")[0] for line in out.splitlines() if line.startswith("error[")]
        for _, out in (with_setting, with_line)
    ]
    assert codes[0] == codes[1]
    if codes[0]:
        assert "--> placelogic.toml:1:" in with_setting[1]


def test_require_stated_and_limits_reach_the_solver(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "specs" / "a.place").write_text(HEAD)
    assert gate(capsys)[0] == 0
    (repository / "placelogic.toml").write_text("require-stated = true\n")
    code, out = gate(capsys)
    assert code == 1 and "error[EX02]" in out
    (repository / "placelogic.toml").write_text("rlimit = 1\n")
    assert gate(capsys)[0] == 3


def test_recheck(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("cvc5")
    (repository / "placelogic.toml").write_text("recheck = true\n")
    (repository / "specs" / "a.place").write_text(GOOD)
    for more in (["--format", "json"], ["--format", "json"], ["--format", "json", "--no-cache", "--jobs", "2"]):
        code, out = gate(capsys, *more)
        assert code == 0 and '"confirmed_by": [' in out and '"cvc5": ' in out


def test_the_problem_of_a_file_in_the_way(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "specs" / "a.place").write_text(UNKNOWN)
    (repository / "placelogic.toml").write_text('paths = ["specs", "nowhere"]\n')
    code, out = gate(capsys)
    assert code == 2
    assert "error[PL200]" in out and "error[PL001]: there is no such file\n --> nowhere:1:1\n" in out


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="newer Pythons read TOML themselves")
def test_toml_on_older_pythons() -> None:
    import tomli

    assert tomli.loads("a = 1") == {"a": 1}
