"""One run of the gate: find the files, take verdicts from the cache, decide the rest, apply the policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from placelogic.files import Found, find, whole
from placelogic.gate import baseline as baselines
from placelogic.gate.cache import Cache
from placelogic.gate.config import Loaded
from placelogic.gate.policy import Policy
from placelogic.gate.values import budget_statement
from placelogic.io.reading import shown_text
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import NO_SUCH_SIZE, UNUSED, FileReport, Finding, Report
from placelogic.session.parallel import reports, worthwhile
from placelogic.session.settings import Settings
from placelogic.syntax.imports import folder_of, imported
from placelogic.syntax.read import read_bytes


class Outcome(Struct, frozen=True):
    """`decided`: the files before the policy. `cached`: how many of them were not decided again. `baseline`:
    the one in use."""

    report: Report
    decided: tuple[FileReport, ...]
    cached: int
    baseline: baselines.Baseline | None


def discover(loaded: Loaded, named: Sequence[str] = ()) -> tuple[Found, ...]:
    """The files of the configuration, or those named on the command line, less what is excluded; of folders
    named, what lies in them. Files may be libraries, as the gate is about a repository, not about one file."""
    places = named or [_from_here(loaded.root, path) for path in loaded.config.paths]
    found = [one for one in find(places) if not _excluded(one.path, loaded)]
    return tuple(replace(one, path=os.path.normpath(one.path), in_folder=True) for one in found)


def run(
    loaded: Loaded,
    found: Sequence[Found],
    *,
    complete: bool,
    jobs: int | None = None,
    cache_folder: Path | None = None,
    baseline: baselines.Baseline | None = None,
    progress: Callable[[str], None] = lambda path: None,
) -> Outcome:
    """Check the files and apply the policy. `complete`: these are all files of the repository. Raises SpecError
    for a baseline that cannot be used."""
    config = loaded.config
    if baseline is None and config.baseline is not None:
        baseline = baselines.read(baseline_path(loaded))
    settings = settings_of(loaded)
    cache = Cache.open(cache_folder, repr(settings), config.recheck)
    done: list[FileReport] = []
    for file in _checked([_read(one) for one in found], settings, cache, jobs):
        done.append(file)
        progress(file.path)
    cache.close()
    if not any(not file.library for file in done):
        done.append(_nothing(loaded, complete))
    return Outcome(judged(loaded, done, baseline, complete=complete), tuple(done), cache.hits, baseline)


def judged(
    loaded: Loaded, files: Sequence[FileReport], baseline: baselines.Baseline | None, *, complete: bool
) -> Report:
    """The files under the policy of the repository."""
    found = Policy(frozenset(loaded.config.fail_on), baseline, complete).apply(files)
    return Report((*found, *_unknown_sizes(loaded, found)) if complete else found)


def baseline_path(loaded: Loaded) -> str:
    """Where the baseline is, or would be written."""
    if "--" in loaded.origin("baseline"):
        return loaded.config.baseline or baselines.NAME
    return _from_here(loaded.root, loaded.config.baseline or baselines.NAME)


def settings_of(loaded: Loaded) -> Settings:
    config = loaded.config
    return Settings(
        require_stated=config.require_stated,
        rlimit=config.rlimit,
        timeout=config.timeout,
        recheck=config.recheck,
        minimum=dict(config.minimum_sizes),
        budget=None if config.budget is None else budget_statement(config.budget, loaded.place("budget")),
        every_fault=True,  # one that is accepted must not hide another
    )


def _checked(found: Sequence[Found], settings: Settings, cache: Cache, jobs: int | None) -> Iterator[FileReport]:
    """In order. What is not in the cache is decided, by several processes where that pays."""
    known = [cache.find(one) for one in found]
    missing = [one for one, report in zip(found, known) if report is None]
    imports = [imported(one.data or b"", folder_of(one.path)) for one in missing]
    decided = zip(missing, imports, _reports(missing, settings, worthwhile(len(missing), jobs)))
    for report in known:
        if report is None:
            one, before, report = next(decided)
            cache.keep(one, report, before)
        yield report


def _reports(missing: Sequence[Found], settings: Settings, jobs: int) -> Iterator[FileReport]:
    if settings.recheck and jobs == 1:
        from placelogic.session.files import check_files

        for one in missing:  # each with its evidence
            yield next(iter(check_files([one], settings)))
        return
    yield from reports(missing, settings, jobs)


def _read(one: Found) -> Found:
    """With its content, so that what is checked is what the cache knows."""
    if one.problem is not None or one.data is not None:
        return one
    try:
        return replace(one, data=read_bytes(one.path))
    except SpecError as error:
        return replace(one, problem=error.problems[0])


def _nothing(loaded: Loaded, complete: bool) -> FileReport:
    from placelogic.session.errors import failed

    paths = ", ".join(f"`{one}`" for one in loaded.config.paths) if complete else "what is named"
    message = f"there is nothing to check: no spec in {paths} that is not excluded"
    problem = Problem("PL015", message, whole(loaded.path or "."), "look at `placelogic gate --config-show`")
    return failed(problem.span.path, "", SpecError(problem))


def _unknown_sizes(loaded: Loaded, files: Sequence[FileReport]) -> tuple[FileReport, ...]:
    """A size that no spec has asks for nothing: most often it is misspelled."""
    specs = [spec for file in files for spec in file.specs if spec.verdict != "error"]
    lacking = [{name for one in spec.findings if one.code == NO_SUCH_SIZE for name in one.axes} for spec in specs]
    nobodys = set.intersection(*lacking) if lacking else set()
    place = loaded.place("minimum_sizes")
    unused = tuple(
        Finding(UNUSED, "warning", f"no spec has a size `{name}`, which minimum-sizes names", place, help="take it out")
        for name in loaded.config.minimum_sizes
        if name in nobodys
    )
    if not unused or loaded.path is None:
        return ()
    return (FileReport(loaded.path, (), shown_text(loaded.path), findings=unused),)


def _excluded(path: str, loaded: Loaded) -> bool:
    """A pattern matches a file or a folder above it: its path from the root, or, without a slash, its name."""
    name = os.path.relpath(os.path.abspath(path), loaded.root).replace(os.sep, "/")
    parts = name.split("/")
    above = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    for pattern in loaded.config.exclude:
        wanted = pattern.rstrip("/").removeprefix("./")
        for one in above:
            if fnmatchcase(one, wanted) or ("/" not in wanted and fnmatchcase(one.rsplit("/", 1)[-1], wanted)):
                return True
    return False


def _from_here(root: str, path: str) -> str:
    return os.path.relpath(os.path.join(root, path))
