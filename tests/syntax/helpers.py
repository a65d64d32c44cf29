"""Trees without places, to compare what two texts say."""

from __future__ import annotations

from msgspec import Struct


def meaning(node):
    """The tree as nested tuples, without spans."""
    if isinstance(node, tuple):
        return tuple(meaning(item) for item in node)
    if isinstance(node, Struct):
        values = (meaning(getattr(node, name)) for name in node.__struct_fields__ if name not in ("span", "origin", "identifiers"))
        return (type(node).__name__, *values)
    return node


def spans(node):
    """Every (node, span) of the tree."""
    if isinstance(node, tuple):
        for item in node:
            yield from spans(item)
    elif isinstance(node, Struct):
        for name in node.__struct_fields__:
            if name in ("span", "origin"):
                yield node, node.span
            else:
                yield from spans(getattr(node, name))


def cut(text: str, span) -> str:
    """The stretch of the text that a span covers."""
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)
