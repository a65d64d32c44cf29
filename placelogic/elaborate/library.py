"""Where strategies and models come from: the file itself, its imports, the standard library."""

from __future__ import annotations

import os
from functools import cache
from importlib import resources
from pathlib import Path

from msgspec import Struct, field

from placelogic.elaborate.log import Log
from placelogic.problem import SpecError, closest
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.imports import MAX_FILES, MAX_TOTAL

MAX_IMPORTS = 30
"""How deep imports may be nested."""


class Definition(Struct, frozen=True, eq=False):
    """A strategy or model, with the scope its own names are looked up in."""

    node: ast.StrategyDef | ast.ModelDef
    scope: Scope
    standard: bool = False


class Scope(Struct, eq=False):
    """Definitions by name. `outer`: around a spec block. `imported` comes after `own`, the standard library last."""

    outer: Scope | None = None
    own: dict[str, Definition] = field(default_factory=dict)
    imported: dict[str, Definition] = field(default_factory=dict)

    def find(self, name: str) -> Definition | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.own.get(name) or scope.imported.get(name)
            if found is not None:
                return found
            scope = scope.outer
        return standard(name)

    def names(self, kind: type) -> list[str]:
        """Every name of this kind of definition, for hints (reads the whole standard library)."""
        found: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            everything = {**scope.imported, **scope.own}
            found += [name for name, d in everything.items() if isinstance(d.node, kind)]
            scope = scope.outer
        for name in standard_names():
            definition = standard(name)
            if definition is not None and isinstance(definition.node, kind):
                found.append(name)
        return found


FOLDERS = ("std", "std/frameworks")
"""Of the package: strategies and models as such, and what frameworks do at run time."""


def standard_names(folder: str | None = None) -> list[str]:
    """The names of the standard library, or of one of its folders: one file each."""
    return sorted(name for name, where in _standard_folders().items() if folder in (None, where))


@cache
def _standard_folders() -> dict[str, str]:
    """Name -> the folder its file is in."""
    found = {}
    for folder in FOLDERS:
        for file in resources.files("placelogic").joinpath(*folder.split("/")).iterdir():
            if file.name.endswith(".place"):
                found[file.name[: -len(".place")]] = folder
    return found


@cache
def standard(name: str) -> Definition | None:
    """The strategy or model of this name in placelogic/std, or None."""
    from placelogic.syntax.parse import parse

    folder = _standard_folders().get(name)  # not by asking for the file: a name may be too long for one
    if folder is None:
        return None
    file = resources.files("placelogic").joinpath(*folder.split("/")).joinpath(f"{name}.place")
    tree = parse(file.read_text(encoding="utf-8"), f"placelogic/{folder}/{name}.place")
    scope = Scope()
    for node in tree.statements:
        if isinstance(node, ast.StrategyDef | ast.ModelDef):
            scope.own[node.name] = Definition(node, scope, standard=True)
    return scope.own.get(name)


class Imported(Struct, frozen=True):
    """A file read by `import`: its statements (imports inside it included), and what it defines."""

    path: Path
    statements: tuple[Scoped, ...]
    scope: Scope


class Scoped(Struct, frozen=True):
    """A statement, the scope it was written in, the import line that brought it in and the file
    it stands in, if that is not the checked one."""

    statement: ast.Statement
    scope: Scope
    via: Span | None
    file: Path | None = None


