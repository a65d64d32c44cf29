"""What several commands share: arguments, options, standard input, problems on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from placelogic.session.settings import MOST_RLIMIT, MOST_SECONDS

if TYPE_CHECKING:
    from placelogic.report.diagnostic import FileReport, Report
    from placelogic.report.formats import Output

STDIN = "<stdin>"
STDIN_ARGUMENT = "-"


def fixed_sizes(text: str) -> dict[str, int]:
    """`dp=64,tp=8` as a mapping. Raises ValueError with what is wrong, for the person who wrote it."""
    sizes: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, number = (part.strip() for part in item.partition("="))
        if not equals or not name.isidentifier():
            raise ValueError(f"{item!r} is not of the form NAME=SIZE, as in dp=64")
        if len(number) > 30:
            raise ValueError(f"the size of {name} has {len(number)} digits; 30 are enough for any real size")
        if not (number.isascii() and number.isdigit() and int(number) > 0):
            raise ValueError(f"the size of {name} must be a positive whole number, not {number!r}")
        if name in sizes:
            raise ValueError(f"{name} is given twice")
        sizes[name] = int(number)
    return sizes


class SizesParam(click.ParamType):
    """`dp=64,tp=8` as a mapping."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        try:
            return fixed_sizes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Amount(click.FloatRange):
    """A number in a range that is one: not `nan`, and not endless."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        if not abs(found) < float("inf"):
            self.fail(f"{value} is no number that can be computed with", param, ctx)
        return found


def complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """The shell completes file names. Not by a type for paths, which would look at them before we do."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


files_argument = click.argument("files", metavar="FILE...", nargs=-1, required=True, shell_complete=complete_file)
at_option = click.option(
    "--at", type=SizesParam(), default={}, metavar="dp=64,tp=8", help="Fix these sizes; others stay open."
)

unit_option = click.option(
    "--unit",
    type=click.Choice(["layer", "group"]),
    default="layer",
    help="What is gathered at once: a layer with all its weights, or of one group of weights.",
)
ahead_option = click.option(
    "--ahead", type=click.IntRange(0, 1000), default=0, help="Units gathered before they are needed."
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "github", "junit"]),
    default="text",
    help="Form of the report.",
)
output_option = click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="[FORM=]FILE",
    help="Write the report into FILE too; .sarif, .json, .xml, .txt and .md tell the form. May be repeated.",
)
jobs_option = click.option(
    "--jobs", "-j", type=click.IntRange(1, 1024), metavar="N", help="How many processes; by default as many as pay."
)


rlimit_option = click.option(
    "--rlimit", type=click.IntRange(1, MOST_RLIMIT), metavar="N", help="Solver steps for one query."
)
timeout_option = click.option(
    "--timeout", type=Amount(0, MOST_SECONDS, min_open=True), metavar="SECONDS", help="Wall clock of a query."
)


def parse_outputs(texts: Iterable[str]) -> list[Output]:
    """The files to write. Raises click.UsageError."""
    from placelogic.report.formats import Output

    try:
        return [Output.parse(text) for text in texts]
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def write_outputs(report: Report, form: str, outputs: Sequence[Output], text: Callable[[Report], str]) -> int:
    """Write the files, and for `github` the summary of the step. 2 where one cannot be written, which is said on
    standard error, else 0."""
    from placelogic.problem import SpecError
    from placelogic.report.formats import append_step_summary, write
    from placelogic.session.errors import failed

    steps: list[Callable[[], None]] = [lambda output=output: write(report, output, text) for output in outputs]
    if form == "github":
        steps.append(lambda: append_step_summary(report))
    code = 0
    for step in steps:
        try:
            step()
        except SpecError as error:
            print_problems(failed(error.problems[0].span.path, "", error))
            code = 2
    return code


def stdin_bytes() -> bytes:
    from placelogic.io.reading import MAX_BYTES

    # Python leaves None where the shell closed the stream.
    return b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_BYTES + 1)


def named(file: str) -> str:
    """What reports call the file of an argument."""
    return STDIN if file == STDIN_ARGUMENT else file


def text_of(path: str) -> str:
    """The text of a spec, maybe from standard input. Raises SpecError."""
    from placelogic.syntax.read import decode, read_source

    return decode(stdin_bytes(), STDIN) if path == STDIN else read_source(path)


def print_problems(file: FileReport) -> None:
    """On standard error, so that what a command prints stays usable."""
    from placelogic.report.diagnostic import FindingSet
    from placelogic.report.terminal import Printer, terminal_width
    from placelogic.report.text import Look, finding_lines

    look = Look(terminal_width(sys.stderr))
    printer = Printer(sys.stderr)
    told = FindingSet()
    for spec in file.specs:
        for finding in spec.findings:
            if told.add(finding):  # what several specs share is told once
                printer.lines([(), *finding_lines(file, finding, look)])
