"""Files, folders and texts as they are named, checked one after the other or by several processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from placelogic.files import Found, find, whole
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import FileReport, Report
from placelogic.session.check import check_text
from placelogic.session.errors import failed
from placelogic.session.settings import Settings

TEXT = "<text>"


def check(
    source: str | os.PathLike[str],
    *,
    at: Mapping[str, int] | None = None,
    require_stated: bool = False,
    rlimit: int | None = None,
    timeout: float | None = None,
    recheck: bool = False,
    emit_smt2: str | os.PathLike[str] | None = None,
) -> Report:
    """Check a spec, a file, or every `.place` file below a folder.

    `source` is a path, or the text of a spec: a string is text when it spans several lines, or names
    no file and has more than one word. `recheck` asks a second solver, `emit_smt2` is a folder to write
    every question into (docs/recheck.md). What is wrong with the input is in the report, as findings;
    ValueError is raised only for options that make no sense.
    """
    from placelogic.report.printed import PrintedReport

    folder = None if emit_smt2 is None else os.fspath(emit_smt2)
    settings = Settings(dict(at or {}), require_stated, rlimit, timeout, recheck=recheck, emit_smt2=folder)
    path = os.fspath(source)
    if isinstance(source, str) and is_text(source):
        from placelogic.evidence.gather import gather

        return PrintedReport(tuple(gather(lambda inner: [check_text(source, TEXT, inner)], settings)))
    return PrintedReport(tuple(check_files(find([path]), settings)))


def check_files(found: Sequence[Found], settings: Settings, jobs: int = 1) -> Iterator[FileReport]:
    """One report per file, as they are done, in the order of the files whatever the number of processes.
    Libraries alone are nothing to check, which is no pass: then an error comes last; so does evidence
    that cannot be written."""
    if not settings.recheck and settings.emit_smt2 is None:
        return _check_each(found, settings, jobs)
    from placelogic.evidence.gather import gather

    return gather(lambda inner: _check_each(found, inner, jobs), settings)


def _check_each(found: Sequence[Found], settings: Settings, jobs: int) -> Iterator[FileReport]:
    from placelogic.session.parallel import reports

    specs = False
    for report in reports(found, settings, jobs):
        specs = specs or not report.library
        yield report
    if found and not specs:
        count = f"{len(found)} libraries" if len(found) > 1 else "a library"
        path = os.path.dirname(found[-1].path)
        message = f"there is nothing to check: {count}, and no spec"
        yield failed(path, "", SpecError(Problem("PL015", message, whole(path), "name a file or folder with specs")))


def is_text(source: str) -> bool:
    words = not os.path.exists(source) and not source.endswith(".place") and len(source.split()) > 1
    return "\n" in source or not source or words
