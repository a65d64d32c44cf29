"""Renaming a name everywhere it is used, in this file and in those below its folder that import it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from placelogic.editor.complete import declared
from placelogic.editor.define import definition, file_of
from placelogic.editor.names import Occurrence, Space, at, occurrences
from placelogic.editor.text import Text
from placelogic.files import find
from placelogic.problem import SpecError
from placelogic.source import Span
from placelogic.syntax import ast
from placelogic.syntax.builder import RESERVED
from placelogic.syntax.parse import parse

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class CannotRename(Exception):
    """Why not, in one sentence."""


def renamable(text: Text, line: int, column: int) -> Occurrence:
    """The name at a place (from 1). Raises CannotRename for what nobody named here."""
    if text.file is None:
        raise CannotRename("the file has errors: mend them first")
    found = at(text.names, line, column)
    if found is None:
        raise CannotRename("there is no name here")
    if not any(one.key == found.key and one.declares for one in text.names):
        declared = definition(text, line, column)
        where = (
            f"declared in {os.path.basename(declared.path)}: rename it there"
            if declared is not None
            else "not declared"
        )
        raise CannotRename(f"`{found.name}` is {where}")
    return found


def rename(text: Text, line: int, column: int, new: str, opened: Mapping[str, str]) -> dict[str, tuple[Span, ...]]:
    """The places to change, by file. `opened`: texts that are open and may not be saved, by path.

    Raises CannotRename, also where the new name is taken, or would be read as something else."""
    found = renamable(text, line, column)
    if not _NAME.fullmatch(new):
        raise CannotRename(f"`{new}` is no name: write letters, digits and `_`")
    if new in RESERVED:
        raise CannotRename(f"`{new}` has a meaning of its own")
    places = {text.path: _changed(text, found.key, new)}
    if found.owner is None and new in _taken(text, found.space):
        raise CannotRename(f"`{new}` is already a name in a file or model that this one uses")
    if found.owner is None and found.space in ("definition", "size", "weights"):
        for other in _importers(text, opened):
            mine = [one for one in other.names if one.key == found.key]
            if mine and not any(one.declares for one in mine):
                places[other.path] = _changed(other, found.key, new)
    return places


def _taken(text: Text, space: Space) -> Iterable[str]:
    """What models and imported files declare."""
    if space == "definition":
        return {*text.scope.imported, *text.scope.own}
    sorts = {"weights": ("weights",), "size": ("axis", "size")}.get(space, ())
    return {one.name for one in declared(text) if one.sort in sorts}


def _changed(text: Text, key: tuple, new: str) -> tuple[Span, ...]:
    """The places in one file, after making sure that the file then says the same."""
    before = text.names
    if any(one.name == new and one.space == key[0] and one.owner in (key[2], None) for one in before):
        raise CannotRename(f"`{new}` is already a name in {os.path.basename(text.path)}")
    spans = tuple(one.span for one in before if one.key == key)
    changed = _replaced(text.text, spans, new)
    try:
        after = occurrences(parse(changed, text.path))
    except SpecError as error:
        raise CannotRename(f"`{new}` has another meaning there: {error.problems[0].message}") from None
    expected = [(one.space, new if one.key == key else one.name, one.declares) for one in before]
    if [(one.space, one.name, one.declares) for one in after] != expected:
        raise CannotRename(f"`{new}` has another meaning in {os.path.basename(text.path)}")
    return spans


def _replaced(text: str, spans: Sequence[Span], new: str) -> str:
    lines = text.split("\n")
    for span in reversed(spans):
        line = lines[span.line - 1]
        lines[span.line - 1] = line[: span.column - 1] + new + line[span.end_column - 1 :]
    return "\n".join(lines)


MAX_FILES = 500
"""Files that are searched for imports of this one."""


def _importers(text: Text, opened: Mapping[str, str]) -> Iterator[Text]:
    """Files below the folder that import this one: imports lead down, never up, so nobody else can."""
    from placelogic.syntax.read import read_source

    here = file_of(text.path)
    if not os.path.isfile(here):
        return
    for found in find([os.path.dirname(here)])[:MAX_FILES]:
        path = os.path.realpath(found.path)
        if path == here or found.problem is not None:
            continue
        try:
            other = Text(path, opened[path] if path in opened else read_source(path))
        except SpecError:
            continue
        if other.file is not None and here in _imported(other):
            yield other


def _imported(text: Text) -> set[str]:
    folder = os.path.dirname(text.path)
    statements = text.file.statements if text.file is not None else ()
    return {os.path.realpath(os.path.join(folder, s.path)) for s in statements if isinstance(s, ast.ImportStmt)}
