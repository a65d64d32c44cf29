"""Formulas in LaTeX, with the field's symbols.

An axis stands for its size, and is written N with its name as index (`dp` is N_{dp}, `N` is N); `P`,
`Psi` and `params` are Psi; names of Greek letters are these letters; other long names are upright.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy
from sympy.printing.latex import LatexPrinter, tex_greek_dictionary, translate

from placelogic.io import quoting


class Writer(LatexPrinter):
    """sympy's printer, with the field's symbols."""

    def __init__(self, axes: Iterable[str] = ()) -> None:
        super().__init__({"fold_short_frac": False})
        self._axes = frozenset(axes)

    def _print_Symbol(self, expr: sympy.Symbol, style: str = "plain") -> str:
        return letter(expr.name, axis=expr.name in self._axes)

    def _print_Max(self, expr: sympy.Max) -> str:
        return rf"\max\left({', '.join(map(self._print, expr.args))}\right)"

    def _print_Min(self, expr: sympy.Min) -> str:
        return rf"\min\left({', '.join(map(self._print, expr.args))}\right)"


def letter(name: str, *, axis: bool = False) -> str:
    """The symbol of a size."""
    plain = name.rstrip("_")
    if axis and plain != "N":
        return f"N_{{{quoting.latex(plain)}}}"
    if plain in ("P", "Psi", "params"):
        return r"\Psi"
    if len(plain) == 1:
        return plain
    greek = translate(plain)
    if plain.lower() in tex_greek_dictionary or greek != plain:
        return greek if greek.startswith("\\") else rf"\mathrm{{{greek}}}"
    return rf"\mathrm{{{quoting.latex(plain)}}}"


def inline(name: str, expr: sympy.Expr, axes: Iterable[str] = ()) -> str:
    """For notebooks."""
    return rf"$\displaystyle {name} = {Writer(axes).doprint(expr)}$"
