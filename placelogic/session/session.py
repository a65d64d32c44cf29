"""One file of specs, and what is known of it: each thing is worked out when somebody first asks for it, and once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from placelogic.files import whole
from placelogic.problem import Problem, SpecError, closest
from placelogic.report.diagnostic import FileReport, SpecReport
from placelogic.session.errors import findings_of
from placelogic.session.settings import Settings
from placelogic.source import Span
from placelogic.syntax.read import normalised

if TYPE_CHECKING:
    from placelogic.cost.totals import Cost
    from placelogic.elaborate import ElaboratedSpec
    from placelogic.program.program import Program
    from placelogic.syntax.ast import File

T = TypeVar("T")


class Session:
    """The text of a file. `path` is what reports call it, and where its imports start from."""

    def __init__(self, text: str, path: str, settings: Settings = Settings()) -> None:
        self.text = normalised(text)
        self.path = path
        self.settings = settings

    @cached_property
    def file(self) -> File:
        """The tree. Raises SpecError for what is no sentence of the language."""
        from placelogic.syntax.parse import parse

        return parse(self.text, self.path)

    @cached_property
    def specs(self) -> tuple[Spec, ...]:
        """Every spec, in the order of the file. Raises SpecError as `file` does; what is wrong with one spec is raised
        by that spec."""
        from placelogic.elaborate import elaborate_file

        file, budget = self.file, self.settings.budget
        if budget is not None:
            file = replace(file, statements=(*file.statements, budget))
        return tuple(Spec(one, self.settings) for one in elaborate_file(file, self.settings.at))

    def named(self, name: str | None) -> tuple[Spec, ...]:
        """The specs of this name, or all. Raises SpecError PL014 for a name that there is not."""
        found = tuple(spec for spec in self.specs if name in (None, spec.name))
        if not found:
            raise SpecError(unknown_spec(name or "", [spec.name for spec in self.specs], whole(self.path)))
        return found

    def each(self, name: str | None, make: Callable[[Spec], T]) -> tuple[tuple[T, ...], FileReport]:
        """What is made of every spec, or of those of this name; and a report on those of which nothing can be made.
        Raises SpecError as `named` does."""
        made: list[T] = []
        wrong: list[SpecReport] = []
        for spec in self.named(name):
            try:
                made.append(make(spec))
            except Exception as error:
                wrong.append(SpecReport(spec.name, "error", findings=findings_of(error, whole(self.path))))
        return tuple(made), FileReport(self.path, tuple(wrong), self.text)


class Spec:
    """One spec of a file. `elaborated`: with the steps that are stated, and what is wrong with it."""

    def __init__(self, elaborated: ElaboratedSpec, settings: Settings) -> None:
        self.elaborated = elaborated
        self.settings = settings

    @property
    def name(self) -> str:
        return self.elaborated.name

    @cached_property
    def _program(self) -> Program | SpecError:
        from placelogic.elaborate.complete import complete

        try:
            return complete(self.elaborated)
        except SpecError as error:
            return error

    @property
    def program(self) -> Program:
        """The step program, complete. Raises SpecError where something is wrong with the spec."""
        if isinstance(self._program, SpecError):
            raise self._program
        return self._program

    @property
    def has_program(self) -> bool:
        """Whether there is a program."""
        return not isinstance(self._program, SpecError)

    @cached_property
    def verdict(self) -> SpecReport:
        """What is proved of the training that it says; of its claims, budgets and expectations, requirements/ judges.
        Raises SpecError as `program` does, and where its arithmetic has no meaning."""
        from placelogic.program.open import open_sizes
        from placelogic.prove import prove

        report = (self.settings.prover or prove)(self.program, self.settings.options)
        return replace(report, name=self.name, open_sizes=open_sizes(self.program))

    @cached_property
    def cost(self) -> Cost:
        """What a device holds and sends. Raises SpecError as `program` does, and for what has no cost."""
        from placelogic.cost.data import Options
        from placelogic.cost.derive import derive

        return derive(self.program, self.settings.counting or Options())


def unknown_spec(name: str, known: Iterable[str], place: Span) -> Problem:
    """PL014 for a name of which there is no spec in a file."""
    hint = closest(name, known) or f"the file has {', '.join(f'`{one}`' for one in known)}"
    return Problem("PL014", f"there is no spec `{name}` in this file", place, hint)
