"""The command line: finds the command, and turns what happens into an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from placelogic import __version__
from placelogic.commands import INTERRUPTED, NAMES

COMPLETE = "_PLACELOGIC_COMPLETE"
"""Set by the scripts of `placelogic completion`: a shell asks what could come next."""

PIPE_CLOSED = 141
"""The same for a pipe that is closed."""


class Commands(click.Group):
    """Finds a command in the module of its name, and imports no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in NAMES:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        return getattr(import_module(f"placelogic.commands.{name}"), name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="placelogic", message="%(prog)s %(version)s")
def cli() -> None:
    """Proves, for every device count at once, that a distributed training strategy trains what one
    device would.

    \b
    placelogic check llama.place         prove it, or show the smallest mesh where it fails
    placelogic gate                      check the specs of a repository, under its policy
    placelogic show llama.place          what is derived where the spec says nothing
    placelogic cost llama.place          what a device holds and sends, as formulas
    placelogic fmt specs/                put files into their canonical form
    placelogic combine zero2 pipeline    say whether strategies can be combined, and at what cost
    placelogic prove                     prove again what verdicts rest on
    placelogic replay llama.place        run it in PyTorch beside one device, and compare
    placelogic explain GI02              what a code of a report means, and what mends it
    placelogic import deepspeed ds.json  a spec of a configuration that you have
    placelogic lsp                       the language server, for editors
    """


def completion_script(shell: str, variable: str) -> str:
    """What the shell has to be told. bash reads it only from version 4.4 on."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    # Without asking the shell for its version, as `source` would: it need not be installed here.
    return found.source_template % found(cli, {}, "placelogic", variable).source_vars() + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code; never a traceback for what a person can cause."""
    from placelogic.report.terminal import discard_output, prepare_streams

    prepare_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if instruction := os.environ.get(COMPLETE):
            from click.shell_completion import shell_complete

            return shell_complete(cli, {}, "placelogic", COMPLETE, instruction)
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
    from placelogic.io.quoting import visible

    nothing_asked = not arguments
    try:
        with cli.make_context("placelogic", arguments or ["--help"]) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as exit_:
        return 2 if nothing_asked else exit_.exit_code
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "placelogic"
        said = visible(" ".join(error.format_message().split()).rstrip("."))
        click.echo(f"{command}: {said[:1].lower()}{said[1:]} (see {command} --help)", err=True)
        return 2
