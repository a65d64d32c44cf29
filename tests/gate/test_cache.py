"""Verdicts kept: found again only when nothing they depend on has changed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from msgspec.json import encode

from placelogic.gate import cache as caches
from placelogic.gate.cache import Entry
from placelogic.gate.config import Config, Loaded
from placelogic.gate.run import Outcome, discover, run
from placelogic.report.gate import render
from tests.gate.conftest import BAD, EXPECTED, GOOD, HEAD, IMPORTS, LIBRARY, SEVERAL, UNKNOWN, VACUOUS


def gate(repository: Path, config: Config = Config(), jobs: int | None = 1) -> Outcome:
    loaded = Loaded(config, str(repository))
    folder = repository.parent / "cache"
    return run(loaded, discover(loaded), complete=True, jobs=jobs, cache_folder=folder)


def entries(repository: Path) -> list[Path]:
    return [path for path in (repository.parent / "cache").rglob("*") if path.is_file()]


def put(repository: Path, **specs: str) -> None:
    for name, text in specs.items():
        path = repository / "specs" / f"{name}.place"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_a_second_run_says_the_same(sample: Path) -> None:
    first, second = gate(sample), gate(sample)
    assert second.report == first.report
    assert render(second.report) == render(first.report)
    undecided = sum(any(spec.verdict == "error" for spec in file.specs) for file in first.report.files)
    assert (first.cached, second.cached) == (0, len(first.report.files) - undecided)


def test_nothing_is_decided_again(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(repository, good=GOOD, bad=BAD, vacuous=VACUOUS, several=SEVERAL, expected=EXPECTED)
    gate(repository)

    def never(*arguments: object) -> None:
        raise AssertionError("it was to be taken from the cache")

    monkeypatch.setattr("placelogic.session.check.check_found", never)
    assert gate(repository).cached == 5


@pytest.mark.parametrize(
    "config",
    [
        Config(rlimit=10_000_000),
        Config(timeout=5.0),
        Config(require_stated=True),
        Config(minimum_sizes={"dp": 2}),
        Config(recheck=True),
    ],
)
def test_other_options_are_another_question(repository: Path, config: Config) -> None:
    pytest.importorskip("cvc5")
    put(repository, good=GOOD)
    gate(repository)
    assert gate(repository, config).cached == 0
    assert gate(repository, config).cached == 1


def test_other_content_is_another_question(repository: Path) -> None:
    put(repository, a=GOOD)
    assert gate(repository).report.exit_code == 0
    put(repository, a=BAD)
    assert gate(repository).report.exit_code == 1
    put(repository, a=GOOD)
    again = gate(repository)
    assert (again.report.exit_code, again.cached) == (0, 1)


def test_the_policy_is_applied_anew(repository: Path) -> None:
    put(repository, a=GOOD)
    gate(repository)
    denied = gate(repository, Config(fail_on=("NT04",)))
    assert (denied.report.exit_code, denied.cached) == (1, 1)
    assert gate(repository).report.exit_code == 0


def test_what_is_imported_counts(repository: Path) -> None:
    (repository / "specs" / "lib").mkdir()
    library = repository / "specs" / "lib" / "ours.place"
    other = repository / "specs" / "lib" / "more.place"
    library.write_text('import "more.place"\n')
    other.write_text(LIBRARY)
    put(repository, a=IMPORTS)
    assert gate(repository).report.exit_code == 0
    assert gate(repository).cached == 3
    other.write_text(LIBRARY.replace("optimizer replicated", "optimizer materialized"))
    after = gate(repository)
    assert (after.report.exit_code, after.cached) == (1, 0), "also what is imported by what is imported"
    other.unlink()
    assert gate(repository).report.exit_code == 2
    other.write_text(LIBRARY)
    assert gate(repository).report.exit_code == 0


def test_a_link_that_leads_elsewhere_is_another_import(repository: Path) -> None:
    put(repository, a=IMPORTS)
    (repository / "specs" / "lib").mkdir()
    library = repository / "specs" / "lib" / "ours.place"
    right, wrong = repository / "specs" / "right.txt", repository / "specs" / "wrong.txt"
    right.write_text(LIBRARY)
    wrong.write_text(LIBRARY.replace("optimizer replicated", "optimizer materialized"))
    library.symlink_to(right)
    assert gate(repository).report.exit_code == 0
    library.unlink()
    library.symlink_to(wrong)
    assert gate(repository).report.exit_code == 1
    library.unlink()
    library.symlink_to(right)
    assert gate(repository).report.exit_code == 0


def test_a_new_version_decides_anew(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(repository, a=GOOD)
    gate(repository)
    monkeypatch.setattr(caches, "program", lambda recheck=False: "another")
    assert gate(repository).cached == 0


def test_this_program_is_known_by_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    caches.program.cache_clear()
    now = caches.program()
    assert now == caches.program() != caches.program(True)
    caches.program.cache_clear()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: read(self) + b"#" * (self.name == "zero1.place"))
    assert caches.program() != now
    caches.program.cache_clear()


def test_only_what_is_decided_is_kept(repository: Path) -> None:
    put(repository, unknown=UNKNOWN, wanted=UNKNOWN + "expect error PL200\n")
    gate(repository)
    put(repository, unknown=GOOD, wanted=GOOD)
    gate(repository, Config(rlimit=1))
    assert entries(repository) == []


def test_broken_entries_are_not_used(repository: Path) -> None:
    put(repository, a=BAD)
    first = gate(repository)
    (entry,) = entries(repository)
    whole = entry.read_text()
    form = json.loads(whole)
    other, odd = {**form, "path": "other.place"}, {**form, "specs": [{"name": "a"}]}
    for text in ("", whole[: len(whole) // 2], "[]", "{}", "null", json.dumps(other), json.dumps(odd), "\0"):
        entry.write_text(text)
        again = gate(repository)
        assert (again.cached, again.report) == (0, first.report)
        assert entry.read_text() == whole, "it is mended"


def test_it_is_not_in_the_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLACELOGIC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(repository.parent / "home"))
    assert caches.folder_of_user() == repository.parent / "home" / "placelogic" / "verdicts"


@pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
def test_a_folder_that_others_can_write_to_is_not_used(repository: Path) -> None:
    folder = repository.parent / "cache"
    put(repository, a=GOOD)
    folder.mkdir()
    folder.chmod(0o777)
    gate(repository)
    assert entries(repository) == []
    folder.chmod(0o700)
    gate(repository)
    assert len(entries(repository)) == 1
    assert stat.S_IMODE(entries(repository)[0].stat().st_mode) == 0o600


def test_old_entries_make_room(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MAX_ENTRIES", 4)
    for number in range(6):
        put(repository, a=GOOD + f"# {number}\n")
        gate(repository)
    assert 2 <= len(entries(repository)) <= 4
    assert gate(repository).cached == 1, "the newest stay"


def test_a_report_that_would_not_come_back_is_not_kept(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(repository, a=HEAD)
    monkeypatch.setattr(caches, "encode", lambda entry: encode(Entry("other.place", {}, (), False)))
    gate(repository)
    assert entries(repository) == []
