"""One text as an editor holds it, with what is known of it; everything is worked out when it is asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from placelogic.editor.names import Occurrence, occurrences
from placelogic.problem import SpecError
from placelogic.session.session import Session, Spec
from placelogic.session.settings import Prover, Settings
from placelogic.syntax.parse import parse

if TYPE_CHECKING:
    from placelogic.elaborate.library import Scope
    from placelogic.program.program import Program
    from placelogic.syntax import ast

MAX_BLANKED = 30
"""Lines with errors that are left out to read the rest, at most."""


class Text:
    """A version of a file. `path`: where imports start from. `last`: an earlier one that could be read. `prover`: who
    decides its specs. `session`: what is known of this version, shared with the check in the background."""

    def __init__(self, path: str, text: str, last: Text | None = None, prover: Prover | None = None) -> None:
        self.path = path
        self.session = Session(text, path, Settings(fixes=None, prover=prover))
        self.text = self.session.text
        self._last = last

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def file(self) -> ast.File | None:
        """The tree, or None where the text has errors."""
        try:
            return self.session.file
        except (SpecError, RecursionError):
            return None

    @cached_property
    def readable(self) -> Text:
        """This text; or while it has errors, the text without the lines that have them; or the last one without."""
        if self.file is not None:
            return self
        lines = list(self.lines)
        for _ in range(MAX_BLANKED):
            try:
                parse("\n".join(lines), self.path)
            except SpecError as error:
                line = error.problems[0].span.line
                if not 1 <= line <= len(lines) or not lines[line - 1]:
                    break
                lines[line - 1] = ""
            except RecursionError:
                break
            else:
                return Text(self.path, "\n".join(lines))
        return self._last.readable if self._last is not None else Text(self.path, "")

    def stands_alone(self) -> None:
        """It could be read: what was before is not needed any more."""
        self._last = None

    @cached_property
    def names(self) -> tuple[Occurrence, ...]:
        """Every name, of the readable text."""
        file = self.readable.file
        return occurrences(file) if file is not None else ()

    @cached_property
    def scope(self) -> Scope:
        """What the names of strategies and models mean here, imports and the standard library included."""
        return self._read_scope()[0]

    @cached_property
    def statements(self) -> tuple[ast.Statement, ...]:
        """The statements outside definitions, of all specs and of imported files."""
        return self._read_scope()[1]

    def _read_scope(self) -> tuple[Scope, tuple[ast.Statement, ...]]:
        from placelogic.elaborate.library import Reader, Scope
        from placelogic.elaborate.log import Log
        from placelogic.syntax import ast

        scope = Scope()
        file = self.readable.file
        if file is None:
            return scope, ()
        reader = Reader.of(self.path, Log())
        found: list[ast.Statement] = []
        for scoped in reader.statements(file.statements, reader.root, scope, set()):
            inner = scoped.statement
            found += inner.body if isinstance(inner, ast.SpecDef) else (inner,)
        return scope, tuple(found)

    @cached_property
    def specs(self) -> tuple[Spec, ...]:
        """The specs of the readable text."""
        try:
            return self.readable.session.specs
        except (SpecError, RecursionError):
            return ()

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The complete programs of those specs that have one."""
        found = []
        for spec in self.specs:
            try:
                found.append(spec.program)
            except (SpecError, RecursionError):
                continue
        return tuple(found)
