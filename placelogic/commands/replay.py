"""The command `replay`."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from placelogic.commands.options import Amount, SizesParam, named, print_problems, text_of


@click.command(short_help="Run a spec in PyTorch beside one device, and compare.")
@click.argument("file", metavar="FILE")
@click.option("--spec", "name", metavar="NAME", help="Replay only the spec of this name.")
@click.option("--mesh", type=SizesParam(), default={}, metavar="dp=2,tp=2", help="Sizes to replay at.")
@click.option(
    "--way", type=click.Choice(["both", "direct", "native"]), default="both",
    help="Interpret the step, let a component of torch do it, or both where one does.",
)  # fmt: skip
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="Where numbers live.")
@click.option("--steps", type=click.IntRange(1, 100), default=3, help="Training steps.")
@click.option(
    "--optimizer", type=click.Choice(["both", "sgd", "adam", "spec"]), default="both",
    help="Both SGD and Adam, one of them, or the spec's own.",
)  # fmt: skip
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", help="Of all numbers.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of weights and samples.")
@click.option("--counterexample", "counterexamples", is_flag=True, help="Replay refuted specs only.")
@click.option("--timeout", "limit", type=Amount(1), default=120.0, metavar="SECONDS", help="For one replay.")
@click.option("--script", metavar="OUT.py", help="Write the counterexample as a program that needs PyTorch alone.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
def replay(file: str, name: str | None, form: str, script: str | None, **wishes: Any) -> int:
    """Run specs in PyTorch, on several processes with real collectives, beside training on one device.
    A proved spec must train the same; a refuted one must differ at its counterexample, by the factor it names.

    \b
    placelogic replay llama.place
    placelogic replay llama.place --mesh dp=2,tp=2
    placelogic replay broken.place --counterexample
    placelogic replay broken.place --script shown.py && python shown.py

    Exit codes: 0 what happens is what the verdicts say, 1 it is not, 2 any error, 3 nothing was decided.
    """
    from placelogic.io.quoting import visible
    from placelogic.io.writing import write_file
    from placelogic.replay.specs import Wishes, replay_text, script_of
    from placelogic.report.replay import as_json, lines
    from placelogic.report.terminal import Printer, Stages
    from placelogic.session.errors import failed

    path, text = named(file), ""
    stages = Stages(sys.stderr)
    try:
        text = text_of(path)
        if script is not None:
            program, shown = script_of(text, path, name, stages.tell)
            write_file(script, program)
            stages.clear()
            click.echo(visible(f"{script} shows {shown}"))
            return 0
        report = replay_text(text, path, name, Wishes(**wishes), stages.tell)
    except Exception as error:
        stages.clear()
        print_problems(failed(path, text, error))
        return 2
    finally:
        stages.clear()
    if os.environ.get("RANK", "0") != "0":
        return report.exit_code  # under torchrun the first rank tells
    if form == "json":
        sys.stdout.write(as_json(report) + "\n")
    else:
        Printer(sys.stdout).lines(lines(report))
    return report.exit_code
