"""The command `show`."""

from __future__ import annotations

import sys

import click

from placelogic.commands.options import STDIN, STDIN_ARGUMENT, at_option, print_problems, stdin_bytes


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
    from placelogic.session.show import show_text
    from placelogic.syntax.read import decode, read_source

    path, text = STDIN if file == STDIN_ARGUMENT else file, ""
    try:
        text = decode(stdin_bytes(), STDIN) if path == STDIN else read_source(path)
        shown = show_text(text, path, name, at, who)
    except Exception as error:
        print_problems(failed(path, text, error))
        return 2
    document(sys.stdout, "\n".join(shown.texts))
    print_problems(shown.problems)
    return shown.problems.exit_code
