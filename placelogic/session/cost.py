"""`cost`: from a spec, or its text, to memory and traffic. The formulas are made in cost/, which needs sympy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from placelogic.elaborate.complete import complete
from placelogic.files import whole
from placelogic.problem import Problem, SpecError, closest
from placelogic.report.diagnostic import FileReport, SpecReport
from placelogic.session.errors import findings_of
from placelogic.session.files import TEXT, is_text
from placelogic.source import NOWHERE

if TYPE_CHECKING:
    from placelogic.cost.data import Options
    from placelogic.cost.totals import Cost
    from placelogic.program.program import Program


class Costed(Struct, frozen=True):
    """The costs that could be derived; for the other specs, what is wrong with them."""

    costs: tuple[Cost, ...]
    problems: FileReport


def cost(
    source: str | os.PathLike[str],
    *,
    spec: str | None = None,
    at: Mapping[str, int] | None = None,
    unit: Literal["layer", "group"] = "layer",
    ahead: int = 0,
    inter: str | Sequence[str] = (),
) -> Cost:
    """Memory and traffic of a spec, as sympy expressions in its sizes.

    `source` is a path or the text of a spec, `spec` the name of one where there are several, `at` fixes
    sizes. `unit`: what is gathered at once, a layer of all weights or of one group; `ahead`: how many units
    are gathered before they are needed; `inter`: the axes that cross nodes.

    Raises SpecError for what is wrong with the spec, and OSError never: a file that cannot be read is PL001. ValueError
    is raised for options that make no sense.
    """
    from placelogic.cost.data import Options
    from placelogic.syntax.read import read_source

    path = TEXT if isinstance(source, str) and is_text(source) else os.fspath(source)
    text = str(source) if path == TEXT else read_source(path)
    return _only(
        cost_text(
            text, path, spec, dict(at or {}), Options(unit, ahead, (inter,) if isinstance(inter, str) else tuple(inter))
        ),
        path,
    )


def cost_text(text: str, path: str, name: str | None, at: Mapping[str, int], options: Options) -> Costed:
    """The costs of the specs of a file, or of the one named. Raises SpecError when the file has none such."""
    from placelogic.cost.derive import derive
    from placelogic.elaborate import elaborate_file
    from placelogic.syntax.parse import normalised, parse

    text = normalised(text)
    specs = elaborate_file(parse(text, path), at)
    if name is not None:
        names = [spec.name for spec in specs]
        specs = tuple(spec for spec in specs if spec.name == name)
        if not specs:
            hint = closest(name, names) or f"the file has {', '.join(f'`{known}`' for known in names)}"
            raise SpecError(Problem("PL014", f"there is no spec `{name}` in this file", whole(path), hint))
    costs: list[Cost] = []
    wrong: list[SpecReport] = []
    for spec in specs:
        try:
            program = complete(spec)
            _check_inter(program.mesh.axes, options, path)
            found = derive(program, options)
            costs.append(replace(found, notes=(*_costly(program, found, options), *found.notes)))
        except Exception as error:
            wrong.append(SpecReport(spec.name, "error", findings=findings_of(error, whole(path))))
    return Costed(tuple(costs), FileReport(path, tuple(wrong), text))


def _costly(program: Program, found: Cost, options: Options) -> Iterator[str]:
    """What a stated step costs more than the one that would be derived for the same placements."""
    from placelogic.cost.compare import ratio
    from placelogic.cost.derive import derive
    from placelogic.cost.symbols import covers
    from placelogic.cost.text import formula
    from placelogic.elaborate.derive import derive as derive_step
    from placelogic.elaborate.stated import Stated

    if not any(step.stated or step.lines for step in program.steps):
        return
    other = derive(derive_step(replace(program, steps=()), Stated({}, {}, {})), options)
    pairs = (("sends", found.traffic.sent, other.traffic.sent), ("holds", found.memory.held, other.memory.held))
    for verb, here, there in pairs:
        if covers(there, here):
            continue
        numbers = found.known(here), found.known(there)
        if None not in numbers:
            if numbers[1] == 0 or numbers[0] <= numbers[1]:  # type: ignore[operator]
                continue
            factor = f"{float(numbers[0] / numbers[1]):.4g}"  # type: ignore[operator]
        elif there == 0:
            continue
        else:
            factor = formula(ratio(here, there))
        yield f"costly: the step that is stated {verb} {factor} times what the one that would be derived {verb}"


def _check_inter(axes: Sequence[str], options: Options, path: str) -> None:
    for axis in options.inter:
        if axis not in axes:
            hint = closest(axis, axes) or f"known axes: {', '.join(axes)}"
            raise SpecError(Problem("PL200", f"there is no axis `{axis}`", whole(path), hint))


def rendered(path: str, costs: Sequence[Cost], per: str, form: str, standalone: bool = False) -> str:
    """The costs of the specs of a file as one text. Nothing where there are none."""
    if not costs:
        return ""
    from placelogic import __version__

    match form:
        case "text":
            from placelogic.cost.text import lines
            from placelogic.io.quoting import visible

            blocks = ["\n".join([visible(f"{path}: {one.name}"), *lines(one, per)]) for one in costs]
            return "\n\n".join(blocks) + "\n"
        case "json":
            from placelogic.cost.json import render

            return render([(path, one) for one in costs], __version__) + "\n"
        case "latex":
            from placelogic.cost import latex

            return (latex.document if standalone else latex.fragment)(costs, per) + "\n"
        case "markdown":
            from placelogic.cost import markdown

            return markdown.render(costs, per)
        case "csv":
            from placelogic.cost import csv

            return csv.render(costs, per)
        case "python":
            from placelogic.cost import python

            return python.render(costs, __version__)
        case _:
            raise ValueError(f"there is no format {form!r}")


def compared(first: str, second: str, at: Mapping[str, int], options: Options, form: str) -> str:
    """Two specs side by side. Each is a path, or a path and the name of a spec with a colon between.
    Raises SpecError."""
    from placelogic.cost.compare import as_data, compare, lines

    known: set[str] = {"microbatches"}
    costs = [_one_of(which, at, options, known) for which in (first, second)]
    for name in at:
        if name not in known:
            message = f"--at fixes `{name}`, which is no axis or size of either spec"
            raise SpecError(Problem("PL221", message, NOWHERE, closest(name, known)))
    found = compare(*costs)
    if form == "json":
        import json

        return json.dumps(as_data(found), indent=2) + "\n"
    return "\n".join(lines(found)).lstrip("\n") + "\n"


def _one_of(which: str, at: Mapping[str, int], options: Options, known: set[str]) -> Cost:
    """The cost of one side, at those of the sizes that it has; adds the names of its sizes to `known`."""
    path, name = which, None
    if not os.path.exists(which) and ":" in which:
        path, _, name = which.rpartition(":")
    found = _cost_of(path, name, {}, options)
    known |= set(found.sizes.meanings)
    fixed = {size: value for size, value in at.items() if size in found.sizes.meanings or size == "microbatches"}
    return _cost_of(path, name, fixed, options) if fixed else found


def _cost_of(path: str, name: str | None, at: Mapping[str, int], options: Options) -> Cost:
    """Of one spec in a file. Raises SpecError."""
    from placelogic.syntax.read import read_source

    return _only(cost_text(read_source(path), path, name, at, options), path)


def _only(found: Costed, path: str) -> Cost:
    problems = [finding for one in found.problems.specs for finding in one.findings]
    if problems:
        raise SpecError(*(Problem(f.code, f.message, f.span, f.help) for f in problems))
    if len(found.costs) > 1:
        names = ", ".join(f"`{one.name}`" for one in found.costs)
        raise SpecError(Problem("PL014", "the file has several specs", whole(path), f"say which: {names}"))
    return found.costs[0]
