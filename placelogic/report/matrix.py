"""The matrix of `combine --all`, for the screen and as the page docs/combine.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from placelogic.report.combine import brief, combination_lines
from placelogic.report.layout import Line, plain, wrap
from placelogic.report.text import Look

if TYPE_CHECKING:
    from placelogic.combine.answer import Combination

_SIGNS = {"sound": ".", "costly": "c", "unsound": "X", "meaningless": "!", "undecided": "?"}
_LEGEND = ". sound   c sound, but costly   X unsound   ! no meaning   ? undecided"

_ABOUT = """\
# What can be combined

Printed by `placelogic combine --all --format markdown`. A cell is the verdict of `placelogic check` on the spec that
`placelogic combine X Y --print` prints: both strategies, weights of every kind (a tied embedding and experts included),
any number of micro-batches, global-norm clipping, an elementwise optimizer, for every size. The step is derived, so a
cell says what fits together, not what a framework does: `placelogic combine X Y` lists what an implementation has to
do for it, each condition with the finding that comes when it is broken.

| in a cell | means |
|---|---|
| sound | proved for every size |
| costly | proved; with what it moves more than with one micro-batch, in the number M of micro-batches |
| unsound | refuted, with the codes of its findings ([explain.md](explain.md)) |
| no meaning | what the strategies say of one axis cannot both be so, or is not modelled: there is no spec to decide |

That one strategy moves more with every micro-batch is a cost of the combination only where the other one works by
micro-batches, as a pipeline does. Whether a framework has the combination built is another question.
"""


def matrix_lines(combinations: Sequence[Combination], look: Look) -> list[Line]:
    """A triangle of signs, and one line for each pair that is not simply sound."""
    names = _names(combinations)
    cells = _cells(combinations)
    room = max(map(len, names))
    lines: list[Line] = []
    for number, name in enumerate(names):
        signs = "  ".join(_SIGNS[cells[other, name].answer] for other in names[:number])
        lines.append(((f"{number + 1:2} {name:<{room}}  ", "strong"), (signs, "")))
    lines.append(((" " * (room + 5) + " ".join(f"{number + 1:<2}" for number in range(len(names) - 1)), ""),))
    lines += [(), ((_LEGEND, ""),), ()]
    for one in combinations:
        if one.answer != "sound" or one.overridden:
            room = None if look.width is None else max(look.width - 4, 20)
            first, *rest = wrap(f"{one.composition.name}: {brief(one)}", room)
            lines += [((first, ""),), *((("    " + part, ""),) for part in rest)]
    return lines


def page_text(example: Combination, apart: Sequence[Combination], together: Sequence[Combination]) -> str:
    """Both matrices, and an answer in full."""
    shown = "\n".join(plain(line) for line in combination_lines(example, Look(110)))
    parts = [
        _ABOUT,
        "## On axes of their own\n",
        _table(apart),
        _told(apart),
        "## On one axis\n",
        "The first axis of each strategy is the same one.\n",
        _table(together),
        _told(together),
        "## One answer in full\n",
        f"```text\n$ placelogic combine {' '.join(part.name for part in example.composition.parts)}\n{shown}\n```\n",
    ]
    return "\n".join(part for part in parts if part)


def _table(combinations: Sequence[Combination]) -> str:
    names = _names(combinations)
    cells = _cells(combinations)
    rows = [f"| | {' | '.join(f'`{name}`' for name in names[:-1])} |", "|---" * len(names) + "|"]
    for number, name in enumerate(names[1:], 1):
        row = [cell(cells[other, name]) for other in names[:number]]
        rows.append(f"| `{name}` | {' | '.join([*row, *[''] * (len(names) - 1 - number)])} |")
    return "\n".join(rows) + "\n"


def cell(one: Combination) -> str:
    """The answer in a cell: with the factor, or the codes."""
    if one.answer == "costly":
        return f"costly, {', '.join(dict.fromkeys(cost.factor for cost in one.costs))}"
    if one.answer == "meaningless":
        return f"no meaning, {one.codes[0]}"
    if one.overridden:
        return f"{one.answer}, without {' and '.join(one.overridden)}"
    return f"{one.answer}, {' '.join(one.codes)}" if one.codes else one.answer


def _told(combinations: Iterable[Combination]) -> str:
    lines = [
        f"- `{one.composition.name}`: {brief(one)}" for one in combinations if one.answer != "sound" or one.overridden
    ]
    return "\n".join(lines) + "\n" if lines else ""


def _names(combinations: Sequence[Combination]) -> list[str]:
    return sorted({part.name for one in combinations for part in one.composition.parts})


def _cells(combinations: Sequence[Combination]) -> dict[tuple[str, str], Combination]:
    return {(one.composition.parts[0].name, one.composition.parts[1].name): one for one in combinations}
