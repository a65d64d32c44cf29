"""What several commands share: arguments, options, standard input, problems on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from placelogic.report.diagnostic import FileReport

STDIN = "<stdin>"
STDIN_ARGUMENT = "-"


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


files_argument = click.argument("files", metavar="FILE...", nargs=-1, required=True)
at_option = click.option(
    "--at", type=Sizes(), default={}, metavar="dp=64,tp=8", help="Fix these sizes; others stay open."
)


def stdin_bytes() -> bytes:
    # Python leaves None where the shell closed the stream.
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def print_problems(file: FileReport) -> None:
    """On standard error, so that what a command prints stays usable."""
    from placelogic.report.terminal import Printer, terminal_width
    from placelogic.report.text import Look, finding_lines

    look = Look(terminal_width(sys.stderr))
    printer = Printer(sys.stderr)
    for spec in file.specs:
        for finding in spec.findings:
            printer.lines([(), *finding_lines(file, finding, look)])
