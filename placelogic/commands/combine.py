"""The command `combine`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from placelogic.commands.options import at_option

if TYPE_CHECKING:
    from placelogic.combine.answer import Combination


@click.command(short_help="Say whether strategies can be combined, and at what cost.")
@click.argument("strategies", metavar="[STRATEGY]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All pairs of standard strategies, as a matrix.")
@click.option("--same-axis", is_flag=True, help="Give all strategies one axis, instead of one each.")
@click.option("--with", "more", metavar="STATEMENT", multiple=True, help="A statement to add: 'optimizer muon'.")
@click.option("--import", "imports", metavar="FILE", multiple=True, help="A file with strategies of your own.")
@click.option("--framework", metavar="FRAMEWORK", help="Say too what this framework refuses, and why.")
@click.option("--print", "only_print", is_flag=True, help="Print the spec that is decided, and stop.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), help="Form of the answer.")
@at_option
def combine(
    strategies: tuple[str, ...],
    everything: bool,
    same_axis: bool,
    more: tuple[str, ...],
    imports: tuple[str, ...],
    framework: str | None,
    only_print: bool,
    form: str | None,
    at: dict[str, int],
) -> int:
    """May X be combined with Y? Sound: with what it rests on, each condition tried by breaking it. Costly: sound, with
    what it moves more. Unsound: with the smallest counterexample. For every size.

    STRATEGY is a name, which is given axes of its own, or a call.

    \b
    placelogic combine zero2 pipeline
    placelogic combine 'zero1(dp)' 'data_parallel(dp)'
    placelogic combine zero1 tensor_parallel --with 'optimizer muon for matrix'
    placelogic combine zero2 pipeline --framework deepspeed
    placelogic combine zero3 pipeline --print > start.place
    placelogic combine --all

    Exit codes: 0 sound or costly, 1 unsound, 2 no meaning, or an error, 3 undecided; with --all always 0.
    """
    from placelogic.combine.answer import Question, answer
    from placelogic.combine.compose import compose
    from placelogic.commands.options import print_problems
    from placelogic.frontends.load import FRAMEWORKS
    from placelogic.frontends.refusals import asked
    from placelogic.problem import SpecError, closest
    from placelogic.report import combine as told
    from placelogic.report.terminal import Printer, document, terminal_width
    from placelogic.report.text import Look
    from placelogic.session.errors import failed

    if everything and (strategies or more or imports or only_print or framework or at):
        raise click.UsageError("--all takes no strategies, and of the options only --same-axis and --format")
    if not everything and not strategies:
        raise click.UsageError("name two strategies or more, or say --all")
    if framework is not None and framework not in FRAMEWORKS:
        hint = closest(framework, FRAMEWORKS) or f"there are {', '.join(FRAMEWORKS)}"
        raise click.UsageError(f"no framework `{framework}` is known here; {hint}")
    if form == "markdown" and not everything:
        raise click.UsageError("--format markdown goes with --all")
    if everything:
        return _matrix(same_axis, form or "text")
    try:
        if only_print:
            document(sys.stdout, compose(strategies, same_axis, imports, more).text)
            return 0
        one = answer(Question(strategies, same_axis, imports, more, at))
        if framework is not None:
            one = replace(one, refused=asked(framework, [part.name for part in one.composition.parts], one.spec.verdict))
    except SpecError as error:
        place = error.problems[0].span.path
        print_problems(failed(place, "", error))
        return 2
    code = one.report.exit_code
    if form == "json":
        sys.stdout.write(told.render([one], code) + "\n")
    else:
        Printer(sys.stdout).lines(told.combination_lines(one, Look(terminal_width(sys.stdout))))
    return code


def _matrix(same_axis: bool, form: str) -> int:
    from placelogic.combine.matrix import names_of_pairs, page, pairs
    from placelogic.report import combine as told
    from placelogic.report.matrix import matrix_lines
    from placelogic.report.terminal import Printer, Progress, terminal_width
    from placelogic.report.text import Look

    if form == "markdown":
        sys.stdout.write(page())
        return 0
    progress = Progress([" * ".join(names) for names in names_of_pairs()], sys.stderr)
    found: list[Combination] = []
    try:
        progress.step()
        for one in pairs(same_axis):
            found.append(one)
            progress.step()
    finally:
        progress.clear()
    if form == "json":
        sys.stdout.write(told.render(found, 0) + "\n")
    else:
        Printer(sys.stdout).lines(matrix_lines(found, Look(terminal_width(sys.stdout))))
    return 0
