"""Files checked by several processes, and reported in their order. What only several need is imported there:
most runs are about one file, and end before it would be loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from placelogic.files import Found
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import FileReport
from placelogic.source import Span

if TYPE_CHECKING:
    import subprocess

    from placelogic.session.settings import Settings

FILES_PER_PROCESS = 40
"""Below this many files for each, starting another process takes longer than it saves."""


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def worthwhile(files: int, jobs: int | None) -> int:
    """How many processes to use for so many files: what was asked for, or as many as pay."""
    return max(1, min(files, jobs if jobs is not None else min(cores(), files // FILES_PER_PROCESS)))


def reports(found: Sequence[Found], settings: Settings, jobs: int) -> Iterator[FileReport]:
    """One report per file, in order. One process is this one; whoever decides in place of the prover does so here, too."""
    if jobs == 1 or settings.prover is not None or not sys.executable:
        from placelogic.session.check import check_found

        for one in found:
            yield check_found(one, settings)
        return
    from concurrent.futures import ThreadPoolExecutor
    from queue import SimpleQueue

    workers = [_Worker() for _ in range(jobs)]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def check(one: Found) -> FileReport:
        worker = idle.get()
        try:
            return worker.check(one, settings)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(jobs) as threads:
        results = threads.map(check, found)
        try:
            with closing(results):  # when nobody wants the rest, it is not begun
                yield from results
        finally:
            for worker in workers:
                worker.stop()


class _Worker:
    """A process of its own, started when it is first needed. It is no part of the terminal's foreground, so
    that an interrupt reaches only us, who then stop it; and it ends by itself when we are gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def check(self, found: Found, settings: Settings) -> FileReport:
        """The report, or an error where the process ended over it."""
        import pickle

        try:
            process = self._process or self._start()
            assert process.stdin is not None and process.stdout is not None
            pickle.dump((found, settings), process.stdin, pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            return pickle.load(process.stdout)  # our own process wrote it
        except (EOFError, OSError, pickle.UnpicklingError):
            from placelogic.session.errors import failed

            self._end()
            message = "the process that checked this file ended before it was done"
            hint = "most often the machine ran out of memory; --jobs 1 uses one process"
            return failed(found.path, "", SpecError(Problem("PL905", message, Span(found.path, 1, 1, 1, 1), hint)))

    def _start(self) -> subprocess.Popen[bytes]:
        if self._stopped:
            raise EOFError
        import subprocess

        # The same modules as ours: not by `-m`, which would look into the current folder first.
        program = f"import sys; sys.path[:] = {sys.path!r}; from placelogic.session.worker import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        if self._stopped:  # meanwhile, by another thread, which has found no process
            self._end()
            raise EOFError
        return self._process

    def stop(self) -> None:
        """For good, in the middle of a file too."""
        self._stopped = True
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        with suppress(OSError, ValueError):
            process.communicate()
