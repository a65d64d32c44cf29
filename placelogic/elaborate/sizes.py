"""Mesh axes, named products, lets and assumptions; what a name in an expression means.

Everything that leaves here is in atoms and lets: a view is replaced by the product of its atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct, field

from placelogic.elaborate.expand import product
from placelogic.elaborate.log import Item, Log
from placelogic.problem import closest
from placelogic.program import expr as ex
from placelogic.program.expr import Binary, Compare, Expr, Num
from placelogic.program.program import Assumption, Atom, Axes, Let, Mesh
from placelogic.source import NOWHERE, Span
from placelogic.syntax import ast

RESERVED = ("true", "false", "none", "tokens", "microbatches")


def check_name(name: str, what: str, item: Item, span: Span, log: Log) -> bool:
    """Whether a thing may have this name; logs if not."""
    if name in RESERVED:
        log.at(item, "PL211", f"`{name}` is a word of the language and cannot name {what}", span,
               "choose another name")  # fmt: skip
        return False
    return True


class Declared(Struct):
    """All names that stand for numbers. Filled by `declare.read_sizes`, then only read.
    `items`: the statement that declared a name. `dims`: dimensions of blocks that nothing gives a size."""

    log: Log
    atoms: dict[str, Atom] = field(default_factory=dict)
    views: dict[str, Axes] = field(default_factory=dict)
    lets: dict[str, Let] = field(default_factory=dict)
    assumptions: list[Assumption] = field(default_factory=list)
    constants: dict[str, Fraction] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    dims: dict[str, Expr] = field(default_factory=dict)

    def mesh(self) -> Mesh:
        return Mesh(tuple(self.atoms.values()), tuple(self.views.items()))

    # --- axes ---

    def product(self, ref: ast.AxisRef, item: Item) -> Axes:
        """The atoms of one axis reference, first factor slowest; logs what is unknown."""
        result: list[str] = []
        for name in ref.names:
            if name in self.atoms:
                found: Axes = (name,)
            elif name in self.views:
                found = self.views[name]
            else:
                hint = closest(name, [*self.atoms, *self.views])
                if name in self.lets:
                    hint = f"`{name}` is a size; declare the axis with `mesh {name}`"
                known = ", ".join([*self.atoms, *self.views])
                self.log.at(item, "PL200", f"there is no axis `{name}`", ref.span,
                            hint or (f"known axes: {known}" if known else "declare it with `mesh`"))  # fmt: skip
                continue
            self._append(found, result, ref, item)
        return tuple(result)

    def axes(self, refs: Sequence[ast.AxisRef], item: Item) -> Axes:
        """All atoms of a list of axes and products, in order."""
        result: list[str] = []
        for ref in refs:
            self._append(self.product(ref, item), result, ref, item)
        return tuple(result)

    def _append(self, found: Axes, result: list[str], ref: ast.AxisRef, item: Item) -> None:
        for atom in found:
            if atom in result:
                self.log.at(item, "PL314", f"axis `{atom}` is named twice here", ref.span, "name every axis once")
            else:
                result.append(atom)

    def size(self, axes: Axes) -> Fraction | None:
        """The number of devices along these atoms, where it is a constant."""
        result = Fraction(1)
        for axis in axes:
            if axis not in self.constants:
                return None
            result *= self.constants[axis]
        return result

    # --- expressions ---

    def expr(self, expr: Expr, item: Item, span: Span, *, tokens: bool = False) -> Expr:
        """The expression with views replaced by atoms; logs unknown names and constant zero divisors."""
        known = [*self.atoms, *self.views, *self.lets]
        for name in ex.names(expr):
            place = name.span if name.span != NOWHERE and item.use is None else span
            if name.name.split()[0] == ex.TOKENS:
                if not tokens:
                    self.log.at(item, "PL325", "`tokens`, the number of loss tokens of the step, can only scale "
                                "a gradient or a loss", place, "use it in `scale ... by`")  # fmt: skip
            elif name.name == "none":
                self.log.at(item, "PL304", "a number is needed here, not `none`", place, "give a number or a size")
            elif name.name not in known:
                self.log.at(item, "PL201", f"`{name.name}` is not declared", place,
                            closest(name.name, known) or f"`let {name.name}` declares a size")  # fmt: skip
        result = integral(ex.substitute(expr, {name: product(axes) for name, axes in self.views.items()}))
        self.check_arithmetic(result, item, span)
        return result

    def compare(self, condition: Compare, item: Item) -> Compare:
        return Compare(
            condition.op,
            self.expr(condition.left, item, condition.span),
            self.expr(condition.right, item, condition.span),
            condition.span,
        )

    def constant(self, expr: Expr) -> Fraction | None:
        try:
            return ex.evaluate(expr, self.constants)
        except (KeyError, ZeroDivisionError, ValueError):
            return None

    def positive(self, expr: Expr, what: str, item: Item, span: Span) -> None:
        """Logs a constant that is no positive whole number."""
        value = self.constant(expr)
        if value is not None:
            self.check_size(value, what, item, span)

    def check_size(self, value: Fraction, what: str, item: Item, span: Span) -> None:
        if value.denominator != 1 or value < 1:
            self.log.at(item, "PL400", f"{what} is {value}, and must be a whole number of at least 1", span,
                        "leave it open, or give it another value")  # fmt: skip

    def check_arithmetic(self, expr: Expr, item: Item, span: Span) -> None:
        for divisor in ex.divisors(expr):
            if self.constant(divisor) == 0:
                self.log.at(item, "PL401", f"`{ex.show(divisor)}` is zero, and divides", span,
                            "change the divisor")  # fmt: skip
        for part in ex.parts(expr):
            if isinstance(part, Binary) and part.op == "%":
                for side in (part.left, part.right):
                    value = self.constant(side)
                    if value is not None and value.denominator != 1:
                        self.log.at(item, "PL402", f"`{ex.show(part)}` takes a remainder of a fraction", span,
                                    "remainders are of whole numbers")  # fmt: skip


def integral(expr: Expr) -> Expr:
    """The same value without numbers that are fractions: what is printed reads back as it was."""

    def change(part: Expr) -> Expr:
        match part:
            case Num(value, span) if value.denominator != 1:
                return Binary("/", Num(Fraction(value.numerator), span), Num(Fraction(value.denominator), span), span)
            case _:
                return part

    return ex.changed(expr, change)
