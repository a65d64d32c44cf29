"""Several processes: the same report, in the same order, whatever happens to one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placelogic.cli import main
from placelogic.files import find
from placelogic.session import parallel
from placelogic.session.files import check_files
from placelogic.session.settings import Settings
from tests.gate.conftest import BAD, GOOD

ROOT = Path(__file__).parents[2]
FILES = [str(path) for folder in ("tests/corpus", "examples") for path in sorted((ROOT / folder).glob("*.place"))[::3]]
"""Right ones and wrong ones; some take much longer than others."""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
def test_the_report_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = set()
    for jobs in ("1", "2", "3"):
        main(["check", *FILES, "--jobs", jobs, "--format", "json"])
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 1


def test_several_processes_are_used_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 8)
    assert [parallel.worthwhile(files, None) for files in (0, 1, 79, 80, 200, 10_000)] == [1, 1, 1, 2, 5, 8]
    assert [parallel.worthwhile(files, 4) for files in (0, 1, 3, 10_000)] == [1, 1, 3, 4]


def test_a_process_that_ends_costs_one_file(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (repository / "specs" / f"{name}.place").write_text(GOOD)
    check = parallel._Worker.check

    def killed(self: parallel._Worker, found: parallel.Found, settings: Settings) -> parallel.FileReport:
        if found.path.endswith("b.place"):
            process = self._process or self._start()
            process.kill()
            process.wait()
        return check(self, found, settings)

    monkeypatch.setattr(parallel._Worker, "check", killed)
    reports = list(check_files(find(["specs"]), Settings(), 2))
    assert [[spec.verdict for spec in file.specs] for file in reports] == [["proved"], ["error"], ["proved"]]
    (finding,) = reports[1].specs[0].findings
    assert (finding.code, finding.message) == ("PL905", "the process that checked this file ended before it was done")


def test_no_process_is_left_behind(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "specs" / "a.place").write_text(GOOD)
    (repository / "specs" / "b.place").write_text(BAD)
    started: list[subprocess.Popen[bytes]] = []
    start = parallel._Worker._start

    def remembered(self: parallel._Worker) -> subprocess.Popen[bytes]:
        started.append(start(self))
        return started[-1]

    monkeypatch.setattr(parallel._Worker, "_start", remembered)
    reports = check_files(find(["specs"]), Settings(), 2)
    next(reports)
    reports.close()  # type: ignore[attr-defined]
    assert started and all(process.poll() is not None for process in started)


def test_the_current_folder_is_not_searched_for_modules(repository: Path) -> None:
    """A repository is data: its lark.py is not ours."""
    (repository / "lark.py").write_text("raise SystemExit('it was imported')\n")
    for name in ("a", "b"):
        (repository / "specs" / f"{name}.place").write_text(GOOD)
    script = "import sys; sys.path.remove(''); from placelogic.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", script, "gate", "--jobs", "2", "--no-cache"],
        capture_output=True, text=True, env=environment(), timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _interruptible() -> None:
    """Also where the tests themselves run in the background of a shell, which has them ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name != "posix", reason="signals of another kind")
def test_an_interrupt_stops_cleanly(repository: Path) -> None:
    (repository / "placelogic.toml").write_text('paths = ["specs"]\n')
    for number in range(120):
        (repository / "specs" / f"s{number:03}.place").write_text(GOOD + f"# {number}\n")
    command = [sys.executable, "-m", "placelogic", "gate", "--jobs", "2"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True,
        preexec_fn=_interruptible,
    )
    kept = repository.parent / "cache"
    deadline = time.monotonic() + 60
    while not any(kept.rglob("[0-9a-f]*/[0-9a-f]*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the whole group
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    again = subprocess.run([*command, "-q"], capture_output=True, text=True, env=environment(), timeout=120)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", ""), "the cache is whole"


def test_two_runs_share_the_cache(repository: Path) -> None:
    for number in range(30):
        (repository / "specs" / f"s{number:03}.place").write_text((GOOD, BAD)[number % 2] + f"# {number}\n")
    command = [sys.executable, "-m", "placelogic", "gate", "--jobs", "1", "--format", "json"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) for _ in range(2)]
    outputs = {run.communicate(timeout=180)[0] for run in runs}
    outputs.add(subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment(), timeout=120).stdout)
    assert len(outputs) == 1
    assert not list((repository.parent / "cache").rglob(".*")), "no half of a file is left"
