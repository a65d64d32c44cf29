"""YAML with the place of every value. Only plain data: tags that would construct objects are refused, and
aliases are followed within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from placelogic.files import whole
from placelogic.frontends.values import MAX_DIGITS, Count, Value, plain
from placelogic.problem import Problem, SpecError
from placelogic.source import Span

if TYPE_CHECKING:
    from yaml import Node

_PLAIN = ("null", "bool", "int", "float", "str", "timestamp", "seq", "map", "merge", "value")


MAX_CHARACTERS = 200_000
"""Of a file: reading YAML takes ten times as long as other forms."""


def read_yaml(text: str, path: str) -> Value:
    """The value of a YAML text with one document. Raises SpecError: PL500 with the place of what is wrong,
    PL502 beyond the bounds."""
    if len(text) > MAX_CHARACTERS:
        raise SpecError(Problem("PL502", f"this file holds more than {MAX_CHARACTERS} characters", whole(path),
                                "is this a configuration?"))  # fmt: skip
    import yaml

    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise SpecError(_problem(error, path)) from None
    except RecursionError:
        raise SpecError(Problem("PL502", "this is nested too deeply to be read", whole(path))) from None
    documents = [node for node in documents if node is not None]
    if not documents:
        raise SpecError(Problem("PL500", "this file is empty", whole(path)))
    if len(documents) > 1:
        raise SpecError(Problem("PL500", "a second document begins here, and one is expected",
                                _span(documents[1], path), "split the file"))  # fmt: skip
    return _Builder(path, yaml.SafeLoader("")).value(documents[0], 0, None)


class _Builder:
    def __init__(self, path: str, loader: Any) -> None:
        self.path = path
        self.loader = loader
        self.count = Count(path)
        self.inside: list[Node] = []

    def value(self, node: Node, depth: int, key: Span | None) -> Value:
        import yaml

        span = _span(node, self.path)
        self.count.one(span, depth)
        if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.rpartition(":")[2] not in _PLAIN:
            raise SpecError(Problem("PL500", f"the tag `{node.tag}` asks for an object, and only plain data is read",
                                    span, "write the value itself"))  # fmt: skip
        if any(node is other for other in self.inside):
            raise SpecError(Problem("PL500", "this alias stands for something that contains it", span))
        self.inside.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return Value(self.entries(node, depth), span, key)
            if isinstance(node, yaml.SequenceNode):
                return Value(tuple(self.value(one, depth + 1, None) for one in node.value), span, key)
            return Value(self.scalar(node, span), span, key)
        finally:
            self.inside.pop()

    def entries(self, node: Any, depth: int) -> dict[str, Value]:
        own: dict[str, Value] = {}
        merged: dict[str, Value] = {}
        for name_node, value_node in node.value:
            span = _span(name_node, self.path)
            if name_node.tag == "tag:yaml.org,2002:merge":
                merged = {**self.merged(value_node, depth), **merged}
                continue
            if not hasattr(name_node, "value") or not isinstance(name_node.value, str):
                raise SpecError(Problem("PL500", "a name must be a word here", span))
            name = name_node.value
            value = self.value(value_node, depth + 1, span)
            before = own.get(name)
            differs = before is not None and plain(before) != plain(value)
            own[name] = replace(value, over=before) if differs else value  # the last one counts, as in PyYAML
        return {**merged, **own}

    def merged(self, node: Any, depth: int) -> dict[str, Value]:
        import yaml

        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        result: dict[str, Value] = {}
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise SpecError(Problem("PL500", "`<<` takes a mapping", _span(source, self.path)))
            value = self.value(source, depth + 1, None)
            result = {**dict(value.data), **result}  # type: ignore[arg-type]
        return result

    def scalar(self, node: Any, span: Span) -> None | bool | int | float | str:
        kind = node.tag.rpartition(":")[2]
        if kind in ("int", "float") and len(node.value) > MAX_DIGITS:
            raise SpecError(Problem("PL500", "this number is too long", span))
        try:
            if kind == "null":
                return None
            if kind == "bool":
                return bool(self.loader.construct_yaml_bool(node))
            if kind == "int":
                return int(self.loader.construct_yaml_int(node))
            if kind == "float":
                return float(self.loader.construct_yaml_float(node))
        except (ValueError, OverflowError, LookupError):  # PyYAML looks before it checks
            raise SpecError(Problem("PL500", f"`{node.value[:40]}` is no value of this kind", span)) from None
        return _exponent(node.value) if node.style is None else str(node.value)


def _exponent(text: str) -> float | str:
    """YAML 1.1 reads `1e-5` as text; people mean the number, and most programs read it so."""
    import re

    return float(text) if re.fullmatch(r"[+-]?\d+(?:\.\d*)?[eE][+-]?\d{1,3}", text) else text


def _span(node: Node, path: str) -> Span:
    start, end = node.start_mark, node.end_mark
    if end.line > start.line and end.column == 0:  # blocks end where the next one begins
        return Span(path, start.line + 1, start.column + 1, start.line + 1, start.column + 2)
    return Span(path, start.line + 1, start.column + 1, end.line + 1, max(end.column, start.column + 1) + 1)


def _problem(error: Exception, path: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error).split("\n")[0]
    if mark is None:
        position = getattr(error, "position", None)
        said = "a character that YAML does not allow" if position is not None else said
        return Problem("PL500", f"this is not YAML: {said}", whole(path))
    return Problem("PL500", f"this is not YAML: {said}", Span(path, mark.line + 1, mark.column + 1, mark.line + 1,
                                                             mark.column + 2))  # fmt: skip
