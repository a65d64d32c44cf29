"""The command `explain`."""

from __future__ import annotations

import sys

import click


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from placelogic.explain.entries import codes

    return [code for code in codes() if code.startswith(incomplete.upper())]


@click.command(short_help="Say what a code means, and show it.")
@click.argument("code", metavar="[CODE]", required=False, shell_complete=_complete)
@click.option("--all", "everything", is_flag=True, help="Print all entries as one Markdown page.")
def explain(code: str | None, everything: bool) -> int:
    """Say what a code of a report means, how it comes about, and what mends it, with a spec of each.
    Without CODE: list all codes.

    \b
    placelogic explain
    placelogic explain GI02
    placelogic explain --all > codes.md
    """
    from placelogic.explain.entries import UnknownCode, entry, page
    from placelogic.report.explained import entry_lines, overview_lines
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
