"""Where names are declared, and where they are used: in this file, in imported ones, in the standard library."""

from __future__ import annotations

import os
from importlib import resources

from placelogic.editor.complete import declared
from placelogic.editor.names import at
from placelogic.editor.text import Text
from placelogic.problem import SpecError
from placelogic.source import Span
from placelogic.syntax import ast

_STANDARD = "placelogic/std/"


def definition(text: Text, line: int, column: int) -> Span | None:
    """Where the name at this place (from 1) is declared; of an import, the file. None where nothing is."""
    imported = _import(text, line)
    if imported is not None:
        return imported
    found = at(text.names, line, column)
    if found is None:
        return None
    here = next((o.span for o in text.names if o.key == found.key and o.declares), None)
    if here is not None:
        return here
    if found.space == "definition":
        known = text.scope.find(found.name)
        place = known.node.span if known is not None else None
    else:
        sorts = {"weights": ("weights",), "size": ("axis", "size")}.get(found.space, ())
        place = next((one.span for one in declared(text) if one.name == found.name and one.sort in sorts), None)
    return _named(text, place, found.name) if place is not None else None


def references(text: Text, line: int, column: int) -> tuple[Span, ...]:
    """Every place in this file of the name at this place, its declaration included."""
    found = at(text.names, line, column)
    return () if found is None else tuple(one.span for one in text.names if one.key == found.key)


def file_of(path: str) -> str:
    """The file on disk behind the path of a Span: those of the standard library are installed."""
    if path.startswith(_STANDARD):
        return str(resources.files("placelogic").joinpath("std").joinpath(path[len(_STANDARD) :]))
    return os.path.realpath(path)


def source(text: Text, span: Span) -> str:
    """The text that a place lies in."""
    if span.path == text.path:
        return text.readable.text
    from placelogic.syntax.parse import normalised
    from placelogic.syntax.read import read_source

    try:
        return normalised(read_source(file_of(span.path)))
    except SpecError:
        return ""


def _import(text: Text, line: int) -> Span | None:
    file = text.readable.file
    for statement in file.statements if file is not None else ():
        if isinstance(statement, ast.ImportStmt) and statement.span.line == line:
            path = os.path.realpath(os.path.join(os.path.dirname(text.path), statement.path))
            return Span(path, 1, 1, 1, 1) if os.path.isfile(path) else None
    return None


def _named(text: Text, place: Span, name: str) -> Span:
    """The name itself, in what declares it."""
    there = text if place.path == text.path else Text(place.path, source(text, place))
    start = (place.line, place.column)
    found = (o.span for o in there.names if o.declares and o.name == name and (o.span.line, o.span.column) >= start)
    return next(found, place)
