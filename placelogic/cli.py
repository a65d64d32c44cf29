"""The command line. What a command needs is imported inside it, so that `--help` is quick."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from placelogic import __version__

if TYPE_CHECKING:
    from placelogic.report.diagnostic import FileReport

STDIN = "<stdin>"
STDIN_ARGUMENT = "-"
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What shells report for a program that a signal ended: 128 and its number."""


class Sizes(click.ParamType):
    """`dp=64,tp=8` as a mapping."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        from placelogic.fixed import fixed_sizes

        try:
            return fixed_sizes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="placelogic", message="%(prog)s %(version)s")
def cli() -> None:
    """Proves, for every device count at once, that a distributed training strategy trains what one
    device would.

    \b
    placelogic check llama.place         prove it, or show the smallest mesh where it fails
    placelogic show llama.place          what is derived where the spec says nothing
    placelogic fmt specs/                put files into their canonical form
    placelogic prove                     prove again what verdicts rest on
    placelogic explain GI02              what a code of a report means, and what mends it
    """


_files = click.argument("files", metavar="FILE...", nargs=-1, required=True)
_at = click.option("--at", type=Sizes(), default={}, metavar="dp=64,tp=8", help="Fix these sizes; others stay open.")


@cli.command(short_help="Prove specs, or show the smallest mesh where they are wrong.")
@_files
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
@_at
@click.option("--require-stated", is_flag=True, help="Fail a proved spec that states no operation of its own.")
@click.option("--rlimit", type=click.IntRange(min=1), metavar="N", help="Solver steps for one query.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Wall clock of a query.")
@click.option("--recheck", is_flag=True, help="Let cvc5 decide every question again; it must agree with z3.")
@click.option("--emit-smt2", metavar="DIR", help="Write every question into DIR, to be decided without placelogic.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what fails.")
def check(files: tuple[str, ...], form: str, quiet: bool, **settings: Any) -> int:
    """Prove specs right on every mesh they allow, or show the smallest mesh where they are wrong.

    FILE is a .place file, a folder to search for them, or - for standard input.

    \b
    placelogic check llama.place
    placelogic check specs/ --quiet
    placelogic check llama.place --at dp=64,tp=8
    placelogic check llama.place --format json | jq '.files[].specs[].verdict'

    Exit codes: 0 all proved (or as expected), 1 any refuted, 2 any error, 3 any undecided or vacuous.
    """
    from placelogic.checking import Settings, check_files
    from placelogic.files import Found, find
    from placelogic.report.diagnostic import Report
    from placelogic.report.terminal import Printer, Progress, terminal_width
    from placelogic.report.text import Look, closing_lines, file_lines

    try:
        options = Settings(**settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    found = [Found(STDIN, data=_stdin_bytes()) if one.path == STDIN_ARGUMENT else one for one in find(files)]
    look = Look(terminal_width(sys.stdout), quiet)
    printer = Printer(sys.stdout)
    progress = Progress([one.path for one in found], sys.stderr)
    done: list[FileReport] = []
    try:
        progress.step()
        for file in check_files(found, options):
            done.append(file)
            if form == "text" and (lines := file_lines(file, look)):
                progress.clear()
                printer.lines(lines)
            progress.step()
    finally:
        progress.clear()
    report = Report(tuple(done))
    if form == "text":
        printer.lines(closing_lines(report, look))
    else:
        from placelogic.report.json import render

        sys.stdout.write(render(report) + "\n")
    return report.exit_code


def _stdin_bytes() -> bytes:
    # Python leaves None where the shell closed the stream.
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


@cli.command(short_help="Print a spec with its derived step.")
@click.argument("file", metavar="FILE")
@click.option("--spec", "name", metavar="NAME", help="Only the spec of this name.")
@click.option("--who", is_flag=True, help="Print a table instead: who splits, sums, divides and updates what, and where.")
@_at
def show(file: str, name: str | None, who: bool, at: dict[str, int]) -> int:
    """Print a spec with everything spelled out: strategies expanded, and the step that is derived
    where the spec states none. FILE may be - for standard input.

    \b
    placelogic show llama.place
    placelogic show ablations.place --spec zero3 --at tp=1
    placelogic show llama.place --who
    """
    from placelogic.checking import failed
    from placelogic.showing import show_text
    from placelogic.syntax.read import decode, read_source

    path, text = STDIN if file == STDIN_ARGUMENT else file, ""
    try:
        text = decode(_stdin_bytes(), STDIN) if path == STDIN else read_source(path)
        shown = show_text(text, path, name, at, who)
    except Exception as error:
        _print_problems(failed(path, text, error))
        return 2
    sys.stdout.write("\n".join(shown.texts))
    _print_problems(shown.problems)
    return shown.problems.exit_code


@cli.command(short_help="Put files into their canonical form.")
@_files
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change, and exit 1 if anything would.")
def fmt(files: tuple[str, ...], only_check: bool, diff: bool) -> int:
    """Put files into their canonical form, in place; - reads standard input and writes standard output.

    A file that does not parse is left alone.

    \b
    placelogic fmt llama.place specs/
    placelogic fmt --check specs/
    placelogic fmt --diff llama.place
    placelogic fmt - < llama.place

    Exit codes: 0 done, 1 something would change (--check, --diff), 2 any error.
    """
    from placelogic.checking import failed
    from placelogic.files import find
    from placelogic.formatting import format_bytes, format_file
    from placelogic.problem import SpecError

    dry = only_check or diff
    changes = errors = 0
    for one in find(files):
        stdin = one.path == STDIN_ARGUMENT
        path, data = (STDIN, _stdin_bytes()) if stdin else (one.path, b"")
        try:
            if one.problem is not None:
                raise SpecError(one.problem)
            result = format_bytes(data, path) if stdin else format_file(path)
            if not dry and not stdin:
                result.write()
        except Exception as error:
            errors += 1
            _print_problems(failed(path, data.decode("utf-8", "replace"), error))
            continue
        if stdin and not dry:
            sys.stdout.flush()
            sys.stdout.buffer.write(result.new)
            sys.stdout.buffer.flush()
            continue
        changes += result.changed
        if diff:
            sys.stdout.write(result.diff())
        if result.changed:
            click.echo(f"{'would change' if dry else 'changed'}: {path}", err=True)
    return 2 if errors else int(dry and changes > 0)


@cli.command(short_help="Prove again, with every solver installed, what the verdicts rest on.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
def prove(names: tuple[str, ...], form: str) -> int:
    """Prove again the statements that verdicts rest on, all or those named: the rules of the value
    calculus for every N, and the theorem. z3 decides each, and cvc5 too where it is installed.

    \b
    placelogic prove
    placelogic prove reduce_share loop_sum
    placelogic prove --format json | jq '.statements[].verdict'

    Exit codes: 0 all proved, 1 any failed, 2 any error, 3 any undecided by every solver.
    """
    from placelogic.prove.statements import BadProof
    from placelogic.proving import UnknownStatement, prove_statements

    try:
        return prove_statements(names, form, sys.stdout, sys.stderr)
    except UnknownStatement as error:
        raise click.UsageError(str(error)) from None
    except BadProof as error:
        raise click.ClickException(str(error)) from None


@cli.command(short_help="Say what a code means, and show it.")
@click.argument("code", metavar="[CODE]", required=False)
@click.option("--all", "everything", is_flag=True, help="Print all entries as one Markdown page.")
def explain(code: str | None, everything: bool) -> int:
    """Say what a code of a report means, how it comes about, and what mends it, with a spec of each.
    Without CODE: list all codes.

    \b
    placelogic explain
    placelogic explain GI02
    placelogic explain --all > codes.md
    """
    from placelogic.explaining import UnknownCode, entry, entry_lines, overview_lines, page
    from placelogic.report.terminal import Printer, terminal_width

    if code and everything:
        raise click.UsageError("name a code or say --all, not both")
    if everything:
        sys.stdout.write(page())
        return 0
    width = terminal_width(sys.stdout)
    try:
        lines = entry_lines(entry(code), width) if code else overview_lines(width)
    except UnknownCode as error:
        raise click.UsageError(str(error)) from None
    Printer(sys.stdout).lines(lines)
    return 0


def _print_problems(file: FileReport) -> None:
    """On standard error, so that what a command prints stays usable."""
    from placelogic.report.terminal import Printer, terminal_width
    from placelogic.report.text import Look, finding_lines

    look = Look(terminal_width(sys.stderr))
    printer = Printer(sys.stderr)
    for spec in file.specs:
        for finding in spec.findings:
            printer.lines([(), *finding_lines(file, finding, look)])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code; never a traceback for what a person can cause."""
    from placelogic.report.terminal import discard_output, prepare_streams

    prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except OSError as error:
        discard_output()
        if isinstance(error, BrokenPipeError):
            return PIPE_CLOSED
        click.echo(f"placelogic: cannot write the output: {error.strerror or error}", err=True)
        return 2


def _run(arguments: list[str]) -> int:
    nothing_asked = not arguments
    try:
        with cli.make_context("placelogic", arguments or ["--help"]) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as exit_:
        return 2 if nothing_asked else exit_.exit_code
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "placelogic"
        said = " ".join(error.format_message().split()).rstrip(".")
        click.echo(f"{command}: {said[:1].lower()}{said[1:]} (see {command} --help)", err=True)
        return 2
