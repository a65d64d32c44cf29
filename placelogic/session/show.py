"""`show`: specs as they are after elaboration, with the derived step."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from placelogic.elaborate.complete import complete
from placelogic.files import whole
from placelogic.problem import Problem, SpecError, closest
from placelogic.report.diagnostic import FileReport, SpecReport
from placelogic.session.errors import findings_of


class Shown(Struct, frozen=True):
    """The specs that can be shown, as text; those that cannot, with what is wrong."""

    texts: tuple[str, ...]
    problems: FileReport


def show_text(text: str, path: str, name: str | None, at: Mapping[str, int], who: bool = False) -> Shown:
    """Show the specs of a file, or the one named. Raises SpecError when the file has none such."""
    from placelogic.elaborate import elaborate_file
    from placelogic.elaborate.show import show
    from placelogic.report.who import table
    from placelogic.syntax.parse import parse

    specs = elaborate_file(parse(text, path), at)
    if name is not None:
        names = [spec.name for spec in specs]
        specs = tuple(spec for spec in specs if spec.name == name)
        if not specs:
            hint = closest(name, names) or f"the file has {', '.join(f'`{known}`' for known in names)}"
            raise SpecError(Problem("PL014", f"there is no spec `{name}` in this file", whole(path), hint))
    texts: list[str] = []
    wrong: list[SpecReport] = []
    for spec in specs:
        try:
            program = complete(spec)
            texts.append(f"{spec.name}\n\n{table(program)}" if who else show(program).rstrip("\n") + "\n")
        except Exception as error:
            wrong.append(SpecReport(spec.name, "error", findings=findings_of(error, whole(path))))
    return Shown(tuple(texts), FileReport(path, tuple(wrong), text))
