"""The command `lsp`."""

from __future__ import annotations

import sys

import click


@click.command(short_help="Run the language server, for editors.")
def lsp() -> int:
    """Run the language server: an editor starts it, and speaks to it over standard input and output. It needs
    the extra: pip install '.[lsp]' in the checkout.

    \b
    placelogic lsp
    """
    import logging
    import os

    try:
        from placelogic.editor.features import server
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException("the language server needs pygls: pip install '.[lsp]' in the checkout") from None
    logging.basicConfig(level=logging.ERROR)
    sys.stdout.flush()
    # Standard output is the protocol's alone: what anything else prints goes to standard error.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        server().start_io(stdout=out)
    return 0
