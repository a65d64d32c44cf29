"""Sizes of a program as sympy symbols, expressions of the language as sympy expressions."""

from __future__ import annotations

import keyword
from fractions import Fraction

import sympy
from msgspec import Struct

from placelogic.program import expr as ex
from placelogic.program.program import Program


class Symbols(Struct, frozen=True):
    """`meanings`: what every name of the spec stands for, a symbol or an expression in symbols.
    `values`: the sizes that the spec fixes, by the names of their symbols."""

    meanings: dict[str, sympy.Expr]
    values: dict[str, Fraction]

    @classmethod
    def of(cls, program: Program) -> Symbols:
        """A size written as a number, or left open, is a symbol; one computed from others is written out."""
        defined = {let.name: let.value for let in program.lets}
        defined |= {atom.name: atom.size for atom in program.mesh.atoms}
        values: dict[str, Fraction] = {}
        meanings: dict[str, sympy.Expr] = {}

        def meaning(name: str) -> sympy.Expr:
            if name not in meanings:
                value = defined.get(name)
                if isinstance(value, ex.Num):
                    values[symbol(name).name] = value.value
                if value is None or isinstance(value, ex.Num):
                    meanings[name] = symbol(name)
                else:
                    meanings[name] = _convert(value, meaning)
            return meanings[name]

        for name in defined:
            meaning(name)
        for name, axes in program.mesh.views:
            meanings[name] = sympy.Mul(*map(meaning, axes))
        return cls(meanings, values)

    def read(self, expr: ex.Expr) -> sympy.Expr:
        return _convert(expr, lambda name: self.meanings.get(name, symbol(name)))

    def known(self, expr: sympy.Expr) -> Fraction | None:
        """The value, where the spec fixes all that it depends on."""
        found = at(expr, self.values)
        if found.free_symbols or not found.is_Rational:
            return None
        return Fraction(int(found.p), int(found.q))


def symbol(name: str) -> sympy.Symbol:
    """The symbol of a name. It has no assumptions, so that symbols made elsewhere are equal to it;
    words of Python get a trailing underscore, so that what is exported can be read back."""
    return sympy.Symbol(f"{name}_" if keyword.iskeyword(name) else name)


def at(expr: sympy.Expr, values: dict[str, Fraction] | dict[str, int]) -> sympy.Expr:
    """The expression with sizes filled in, by name."""
    return expr.xreplace({symbol(name): exact(value) for name, value in values.items()}).doit()


def exact(value: Fraction | int | float) -> sympy.Rational:
    number = Fraction(value)
    return sympy.Rational(number.numerator, number.denominator)


def _convert(expr: ex.Expr, meaning) -> sympy.Expr:
    def value(part: ex.Num | ex.Name | ex.Call) -> sympy.Expr:
        match part:
            case ex.Num(number):
                return exact(number)
            case ex.Name(name):
                return meaning(name)
            case _:
                raise ValueError("costs are no sizes")

    return ex.compute(expr, value)


def total(terms) -> sympy.Expr:
    return sympy.Add(*terms)


def largest(candidates) -> sympy.Expr:
    """The maximum; candidates that another one plainly covers for all positive sizes are left out."""
    kept: list[sympy.Expr] = []
    for one in candidates:
        if any(covers(other, one) for other in kept):
            continue
        kept = [other for other in kept if not covers(one, other)]
        kept.append(one)
    return sympy.Max(*kept, evaluate=False) if len(kept) > 1 else (kept[0] if kept else sympy.Integer(0))


def covers(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether a >= b is plain for all sizes of at least 1: every term of the difference is a product of
    things that are not negative. False says nothing."""
    difference = a - b
    return _all_positive(difference) or _all_positive(sympy.expand(difference))


def _all_positive(expr: sympy.Expr) -> bool:
    return all(_positive(term) for term in sympy.Add.make_args(expr))


def _positive(term: sympy.Expr) -> bool:
    """Never negative where sizes are at least 1: products and powers of sizes, what is rounded up, n - 1."""
    if term.is_number:
        return bool(term >= 0)
    if term.is_Symbol:
        return True
    if term.is_Mul:
        return all(map(_positive, term.args))
    if term.is_Pow:
        return _positive(term.base)
    if isinstance(term, sympy.ceiling | sympy.floor):
        return _positive(term.args[0])
    if isinstance(term, sympy.Max):
        return any(map(_positive, term.args))
    if isinstance(term, sympy.Min):
        return all(map(_positive, term.args))
    if term.is_Add and len(term.args) == 2 and term.args[0] == -1:
        return _at_least_one(term.args[1])
    return term.is_Add and _all_positive(term)


def _at_least_one(term: sympy.Expr) -> bool:
    """Products of sizes and whole numbers, with positive exponents."""
    if term.is_number:
        return bool(term >= 1)
    if term.is_Mul:
        return all(map(_at_least_one, term.args))
    if term.is_Pow:
        return term.exp.is_Integer and bool(term.exp > 0) and _at_least_one(term.base)
    return bool(term.is_Symbol)
