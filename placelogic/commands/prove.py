"""The command `prove`."""

from __future__ import annotations

import sys

import click


@click.command(short_help="Prove again, with every solver installed, what the verdicts rest on.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
def prove(names: tuple[str, ...], form: str) -> int:
    """Prove again the statements that verdicts rest on, all or those named: the rules of the value
    calculus for every N, and the theorem. z3 decides each, and cvc5 too where it is installed.

    \b
    placelogic prove
    placelogic prove reduce_share loop_sum
    placelogic prove --format json | jq '.statements[].verdict'

    Exit codes: 0 all proved, 1 any failed, 2 any error, 3 any undecided by every solver.
    """
    from placelogic.prove.statements import BadProof
    from placelogic.proving import UnknownStatement, prove_statements

    try:
        return prove_statements(names, form, sys.stdout, sys.stderr)
    except UnknownStatement as error:
        raise click.UsageError(str(error)) from None
    except BadProof as error:
        raise click.ClickException(str(error)) from None
