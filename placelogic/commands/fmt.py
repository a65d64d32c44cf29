"""The command `fmt`."""

from __future__ import annotations

import sys

import click

from placelogic.commands.options import STDIN, STDIN_ARGUMENT, files_argument, print_problems, stdin_bytes


@click.command(short_help="Put files into their canonical form.")
@files_argument
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change, and exit 1 if anything would.")
def fmt(files: tuple[str, ...], only_check: bool, diff: bool) -> int:
    """Put files into their canonical form, in place; - reads standard input and writes standard output.

    A file that does not parse is left alone.

    \b
    placelogic fmt llama.place specs/
    placelogic fmt --check specs/
    placelogic fmt --diff llama.place
    placelogic fmt - < llama.place

    Exit codes: 0 done, 1 something would change (--check, --diff), 2 any error.
    """
    from placelogic.files import find
    from placelogic.io.quoting import visible
    from placelogic.problem import SpecError
    from placelogic.report.terminal import document
    from placelogic.session.errors import failed
    from placelogic.syntax.formatted import format_bytes, format_file

    dry = only_check or diff
    changes = errors = 0
    for one in find(files, links=False):
        stdin = one.path == STDIN_ARGUMENT
        path, data = (STDIN, stdin_bytes()) if stdin else (one.path, b"")
        try:
            if one.problem is not None:
                raise SpecError(one.problem)
            result = format_bytes(data, path) if stdin else format_file(path)
            if not dry and not stdin:
                result.write()
        except Exception as error:
            errors += 1
            print_problems(failed(path, data.decode("utf-8", "replace"), error))
            continue
        if stdin and not dry:
            sys.stdout.flush()
            sys.stdout.buffer.write(result.new)
            sys.stdout.buffer.flush()
            continue
        changes += result.changed
        if diff:
            document(sys.stdout, result.diff())
        if result.changed:
            click.echo(visible(f"{'would change' if dry else 'changed'}: {path}"), err=True)
    return 2 if errors else int(dry and changes > 0)
