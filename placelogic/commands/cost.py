"""The command `cost`."""

from __future__ import annotations

import sys
from fractions import Fraction

import click

from placelogic.commands.options import Amount, ahead_option, at_option, named, print_problems, text_of, unit_option

FORMS = ("text", "latex", "markdown", "json", "python", "csv")


@click.command(short_help="Derive memory and traffic, as formulas and numbers.")
@click.argument("file", metavar="FILE")
@click.option("--spec", "name", metavar="NAME", help="Only the spec of this name.")
@at_option
@click.option(
    "--per",
    type=click.Choice(["rank", "stage", "group", "collective"]),
    default="rank",
    help="What a line is about: the worst device, each stage, each group of weights, each communication.",
)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", help="Form of the report.")
@click.option("--standalone", is_flag=True, help="With --format latex: a document that compiles on its own.")
@unit_option
@ahead_option
@click.option("--inter", metavar="AXIS,...", default="", help="Axes that cross nodes: traffic is split by it.")
@click.option(
    "--bandwidth",
    type=Amount(0, min_open=True),
    metavar="GB/S",
    help="Of one device: adds an estimate of the time to send.",
)
@click.option(
    "--inter-bandwidth",
    type=Amount(0, min_open=True),
    metavar="GB/S",
    help="The same between nodes (see --inter).",
)
@click.option("--latency", type=Amount(0), default=0.0, metavar="US", help="Microseconds for each round of a ring.")
def cost(
    file: str,
    name: str | None,
    at: dict[str, int],
    per: str,
    form: str,
    standalone: bool,
    unit: str,
    ahead: int,
    inter: str,
    bandwidth: float | None,
    inter_bandwidth: float | None,
    latency: float,
) -> int:
    """Derive what one device holds, its peak, and what it sends in a step, from the step program that is
    proved. FILE may be - for standard input.

    \b
    placelogic cost llama.place
    placelogic cost llama.place --at dp=64,tp=8 --per stage
    placelogic cost llama.place --per collective --inter node
    placelogic cost llama.place --format json | jq '.specs[].memory.peak'
    placelogic cost llama.place --format latex --standalone > llama.tex

    Exit codes: 0 derived, 2 any error.
    """
    from placelogic.report.terminal import document
    from placelogic.session.errors import failed

    if bandwidth is None and (inter_bandwidth is not None or latency):
        raise click.UsageError("--inter-bandwidth and --latency go with --bandwidth")
    if standalone and form != "latex":
        raise click.UsageError("--standalone goes with --format latex")
    path, text = named(file), ""
    try:
        text = text_of(path)
        from placelogic.cost import Options
        from placelogic.cost.render import rendered
        from placelogic.session.cost import costs
        from placelogic.session.session import Session
        from placelogic.session.settings import Settings

        axes = tuple(filter(None, (axis.strip() for axis in inter.split(","))))
        options = Options(
            unit,  # type: ignore[arg-type]
            ahead,
            axes,
            bandwidth=None if bandwidth is None else Fraction(bandwidth) * 10**9,
            inter_bandwidth=None if inter_bandwidth is None else Fraction(inter_bandwidth) * 10**9,
            latency=Fraction(latency) / 10**6,
        )
        found, problems = costs(Session(text, path, Settings(at, counting=options)), name)
        document(sys.stdout, rendered(path, found, per, form, standalone))
    except Exception as error:
        print_problems(failed(path, text, error))
        return 2
    print_problems(problems)
    return problems.exit_code
