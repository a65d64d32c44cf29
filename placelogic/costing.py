"""`cost`: from a spec, or its text, to memory and traffic. The formulas are made in cost/, which needs sympy."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from placelogic.checking import TEXT, complete, findings_of, is_text
from placelogic.files import whole
from placelogic.problem import Problem, SpecError, closest
from placelogic.report.diagnostic import FileReport, SpecReport

if TYPE_CHECKING:
    from placelogic.cost import Cost, Options


@dataclass(frozen=True, slots=True)
class Costed:
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
    inter: Sequence[str] = (),
) -> Cost:
    """Memory and traffic of a spec, as sympy expressions in its sizes.

    `source` is a path or the text of a spec, `spec` the name of one where there are several, `at` fixes
    sizes. `unit`: what is gathered at once, a layer of all weights or of one group; `ahead`: how many units
    are gathered before they are needed; `inter`: the axes that cross nodes.

    Raises SpecError for what is wrong with the spec, and OSError never: a file that cannot be read is PL001.
    """
    from placelogic.cost import Options
    from placelogic.syntax.read import read_source

    path = TEXT if isinstance(source, str) and is_text(source) else os.fspath(source)
    text = str(source) if path == TEXT else read_source(path)
    found = cost_text(text, path, spec, dict(at or {}), Options(unit, ahead, tuple(inter)))
    problems = [finding for one in found.problems.specs for finding in one.findings]
    if problems:
        raise SpecError(*(Problem(f.code, f.message, f.span, f.help) for f in problems))
    if len(found.costs) > 1:
        names = ", ".join(f"`{one.name}`" for one in found.costs)
        raise SpecError(Problem("PL014", "the file has several specs", whole(path), f"say which: {names}"))
    return found.costs[0]


def cost_text(text: str, path: str, name: str | None, at: Mapping[str, int], options: Options) -> Costed:
    """The costs of the specs of a file, or of the one named. Raises SpecError when the file has none such."""
    from placelogic.cost import derive
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
            costs.append(derive(program, options))
        except Exception as error:
            wrong.append(SpecReport(spec.name, "error", findings=findings_of(error, whole(path))))
    return Costed(tuple(costs), FileReport(path, tuple(wrong), text))


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

            blocks = ["\n".join([f"{path}: {one.name}", *lines(one, per)]) for one in costs]
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
