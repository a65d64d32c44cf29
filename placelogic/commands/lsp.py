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

    from placelogic.commands import INTERRUPTED

    try:
        from placelogic.editor.features import server
        from placelogic.editor.wire import serve
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException("the language server needs pygls: pip install '.[lsp]' in the checkout") from None
    # What goes wrong is answered; the log of the library would be tracebacks.
    logging.basicConfig(level=logging.ERROR if os.environ.get("PLACELOGIC_DEBUG") else logging.CRITICAL)
    sys.stdout.flush()
    # Standard output is the protocol's alone: what anything else prints goes to standard error.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        answering = server()
        try:
            return serve(answering, sys.stdin.fileno(), out)
        except KeyboardInterrupt:
            os._exit(INTERRUPTED)  # now: not after what threads still compute
        finally:
            answering.runs.close()
