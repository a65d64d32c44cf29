"""`cost`: memory and traffic of a spec, from its text. The formulas are made in cost/, which needs sympy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from placelogic.cost.data import Options
from placelogic.cost.totals import Cost
from placelogic.files import whole
from placelogic.problem import Problem, SpecError, closest
from placelogic.program.program import Program
from placelogic.report.diagnostic import FileReport
from placelogic.session.files import TEXT, is_text
from placelogic.session.session import Session, Spec
from placelogic.session.settings import Settings
from placelogic.source import NOWHERE
from placelogic.syntax.read import read_source


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
    path = TEXT if isinstance(source, str) and is_text(source) else os.fspath(source)
    text = str(source) if path == TEXT else read_source(path)
    options = Options(unit, ahead, (inter,) if isinstance(inter, str) else tuple(inter))
    return _only(Session(text, path, Settings(dict(at or {}), counting=options)), spec)


def costs(session: Session, name: str | None) -> tuple[tuple[Cost, ...], FileReport]:
    """The costs of the specs of a file, or of the one named; and a report on those that have none. Raises SpecError
    when the file has none such."""
    return session.each(name, lambda spec: _noted(spec, session.path))


def _noted(spec: Spec, path: str) -> Cost:
    """The cost of a spec, with notes on what it costs more than it has to."""
    options, axes = spec.settings.counting or Options(), spec.program.mesh.axes
    for axis in options.inter:
        if axis not in axes:
            hint = closest(axis, axes) or f"known axes: {', '.join(axes)}"
            raise SpecError(Problem("PL200", f"there is no axis `{axis}`", whole(path), hint))
    return replace(spec.cost, notes=(*_costly(spec.program, spec.cost, options), *spec.cost.notes))


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


def compared(first: str, second: str, at: Mapping[str, int], options: Options, form: str) -> str:
    """Two specs side by side. Each is a path, or a path and the name of a spec with a colon between.
    Raises SpecError."""
    from placelogic.cost.compare import as_data, compare, lines

    known: set[str] = {"microbatches"}
    found = compare(*[_one_of(which, at, options, known) for which in (first, second)])
    for name in at:
        if name not in known:
            message = f"--at fixes `{name}`, which is no axis or size of either spec"
            raise SpecError(Problem("PL221", message, NOWHERE, closest(name, known)))
    if form == "json":
        import json

        return json.dumps(as_data(found), indent=2) + "\n"
    return "\n".join(lines(found)).lstrip("\n") + "\n"


def _one_of(which: str, at: Mapping[str, int], options: Options, known: set[str]) -> Cost:
    """The cost of one side, at those of the sizes that it has; adds the names of its sizes to `known`."""
    path, name = which, None
    if not os.path.exists(which) and ":" in which:
        path, _, name = which.rpartition(":")
    text = read_source(path)
    found = _only(Session(text, path, Settings(counting=options)), name)
    known |= set(found.sizes.meanings)
    fixed = {size: value for size, value in at.items() if size in found.sizes.meanings or size == "microbatches"}
    return _only(Session(text, path, Settings(fixed, counting=options)), name) if fixed else found


def _only(session: Session, name: str | None) -> Cost:
    """The cost of the one spec of a file, or of the one named. Raises SpecError."""
    found, problems = costs(session, name)
    wrong = [finding for one in problems.specs for finding in one.findings]
    if wrong:
        raise SpecError(*(f.problem for f in wrong))
    if len(found) > 1:
        names = ", ".join(f"`{one.name}`" for one in found)
        raise SpecError(Problem("PL014", "the file has several specs", whole(session.path), f"say which: {names}"))
    return found[0]