class Reader(Struct):
    """Reads a file's statements and imports, each imported file once. Imports stay in the folder
    of the checked file or below: a spec from a stranger cannot make us open other files."""

    root: Path
    log: Log
    _known: dict[Path, Imported | None] = field(default_factory=dict)
    _reading: list[Path] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, path: str, log: Log) -> Reader:
        here = Path() if path in ("-", "") else Path(path).parent
        reader = cls(Path(os.path.realpath(here)), log)
        if path not in ("-", ""):
            reader._reading.append(Path(os.path.realpath(path)))
        return reader

    def statements(
        self,
        statements: tuple[ast.Statement, ...],
        folder: Path,
        scope: Scope,
        included: set[Path],
        file: Path | None = None,
    ) -> list[Scoped]:
        """The statements in order, imports replaced by what they bring; definitions are entered into
        `scope`. `included`: files whose statements are there already (each comes once per spec).
        `file`: the one being read, None for the checked file."""
        result: list[Scoped] = []
        for node in statements:
            match node:
                case ast.StrategyDef() | ast.ModelDef():
                    self._define(node, scope)
                case ast.ImportStmt():
                    imported = self._import(node, folder)
                    if imported is None:
                        continue
                    self._bring(imported, scope, node.span)
                    new = [s for s in imported.statements if s.file not in included]
                    included |= {s.file for s in new if s.file is not None}
                    result += [Scoped(s.statement, s.scope, node.span, s.file) for s in new]
                case _:
                    result.append(Scoped(node, scope, None, file))
        return result

    def _define(self, node: ast.StrategyDef | ast.ModelDef, scope: Scope) -> None:
        if node.name in scope.own:
            line = scope.own[node.name].node.span.line
            self.log.add("PL210", f"`{node.name}` is defined twice, first in line {line}", node.span,
                         "rename one of them")  # fmt: skip
            return
        scope.own[node.name] = Definition(node, scope)

    def _bring(self, imported: Imported, scope: Scope, span: Span) -> None:
        for name, definition in {**imported.scope.imported, **imported.scope.own}.items():
            other = scope.imported.setdefault(name, definition)
            if other is not definition:
                first = os.path.basename(other.node.span.path)
                self.log.add("PL210", f"`{name}` is defined in this file and in `{first}`, both imported", span,
                             "rename one of them, or import only one of the files")  # fmt: skip

    def _import(self, node: ast.ImportStmt, folder: Path) -> Imported | None:
        path = self._resolve(node, folder)
        if path is None:
            return None
        if path in self._reading:
            chain = [p.name for p in self._reading[self._reading.index(path) :]] + [path.name]
            self.log.add("PL022", f"imports run in a circle: {' -> '.join(chain)}", node.span,
                         "move what both need into a third file")  # fmt: skip
            return None
        if len(self._reading) > MAX_IMPORTS:
            self.log.add("PL303", f"imports are nested more than {MAX_IMPORTS} deep", node.span, "flatten them")
            return None
        if path not in self._known:
            if len(self._known) >= MAX_FILES or sum(self._sizes) > MAX_TOTAL:
                self.log.add("PL303", f"more than {MAX_FILES} files, or {MAX_TOTAL} bytes, are imported", node.span,
                             "import what is needed")  # fmt: skip
                return None
            self._known[path] = self._read(path, node)
        return self._known[path]

    def _resolve(self, node: ast.ImportStmt, folder: Path) -> Path | None:
        if os.path.isabs(node.path):
            self.log.add("PL021", "an import is relative to the file it stands in", node.span,
                         "write a path without a leading slash")  # fmt: skip
            return None
        path = Path(os.path.realpath(folder / node.path))
        if not path.is_relative_to(self.root):
            self.log.add("PL021", f"`{node.path}` lies outside the folder of the checked file", node.span,
                         "move it beside the checked file, or below")  # fmt: skip
            return None
        if not os.path.exists(path):  # false for a name that is too long, where `Path` would raise
            near = closest(path.name, _neighbours(path.parent))
            self.log.add("PL020", f"there is no file `{node.path}`", node.span,
                         near or "imports are relative to the file they stand in")  # fmt: skip
            return None
        return path

    def _read(self, path: Path, node: ast.ImportStmt) -> Imported | None:
        from placelogic.syntax.parse import parse
        from placelogic.syntax.read import read_source

        try:
            text = read_source(path)
            self._sizes.append(len(text))
            tree = parse(text, str(path))
        except SpecError as error:
            self._broken(node, error.problems[0].message, error.problems[0].span)
            return None
        scope = Scope()
        inner = Reader(self.root, Log(), self._known, self._reading, self._sizes)
        self._reading.append(path)
        statements = inner.statements(tree.statements, path.parent, scope, set(), path)
        self._reading.pop()
        for scoped in statements:
            if isinstance(scoped.statement, ast.SpecDef | ast.ExpectStmt | ast.BudgetStmt | ast.ClaimStmt):
                inner.log.add("PL301", "specs, budgets, claims and expectations cannot be imported",
                              scoped.statement.span)  # fmt: skip
        if inner.log.problems:
            first = inner.log.problems[0]
            self._broken(node, first.message, first.span)
            return None
        return Imported(path, tuple(statements), scope)

    def _broken(self, node: ast.ImportStmt, message: str, span: Span) -> None:
        self.log.add("PL023", f"`{node.path}` has an error in line {span.line}: {message}", node.span,
                     f"placelogic check {node.path} shows all of them")  # fmt: skip


def _neighbours(folder: Path) -> list[str]:
    try:
        return [file.name for file in folder.iterdir()]
    except OSError:
        return []
