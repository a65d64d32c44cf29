"""The command `doctor`."""

from __future__ import annotations

import sys

import click


@click.command(short_help="Say what is installed, and whether it works.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
def doctor(form: str) -> int:
    """Say which versions of everything are installed, which solvers and devices are there, which cache and
    configuration are in use, and whether a right spec is proved and a wrong one refuted.

    \b
    placelogic doctor
    placelogic doctor --format json | jq -r '.signs[] | select(.state == "bad") | .name'

    Exit codes: 0 placelogic works, 2 something it needs is missing or broken.
    """
    from placelogic.commands.diagnosis import signs
    from placelogic.io.quoting import visible
    from placelogic.report.layout import Line, Style
    from placelogic.report.terminal import Printer

    styles: dict[str, Style] = {"ok": "good", "missing": "doubt", "bad": "bad", "info": ""}
    printer = Printer(sys.stdout)
    found = []
    for sign in signs():
        found.append(sign)
        if form == "text":
            state = "" if sign.state == "info" else sign.state
            line: Line = (
                (f"{sign.name:<22} ", "strong"),
                (f"{state:<8}", styles[sign.state]),
                (visible(sign.told), ""),
            )
            printer.lines([line])
            sys.stdout.flush()
    code = 2 if any(sign.state == "bad" for sign in found) else 0
    if form == "json":
        import json

        from msgspec.structs import asdict

        told = {"schema": "placelogic/doctor/1", "exit_code": code, "signs": [asdict(sign) for sign in found]}
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return code
