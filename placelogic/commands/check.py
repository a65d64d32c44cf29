"""The command `check`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from placelogic.commands.importer_options import (
    request,
    set_option,
    tokens_option,
    unknown_option,
    version_option,
    world_option,
)
from placelogic.commands.options import (
    STDIN,
    STDIN_ARGUMENT,
    at_option,
    files_argument,
    format_option,
    jobs_option,
    output_option,
    parse_outputs,
    rlimit_option,
    stdin_bytes,
    timeout_option,
    write_outputs,
)

if TYPE_CHECKING:
    from placelogic.report.diagnostic import FileReport


@click.command(short_help="Prove specs, or show the smallest mesh where they are wrong.")
@files_argument
@format_option
@output_option
@at_option
@click.option("--require-stated", is_flag=True, help="Fail a proved spec that states no operation of its own.")
@rlimit_option
@timeout_option
@click.option("--recheck", is_flag=True, help="Put every question as it stands to z3 and to cvc5.")
@click.option("--emit-smt2", metavar="DIR", help="Write every question into DIR, to be decided without placelogic.")
@click.option(
    "--from", "framework", metavar="FRAMEWORK", help="FILE is a configuration of this framework; auto: it is recognised."
)
@world_option
@set_option
@version_option
@tokens_option
@unknown_option
@jobs_option
@click.option("-v", "--verbose", is_flag=True, help="Say of every obligation what decided it.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what fails or is expected to.")
def check(
    files: tuple[str, ...],
    form: str,
    outputs: tuple[str, ...],
    jobs: int | None,
    quiet: bool,
    verbose: bool,
    framework: str | None,
    world: int | None,
    given: tuple[tuple[str, str], ...],
    version: str | None,
    tokens: str | None,
    unknown: tuple[str, ...],
    **settings: Any,
) -> int:
    """Prove specs right on every mesh they allow, or show the smallest mesh where they are wrong.

    FILE is a .place file, a folder to search for them, or - for standard input; or a framework's configuration.

    \b
    placelogic check llama.place
    placelogic check specs/ --quiet
    placelogic check llama.place --at dp=64,tp=8
    placelogic check llama.place --format json | jq '.files[].specs[].verdict'
    placelogic check --from deepspeed ds_config.json --world 64

    Exit codes: 0 all proved (or as expected), 1 any refuted, 2 any error, 3 any undecided or vacuous.
    """
    from placelogic.files import Found, find, is_configuration
    from placelogic.io.quoting import visible
    from placelogic.report.diagnostic import Report
    from placelogic.report.formats import rendered
    from placelogic.report.terminal import Printer, Progress, terminal_width
    from placelogic.report.text import Look, closing_lines, file_lines, render
    from placelogic.session.files import check_files
    from placelogic.session.parallel import worthwhile
    from placelogic.session.settings import Settings

    try:
        options = Settings(**settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if framework is None and is_configuration(files):
        framework = "auto"
    if framework is None and (world or given or version or tokens or unknown):
        raise click.UsageError("--world, --set, --framework-version, --tokens and --allow-unknown go with --from")
    files_to_write = parse_outputs(outputs)
    found = [
        Found(STDIN, data=stdin_bytes()) if one.path == STDIN_ARGUMENT else one
        for one in find(files, configs=framework is not None)
    ]
    look = Look(terminal_width(sys.stdout), quiet, verbose=verbose)
    printer = Printer(sys.stdout)
    progress = Progress([one.path for one in found], sys.stderr)
    done: list[FileReport] = []
    left: list[str] = []

    def files_of() -> Iterator[FileReport]:
        if framework is None:
            return check_files(found, options, worthwhile(len(found), jobs))
        from placelogic.frontends.checked import check_each

        return check_each(framework, found, request(world, given, version, tokens, unknown), options, left)

    try:
        progress.step()
        for file in files_of():
            done.append(file)
            if form == "text" and (lines := file_lines(file, look)):
                progress.clear()
                printer.lines(lines)
            progress.step()
    finally:
        progress.clear()
    report = Report(tuple(done))
    if left:
        few = f"{left[0]} is" if len(left) == 1 else f"{len(left)} files are"
        click.echo(visible(f"{few} no configuration of {framework}: left out"), err=True)
    if form == "text":
        printer.lines(closing_lines(report, look))
    else:
        sys.stdout.write(rendered(report, form, render))
    return write_outputs(report, form, files_to_write, render) or report.exit_code
