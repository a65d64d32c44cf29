"""The command `completion`."""

from __future__ import annotations

import sys

import click


@click.command(short_help="Print what makes a shell complete commands and options.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script for a shell, which then completes commands, options and files.

    \b
    eval "$(placelogic completion bash)"                               in ~/.bashrc
    eval "$(placelogic completion zsh)"                                in ~/.zshrc
    placelogic completion fish > ~/.config/fish/completions/placelogic.fish
    """
    from placelogic.cli import COMPLETE, completion_script

    sys.stdout.write(completion_script(shell, COMPLETE))
    return 0
