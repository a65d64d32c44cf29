"""Sizes as the solver sees them: which are open, what is known of them, expressions over them."""

from __future__ import annotations

from msgspec import Struct, field

from placelogic.problem import Problem, SpecError
from placelogic.program.expr import (
    TOKENS,
    Binary,
    Call,
    Compare,
    Expr,
    Name,
    Num,
    compute,
    divisors,
    names,
    operate,
    show,
)
from placelogic.program.program import Axes, Program
from placelogic.prove.formula import FALSE, TRUE, Formula, Remainder, Test, at_least, both, either, made, negate, test
from placelogic.prove.ratio import ONE, ONE_POLY, Ratio, TooLarge, const, product, var
from placelogic.prove.solver import Named
from placelogic.prove.written import Written
from placelogic.source import Span

PER_ITEM = "tokens.per.item"
"""The variable for the loss tokens of one work item, where tokens are even."""

TURN = "m."
"""The variable for the micro-batch of a work item, from 1 to M."""

MICROBATCHES = "microbatches."
"""The variable for M where the spec gives it by an expression, without a name."""

_OPS = {"==": "=", "!=": "distinct", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Divisor(Struct, frozen=True):
    """An expression that must differ from zero at every allowed size."""

    value: Ratio
    text: str
    span: Span


class Sizes(Struct):
    """Built once per program. `values`: name -> its ratio; `background`: facts that are no
    assumptions (sizes are positive, remainders); `open`: variables that a mesh must fix."""

    values: dict[str, Ratio] = field(default_factory=dict)
    background: list[Formula] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    divisors: list[Divisor] = field(default_factory=list)
    whole: list[Named] = field(default_factory=list)
    axis_names: tuple[str, ...] = ()
    microbatches: Ratio = ONE
    texts: dict[str, str] = field(default_factory=dict)
    """Internal variables, as they were written."""
    taken: list[Formula] = field(default_factory=list)
    """What the walk through a program left out because its normal form is false. The questions as they stand (raw.py)
    ask whether that is so."""
    _remainders: dict[tuple, str] = field(default_factory=dict)

    def size(self, axis: str) -> Ratio:
        return self.values[axis]

    def product(self, axes: Axes) -> Ratio:
        return product([self.values[axis] for axis in axes])

    def ends(self, axis: str) -> Ratio:
        """How many devices the first and the last stage of an axis are: 1 at size 1, else 2."""
        size = self.values[axis]
        if size.constant is not None:
            return _made(const(min(int(size.constant), 2)), "ends", size)
        ends = var(f"ends.{axis}")
        fact = either(
            both(test("=", size, ONE), test("=", ends, ONE)),
            both(test(">=", size, const(2)), test("=", ends, const(2))),
        )
        if fact not in self.background:
            self.background.append(fact)
        return ends

    def indicator(self, name: str, condition: Formula) -> Ratio:
        """1 where the condition holds, else 0."""
        if condition in (TRUE, FALSE):
            return _made(const(1 if condition == TRUE else 0), "indicator", condition)
        flag = var(name)
        fact = either(both(condition, test("=", flag, ONE)), both(negate(condition), test("=", flag, const(0))))
        if fact not in self.background:
            self.background.append(fact)
        return flag

    def never(self, condition: Formula) -> bool:
        """Whether it is seen to hold nowhere, so that it can be left out."""
        if condition != FALSE:
            return False
        if condition.raw is not None:
            self.taken.append(condition)
        return True

    def always(self, condition: Formula) -> bool:
        """Whether it is seen to hold everywhere."""
        return self.never(negate(condition))

    def equal(self, one: Ratio, other: Ratio) -> bool:
        """Whether two factors are seen to be equal at all sizes."""
        return one == other and self.never(made(FALSE, "distinct", one, other))

    def ratio(self, expr: Expr) -> Ratio:
        """The normal form. Records divisors met. Raises SpecError for arithmetic without meaning, or
        too large."""
        try:
            return self._ratio(expr)
        except TooLarge:
            raise SpecError(_too_large(expr)) from None

    def _ratio(self, expr: Expr) -> Ratio:
        def value(part: Num | Name | Call) -> Ratio:
            match part:
                case Num(number):
                    return const(number)
                case Name(name):
                    return self.values[name]
                case _:
                    raise ValueError("claims have no size")

        def combine(whole: Binary, a: Ratio, b: Ratio) -> Ratio:
            if whole.op == "%":
                return self._remainder(a, b, whole)
            if whole.op == "/" and not b.num:
                raise SpecError(_zero(whole))
            return operate(whole, a, b)

        return compute(expr, value, combine)

    def condition(self, compare: Compare) -> Formula:
        return test(_OPS[compare.op], self.ratio(compare.left), self.ratio(compare.right))  # type: ignore[arg-type]

    def need_divisors(self, expr: Expr | Compare) -> None:
        """Record what this expression divides by, where it could be zero."""
        for divisor in divisors(expr):
            value = self.ratio(divisor)
            if not value.num:
                raise SpecError(_zero(divisor))
            may_vanish = any(name in self._remainders.values() for name in value.variables)
            if not value.monomial or may_vanish:
                self.divisors.append(Divisor(value, show(divisor), divisor.span))
            else:
                self.taken.append(made(FALSE, "=", value, const(0)))

    def _remainder(self, a: Ratio, b: Ratio, expr: Expr) -> Ratio:
        if not b.num:
            raise SpecError(_zero(expr))
        if a.den != ONE_POLY or b.den != ONE_POLY:
            raise SpecError(
                Problem(
                    "PL402",
                    f"`{show(expr)}` takes the remainder of something that need not be a whole number",
                    expr.span,
                    "use % between whole numbers only",
                )
            )
        self.taken += [negate(made(TRUE, "whole", part)) for part in (a, b)]
        rest = _made(self._rest(a, b), "%", a, b)
        if rest.constant is None:
            self.texts.setdefault(rest.num[0][0][0][0], f"({show(expr)})")
        return rest

    def whole_number(self, value: Ratio) -> Formula:
        """Where the value is one."""
        return made(test("=", self._rest(Ratio(value.num), Ratio(value.den)), const(0)), "whole", value)

    def _rest(self, a: Ratio, b: Ratio) -> Ratio:
        if a.constant is not None and b.constant is not None:
            return const(a.constant % b.constant)
        key = (a, b)
        if key not in self._remainders:
            name = f"rem.{len(self._remainders)}"
            self._remainders[key] = name
            self.background.append(Remainder(name, a.num, b.num))
        return var(self._remainders[key])

    def declare(self, name: str) -> Ratio:
        """A fresh open positive integer."""
        variable = var(name)
        self.open.append(name)
        self.background.append(at_least(variable, 1))
        return variable

    def define(self, name: str, value: Ratio, text: str) -> Ratio:
        """A count with this value: a constant, an open size, or a variable tied to it, under the
        assumption (printed) that the value is a whole number."""
        if value.constant is not None or value in (var(name) for name in self.open):
            return value
        variable = var(name)
        self.background.append(at_least(variable, 1))
        self.whole.append(Named(f"{text} is a whole number", Test("=", variable - value)))
        return variable


def _made(value: Ratio, op: str, *parts: object) -> Ratio:
    return Ratio(value.num, value.den, Written(op, parts))


def _too_large(expr: Expr) -> Problem:
    shown = show(expr)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return Problem(
        "PL406", f"`{shown}` multiplies out to more than can be handled", expr.span, "use fewer and smaller terms"
    )


def _zero(expr: Expr) -> Problem:
    return Problem("PL401", f"`{show(expr)}` divides by zero", expr.span, "divide by something that is never zero")


def sizes_of(program: Program) -> tuple[Sizes, tuple[Named, ...]]:
    """All sizes of a program and its assumptions. Raises SpecError for arithmetic without meaning."""
    sizes = Sizes(axis_names=program.mesh.axes)
    pending = {let.name: let for let in program.lets}

    def resolve(expr: Expr) -> None:
        """Lets may use later ones (and axes): fill in what this expression needs first."""
        for name in names(expr):
            if name.name in pending:
                let = pending.pop(name.name)
                if let.value is None:
                    sizes.values[let.name] = sizes.declare(let.name)
                else:
                    resolve(let.value)
                    sizes.values[let.name] = sizes.ratio(let.value)

    for atom in program.mesh.atoms:
        if atom.size is None:
            sizes.values[atom.name] = sizes.declare(atom.name)
    for atom in program.mesh.atoms:
        if atom.size is not None:
            resolve(atom.size)
            sizes.values[atom.name] = sizes.define(atom.name, sizes.ratio(atom.size), show(atom.size))
    for name, axes in program.mesh.views:
        sizes.values[name] = sizes.product(axes)
    for let in program.lets:
        resolve(Name(let.name))
    count = program.work.microbatches
    if isinstance(count, Name) and count.name not in sizes.values:
        sizes.values[count.name] = sizes.declare(count.name)
    sizes.microbatches = sizes.define(MICROBATCHES, sizes.ratio(count), show(count))
    turn, last = var(TURN), sizes.microbatches
    sizes.background.append(made(TRUE, "and", test(">=", turn, ONE), test("<=", turn, last)))
    sizes.values[TOKENS] = sizes.declare(PER_ITEM) * sizes.product(program.work.split_axes) * sizes.microbatches
    for let in program.lets:
        if let.value is not None:
            sizes.need_divisors(let.value)
    for atom in program.mesh.atoms:
        if atom.size is not None:
            sizes.need_divisors(atom.size)
    sizes.need_divisors(count)
    named = list(sizes.whole)
    for assumption in program.assumptions:
        sizes.need_divisors(assumption.condition)
        named.append(Named(assumption.text, sizes.condition(assumption.condition)))
    return sizes, tuple(named)
