"""The command `lsp`."""

from __future__ import annotations

import click


@click.command(short_help="Run the language server, for editors.")
def lsp() -> int:
    """Run the language server: an editor starts it, and speaks to it over standard input and output. It needs
    the extra: pip install 'placelogic[lsp]'.

    \b
    placelogic lsp
    """
    import logging

    try:
        from placelogic.editor.server import server
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException("the language server needs pygls: pip install 'placelogic[lsp]'") from None
    logging.basicConfig(level=logging.ERROR)  # standard error: the other streams are the protocol's
    server().start_io()
    return 0
