"""The command `show`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from placelogic.commands.options import at_option, named, print_problems, text_of

if TYPE_CHECKING:
    from placelogic.session.session import Spec


@click.command(short_help="Print a spec with its derived step.")
@click.argument("file", metavar="FILE")
@click.option("--spec", "name", metavar="NAME", help="Only the spec of this name.")
@click.option(
    "--who", is_flag=True, help="Print a table instead: who splits, sums, divides and updates what, and where."
)
@at_option
def show(file: str, name: str | None, who: bool, at: dict[str, int]) -> int:
    """Print a spec with everything spelled out: strategies expanded, and the step that is derived
    where the spec states none. FILE may be - for standard input.

    \b
    placelogic show llama.place
    placelogic show ablations.place --spec zero3 --at tp=1
    placelogic show llama.place --who
    """
    from placelogic.report.terminal import document
    from placelogic.session.errors import failed
    from placelogic.session.session import Session
    from placelogic.session.settings import Settings

    path, text = named(file), ""
    try:
        text = text_of(path)
        texts, problems = Session(text, path, Settings(at)).each(name, table if who else in_full)
    except Exception as error:
        print_problems(failed(path, text, error))
        return 2
    document(sys.stdout, "\n".join(texts))
    print_problems(problems)
    return problems.exit_code


def in_full(spec: Spec) -> str:
    """The spec as it is after elaboration, with the derived step."""
    from placelogic.elaborate.show import show

    return show(spec.program).rstrip("\n") + "\n"


def table(spec: Spec) -> str:
    """Who does what in the spec, and where."""
    from placelogic.report import who

    return f"{spec.name}\n\n{who.table(spec.program)}"
