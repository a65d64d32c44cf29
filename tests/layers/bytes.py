"""Bytes and messages of layers as sympy expressions, to compare them with published forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from string import ascii_letters

import sympy

from placelogic.elaborate import elaborate_file
from placelogic.layers.derive import complete
from placelogic.layers.saved import Saved, saved
from placelogic.layers.sent import Sent, sent
from placelogic.problem import SpecError
from placelogic.program.expr import Expr, show
from placelogic.program.program import Program
from placelogic.syntax.parse import parse

WIDTHS = {"compute": 2, "mask": 1, "softmax": 4}
"""Bytes of an element in mixed precision; row statistics are left out, as in the published forms."""


def program_of(text: str) -> Program:
    """The program with its plan. Raises SpecError."""
    (spec,) = elaborate_file(parse(text, "layers.place"), {})
    if spec.program is None:
        raise SpecError(*spec.problems)
    return complete(spec.program)


def size(program: Program, expr: Expr) -> sympy.Expr:
    found = sympy.sympify(show(expr), {name: sympy.Symbol(name) for name in names(program)}, rational=True)
    values = {sympy.Symbol(let.name): size(program, let.value) for let in program.lets if let.value is not None}
    return found.subs(values)


def names(program: Program) -> list[str]:
    return [*program.mesh.axes, *(let.name for let in program.lets)]


def elements(program: Program, one: Saved | Sent) -> sympy.Expr:
    """Of one array on one device: every axis divides the dimension that it cuts."""
    assert program.layers is not None
    found = sympy.Mul(*(size(program, program.layers.sizes[dim]) for dim in one.dims))
    if one.share is not None:
        found *= size(program, one.share)
    return found / sympy.Mul(*(sympy.Symbol(axis) for axis in one.cut))


def kept(text: str, block: str = "layer", region: int | None = None) -> sympy.Expr:
    """Bytes that one layer keeps, or that exist while a region of it runs again."""
    program = program_of(text)
    plan = program.layering.plan
    found = [one for one in saved(program, plan) if one.block == block and one.region == region and one.width in WIDTHS]
    return sympy.simplify(sum(elements(program, one) * WIDTHS[one.width] for one in found))


def messages(text: str, block: str = "layer") -> Mapping[tuple[str, str, str], sympy.Expr]:
    """(pass, kind, axis) -> elements of all such messages of one layer and micro-batch."""
    program = program_of(text)
    found: dict[tuple[str, str, str], sympy.Expr] = {}
    for one in sent(program, program.layering.plan):
        if one.block == block:
            key = (one.when, one.kind, "*".join(one.axes))
            found[key] = sympy.simplify(found.get(key, 0) + elements(program, one))
    return found


def count(text: str, block: str = "layer") -> Counter[tuple[str, str, str]]:
    program = program_of(text)
    return Counter((one.when, one.kind, "*".join(one.axes)) for one in sent(program, program.layering.plan) if one.block == block)


def same(one: sympy.Expr, other: str) -> bool:
    """Whether a formula is the published one, in letters."""
    published = sympy.sympify(other, {letter: sympy.Symbol(letter) for letter in ascii_letters}, rational=True)
    return sympy.simplify(one - published) == 0
