"""Short ways to elaborate a spec in a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from placelogic.elaborate import ElaboratedSpec, Stated, elaborate_file
from placelogic.program.program import Layout, Origin, Program
from placelogic.source import Span
from placelogic.syntax.parse import parse

SMALL = """
mesh N
let P
weights model { size P }
"""


def specs(text: str, path: str = "spec.place", fixed: Mapping[str, int] | None = None) -> tuple[ElaboratedSpec, ...]:
    return elaborate_file(parse(text, path), fixed or {})


def one(text: str, path: str = "spec.place", fixed: Mapping[str, int] | None = None) -> ElaboratedSpec:
    (spec,) = specs(text, path, fixed)
    return spec


def program(text: str, fixed: Mapping[str, int] | None = None) -> Program:
    spec = one(text, fixed=fixed)
    assert spec.problems == (), spec.problems
    assert spec.program is not None
    return spec.program


def stated(text: str) -> Stated:
    spec = one(text)
    assert spec.problems == (), spec.problems
    assert spec.stated is not None
    return spec.stated


def codes(text: str, fixed: Mapping[str, int] | None = None) -> list[str]:
    return sorted(problem.code for problem in one(text, fixed=fixed).problems)


def layout(layout_: Layout) -> str:
    """A layout on one line: cuts outermost first, then O and M."""
    cuts = [f"{c.letter}{f'({c.dim})' if c.dim else ''}@{'*'.join(c.axes)}" for c in layout_.cuts]
    return " ".join(cuts + ["O"] * (layout_.host is not None) + ["M"] * (layout_.materialized is not None)) or "R"


def bare(node: Any) -> Any:
    """The same data without places, origins, texts, what was derived from it, and whether it was stated."""
    if isinstance(node, tuple):
        return tuple(bare(part) for part in node)
    if isinstance(node, Span | Origin):
        return None
    if isinstance(node, Mapping):
        return {key: bare(value) for key, value in node.items()}
    if isinstance(node, Struct):
        dropped = ("text", "stated", "lines", "facts", "layering")
        return (
            type(node).__name__,
            *(bare(getattr(node, name)) for name in node.__struct_fields__ if name not in dropped),
        )
    return node
