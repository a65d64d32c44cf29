"""The command `compare`."""

from __future__ import annotations

import sys

import click

from placelogic.commands.options import ahead_option, at_option, print_problems, unit_option


@click.command(short_help="Put the costs of two specs side by side.")
@click.argument("first", metavar="FILE[:SPEC]")
@click.argument("second", metavar="FILE[:SPEC]")
@at_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
@unit_option
@ahead_option
def compare(first: str, second: str, at: dict[str, int], form: str, unit: str, ahead: int) -> int:
    """Compare memory and traffic of two specs: formulas, numbers and ratios. A file with several specs
    is followed by the name of one. Sizes of one name are one size; --at fixes those that a spec has.

    \b
    placelogic compare zero3.place ddp.place
    placelogic compare stages.place:zero3 stages.place:baseline --at N=8

    Exit codes: 0 compared, 2 any error.
    """
    from placelogic.session.cost import compared
    from placelogic.session.errors import failed

    try:
        from placelogic.cost import Options

        sys.stdout.write(compared(first, second, at, Options(unit, ahead), form))  # type: ignore[arg-type]
    except Exception as error:
        print_problems(failed(first, "", error))
        return 2
    return 0
