"""The command `import`."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from placelogic.commands.importer_options import (
    request,
    set_option,
    tokens_option,
    unknown_option,
    version_option,
    world_option,
)
from placelogic.commands.options import STDIN, STDIN_ARGUMENT, print_problems, stdin_bytes


@click.command(name="import", short_help="Make a spec of a framework's configuration.")
@click.argument("framework", metavar="FRAMEWORK")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="SPEC", help="Write the spec here, or into this folder, one for each file.")
@click.option("--ignored", is_flag=True, help="List the settings that say nothing about placement.")
@world_option
@set_option
@version_option
@tokens_option
@unknown_option
def import_(framework: str, files: tuple[str, ...], output: str | None, ignored: bool, **asked: Any) -> int:
    """Make a spec of a configuration: how that framework divides, reduces, accumulates and clips.

    FRAMEWORK is deepspeed, megatron, torchtitan, accelerate, axolotl or nanotron. FILE may be - for standard
    input. Each line of the spec says which setting it comes from; what the file does not say stays open.

    \b
    placelogic import deepspeed ds_config.json
    placelogic import megatron pretrain.sh -o run.place --world 64
    placelogic import axolotl sft.yaml --set adapter=null --framework-version 0.9

    Exit codes: 0 done, 2 any error. `placelogic check --from FRAMEWORK FILE` checks without writing a spec.
    """
    from placelogic.frontends.checked import make, notes_report
    from placelogic.io.quoting import visible
    from placelogic.io.writing import write_file
    from placelogic.problem import SpecError
    from placelogic.report.terminal import document
    from placelogic.session.errors import failed

    wanted = request(**asked)
    into = output is not None and (os.path.isdir(output) or len(files) > 1)
    errors = 0
    for file in files:
        stdin = file == STDIN_ARGUMENT
        made = make(framework, STDIN if stdin else file, wanted, stdin_bytes() if stdin else None)
        if made.imported is None:
            errors += 1
            assert made.problems is not None
            print_problems(made.problems)
            continue
        print_problems(notes_report(made))
        if ignored:
            names = ", ".join(made.imported.ignored) or "none"
            click.echo(visible(f"{file}: settings without meaning for placement: {names}"), err=True)
        if output is None:
            document(sys.stdout, made.imported.spec)
            continue
        target = os.path.join(output, os.path.splitext(os.path.basename(file))[0] + ".place") if into else output
        try:
            write_file(target, made.imported.spec)
        except SpecError as error:
            errors += 1
            print_problems(failed(target, "", error))
    return 2 if errors else 0
