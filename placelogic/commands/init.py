"""The command `init`."""

from __future__ import annotations

import os

import click

from placelogic.commands.options import complete_file


@click.command(short_help="Write a commented configuration and a first spec.")
@click.argument("root", metavar="[FOLDER]", default=".", shell_complete=complete_file)
@click.option("--specs", metavar="NAME", default="specs", help="The folder for specs, below FOLDER.")
def init(root: str, specs: str) -> int:
    """Write `placelogic.toml` and `specs/training.place` into a repository: both commented, both working as
    they stand. A file that is there is left alone.

    \b
    placelogic init
    placelogic init ../trainer --specs training/specs
    """
    from placelogic.gate.start import start
    from placelogic.io.quoting import shell, visible
    from placelogic.problem import SpecError

    if os.path.isabs(specs) or ".." in specs.replace("\\", "/").split("/"):
        raise click.UsageError("--specs is a folder below FOLDER")
    try:
        started = start(root, os.path.normpath(specs))
    except SpecError as error:
        raise click.ClickException(f"{error.problems[0].span.path}: {error.problems[0].message}") from None
    except OSError as error:
        raise click.ClickException(
            f"cannot write `{error.filename}`: {(error.strerror or str(error)).lower()}"
        ) from None
    for path in started.written:
        click.echo(visible(f"wrote {os.path.normpath(path)}"))
    for path in started.kept:
        click.echo(visible(f"left alone {os.path.normpath(path)}: it is there already"))
    there = "" if os.path.normpath(root) == "." else f"cd {shell(root)} && "
    click.echo(f"next: {there}placelogic gate")
    return 0
