"""The command `gate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from placelogic.commands.options import (
    complete_file,
    format_option,
    jobs_option,
    output_option,
    parse_outputs,
    print_problems,
    rlimit_option,
    timeout_option,
    write_outputs,
)

if TYPE_CHECKING:
    from placelogic.gate.config import Loaded
    from placelogic.gate.run import Outcome
    from placelogic.problem import SpecError


@click.command(short_help="Check the specs of a repository, under its policy.")
@click.argument("files", metavar="[FILE]...", nargs=-1, shell_complete=complete_file)
@format_option
@output_option
@click.option("--config", metavar="FILE", help="The configuration; otherwise it is searched from here upwards.")
@click.option("--config-show", is_flag=True, help="Print every setting, and where it comes from.")
@click.option("--fail-on", multiple=True, metavar="CODE", help="Let these warnings or notes fail; `warnings`: all.")
@click.option("--require-stated", is_flag=True, help="Fail a proved spec that states no operation of its own.")
@rlimit_option
@timeout_option
@click.option("--recheck", is_flag=True, help="Put every question as it stands to cvc5, too.")
@click.option("--baseline", metavar="FILE", help="Findings that are accepted, each with a reason.")
@click.option("--write-baseline", is_flag=True, help="Accept what fails now: write it into the baseline.")
@click.option("--reason", metavar="TEXT", help="Why, for --write-baseline.")
@click.option("--no-cache", is_flag=True, help="Decide everything again, and keep nothing.")
@click.option("--cache-dir", metavar="DIR", help="Where verdicts are kept; otherwise in the user's cache folder.")
@jobs_option
@click.option("--watch", is_flag=True, help="Run again whenever a file changes, until interrupted.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what fails, and warnings.")
def gate(files: tuple[str, ...], config: str | None, config_show: bool, watch: bool, **given: Any) -> int:
    """Check the specs of a repository under its policy: which files, which sizes, which warnings fail, and what
    has been accepted, with a reason. The policy is in `placelogic.toml`, or in `[tool.placelogic]` of
    `pyproject.toml`. Verdicts are kept from one run to the next.

    \b
    placelogic gate
    placelogic gate --config-show
    placelogic gate --format github --output placelogic.sarif --output junit.xml
    placelogic gate --write-baseline --reason "there before the gate, issue 12"

    Exit codes, also of --write-baseline for what it cannot accept: 0 nothing fails, 1 any refuted (and not accepted) or denied by the policy, 2 any error,
    3 any undecided or vacuous.
    """
    from placelogic.gate.config import load
    from placelogic.io.reading import shown_text
    from placelogic.problem import SpecError
    from placelogic.session.errors import failed

    if given["write_baseline"] and not (given["reason"] or "").strip():
        raise click.UsageError("--write-baseline needs a --reason: an entry without one is an error")
    if given["write_baseline"] and files:
        raise click.UsageError("--write-baseline is about all files, so name none")
    try:
        loaded = load(config).with_options(
            {key: given[key] for key in ("fail_on", "require_stated", "rlimit", "timeout", "recheck", "baseline")}
        )
        _known_codes(loaded)
        if config_show:
            sys.stdout.write(loaded.shown())
            return 0
        if watch:
            from placelogic.gate.watch import watch_files

            return watch_files(lambda: load(config), loaded, files, lambda now: _once(now, files, **given), _tell)
        return _once(loaded, files, **given)
    except SpecError as error:
        path = error.problems[0].span.path
        print_problems(failed(path, shown_text(path), error))
        return 2


def _tell(error: SpecError) -> None:
    from placelogic.session.errors import failed

    print_problems(failed(error.problems[0].span.path, "", error))


def _once(
    loaded: Loaded,
    files: tuple[str, ...],
    *,
    form: str,
    outputs: tuple[str, ...],
    write_baseline: bool,
    reason: str | None,
    no_cache: bool,
    cache_dir: str | None,
    jobs: int | None,
    quiet: bool,
    **_: Any,
) -> int:
    from placelogic.gate import run as gates
    from placelogic.gate.cache import folder_of_user
    from placelogic.report.formats import rendered
    from placelogic.report.gate import file_lines, render
    from placelogic.report.terminal import Printer, Progress, terminal_width
    from placelogic.report.text import Look, closing_lines

    to_write = parse_outputs(outputs)
    found = gates.discover(loaded, files)
    folder = None if no_cache else Path(cache_dir) if cache_dir else folder_of_user()
    progress = Progress([one.path for one in found], sys.stderr)
    progress.step()
    try:
        outcome = gates.run(
            loaded,
            found,
            complete=not files,
            jobs=jobs,
            cache_folder=folder,
            baseline=_old_baseline(loaded) if write_baseline else None,
            progress=lambda path: progress.step(),
        )
    finally:
        progress.clear()
    if write_baseline:
        return _write_baseline(loaded, outcome, reason or "")
    report = outcome.report
    if form == "text":
        look = Look(terminal_width(sys.stdout), quiet)
        printer = Printer(sys.stdout)
        for file in report.files:
            printer.lines(file_lines(file, look))
        printer.lines(closing_lines(report, look))
    else:
        sys.stdout.write(rendered(report, form, render))
    return write_outputs(report, form, to_write, render) or report.exit_code


def _old_baseline(loaded: Loaded) -> Any:
    """The baseline to be written anew: as it is, or empty where there is none yet."""
    import os

    from placelogic.gate import baseline
    from placelogic.gate.run import baseline_path

    path = baseline_path(loaded)
    return baseline.read(path) if os.path.exists(path) else baseline.Baseline(path)


def _write_baseline(loaded: Loaded, outcome: Outcome, reason: str) -> int:
    """Write it, say what still fails with it, and end as the gate will."""
    from placelogic.gate.baseline import read, written
    from placelogic.gate.run import baseline_path, judged
    from placelogic.io.quoting import shell, visible
    from placelogic.io.writing import write_file
    from placelogic.report.gate import failing

    old = _old_baseline(loaded)
    text = written(old, outcome.report.files, reason)
    write_file(old.path, text)
    number = text.count('"fingerprint"')
    click.echo(visible(f"{baseline_path(loaded)}: {number} finding{'s' * (number != 1)} accepted"), err=True)
    if loaded.config.baseline is None:
        add = f'add `baseline = "{visible(old.path)}"` to the configuration, or give --baseline {shell(old.path)}'
        click.echo(add, err=True)
    report = judged(loaded, outcome.decided, read(old.path), complete=True)
    left = [f"  {file.path}: {finding.code}: {finding.message}" for file in report.files for finding in failing(file)]
    if left:
        click.echo("\n".join(("cannot be accepted, and still fails:", *map(visible, left))), err=True)
    return report.exit_code


def _known_codes(loaded: Loaded) -> None:
    from placelogic.gate.allow import known_codes
    from placelogic.gate.policy import WARNINGS
    from placelogic.problem import closest

    for code in loaded.config.fail_on:
        if code != WARNINGS and code not in known_codes():
            raise click.UsageError(
                f"--fail-on: there is no code {code}; {closest(code, known_codes()) or 'see explain'}"
            )
