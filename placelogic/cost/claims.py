"""A claim about costs in sympy: what its names mean, and its two sides as formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice, product
from operator import eq, ge, gt, le, lt, ne

import sympy
from msgspec import Struct
from msgspec.structs import replace

from placelogic.cost.plain import MAX_CASES, cases, condition, differences, plain, too_many
from placelogic.cost.symbols import exact
from placelogic.cost.totals import Cost
from placelogic.problem import Problem, SpecError, closest
from placelogic.program.expr import Binary, Call, Compare, Expr, Name, Num, compute, number, operate, parts, show
from placelogic.source import Span

FUNCTIONS = ("states", "memory", "unit", "peak", "host", "traffic")
"""Held without activations, held, held with the gathered unit, the peak, host memory; sent. All of one device, shards
dividing evenly."""


class Sides(Struct, frozen=True):
    """Both sides over common sizes, `names`. `values`: those that a spec fixes. `divisors`: what the claim divides
    by, as it is written; a quotient may have cancelled it."""

    op: str
    left: sympy.Expr
    right: sympy.Expr
    values: Mapping[str, Fraction]
    names: tuple[str, ...]
    divisors: tuple[tuple[Expr, sympy.Expr], ...] = ()

    def parts(self) -> Iterator[tuple[tuple[Compare, ...], Compare]]:
        """The claim, told apart by cases. Raises NotArithmetic."""
        lefts, rights = list(cases(self.left)), list(cases(self.right))
        if len(lefts) * len(rights) > MAX_CASES:
            raise too_many(self.left, self.right)
        for (here, left), (there, right) in product(lefts, rights):
            conditions = tuple(condition(one) for one in (*here, *there) if one is not sympy.true)
            yield conditions, condition(_relation(self.op, left, right))

    @property
    def many(self) -> bool:
        """Whether it is likely to fall into too many cases."""
        kinds = (sympy.Max, sympy.Min, sympy.Piecewise)
        return any(2 ** len(side.atoms(*kinds)) > MAX_CASES for side in (self.left, self.right))

    def stronger(self) -> Iterator[tuple[tuple[Compare, ...], Compare]]:
        """Fewer cases, of a claim that implies this one: where it holds this one does. Raises NotArithmetic."""
        ways = [(self.left, self.right), (self.right, self.left)]
        ways = {"<": ways[:1], "<=": ways[:1], ">": ways[1:], ">=": ways[1:], "==": ways}.get(self.op, [])
        found = [one for small, big in ways for one in islice(differences(small, big), MAX_CASES + 1)]
        if not ways or len(found) > MAX_CASES:
            raise too_many(self.left, self.right)
        op = "<" if self.op in ("<", ">") else "<="
        for conditions, value in found:
            here = tuple(condition(one) for one in conditions if one is not sympy.true)
            yield here, Compare(op, plain(value), number(0))

    def nonzero(self, divisor: sympy.Expr) -> Iterator[tuple[tuple[Compare, ...], Compare]]:
        """That a divisor is not zero, told apart by cases. Raises NotArithmetic."""
        for here, value in cases(divisor):
            yield tuple(condition(one) for one in here if one is not sympy.true), Compare("!=", plain(value), number(0))

    def numbers(self, sizes: Mapping[str, int]) -> tuple[Fraction, Fraction]:
        """Both sides at these sizes."""
        at = {sympy.Symbol(name): exact(value) for name, value in {**self.values, **sizes}.items()}
        left, right = (expr.xreplace(at).doit() for expr in (self.left, self.right))
        return tuple(Fraction(int(side.p), int(side.q)) for side in (left, right))  # type: ignore[return-value]

    def holds_at(self, sizes: Mapping[str, int]) -> bool:
        """Whether the claim holds at these sizes."""
        return _HOLDS[self.op](*self.numbers(sizes))


_HOLDS = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}


def measured(claim: Compare) -> tuple[str, ...]:
    """The specs that a claim speaks of, in order."""
    return tuple(dict.fromkeys(call.argument for side in (claim.left, claim.right) for call in parts(side) if isinstance(call, Call)))


def sides(claim: Compare, costs: Mapping[str, Cost], span: Span) -> Sides:
    """Both sides. `costs`: of the specs it speaks of. Raises SpecError: PL201 for an unknown size, PL367
    where specs fix one size differently, PL363 for an unknown function."""
    values: dict[str, Fraction] = {}
    meanings: dict[str, sympy.Expr] = {}
    for cost in costs.values():
        for name, value in cost.values.items():
            if values.setdefault(name, value) != value:
                message = f"`{name}` is {values[name]} in one of these specs and {value} in another"
                raise SpecError(Problem("PL367", message, span, "compare specs in which it is the same, or open"))
        meanings |= cost.sizes.meanings

    used: set[str] = set()
    divisors: list[tuple[Expr, sympy.Expr]] = []

    def value(part: Num | Name | Call) -> sympy.Expr:
        match part:
            case Num(number):
                return exact(number)
            case Call(function, argument):
                found = _amount(function, costs[argument], span)
            case _:
                if part.name not in meanings:
                    hint = closest(part.name, meanings) or f"the sizes of these specs: {', '.join(sorted(meanings))}"
                    raise SpecError(Problem("PL201", f"`{part.name}` is not declared", span, hint))
                found = meanings[part.name]
        used.update(one.name for one in found.free_symbols)
        return found

    def combine(whole: Binary, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
        if whole.op == "/" and b == 0:
            message = f"`{show(whole.right)}` is zero, and divides"
            raise SpecError(Problem("PL401", message, span, "change the divisor"))
        if whole.op == "/" and not b.is_Number:
            divisors.append((whole.right, b))
        return operate(whole, a, b)

    left, right = (compute(side, value, combine) for side in (claim.left, claim.right))
    return Sides(claim.op, left, right, values, tuple(sorted(used)), tuple(divisors))


def rounded(cost: Cost) -> Cost:
    """With every shard as large as the largest one, in place of shards that divide evenly."""
    return replace(
        cost,
        held=tuple(replace(one, even=one.padded) for one in cost.held),
        transients=tuple(replace(one, bytes=one.padded_bytes) for one in cost.transients),
    )


def comparison(assumed: Compare, cost: Cost) -> Compare:
    """An assumption of a spec, over its symbols."""
    left, right = cost.sizes.read(assumed.left), cost.sizes.read(assumed.right)
    return Compare(assumed.op, plain(left), plain(right))


def _amount(function: str, cost: Cost, span: Span) -> sympy.Expr:
    match function:
        case "states":
            return cost.memory.states
        case "memory":
            return cost.memory.held
        case "unit":
            return cost.memory.with_unit
        case "peak":
            return cost.memory.peak
        case "host":
            return cost.memory.host
        case "traffic":
            return cost.traffic.sent
        case _:
            hint = closest(function, FUNCTIONS) or f"there are {', '.join(FUNCTIONS)}"
            raise SpecError(Problem("PL363", f"there is no cost `{function}`", span, hint))


def _relation(op: str, left: sympy.Expr, right: sympy.Expr) -> sympy.Basic:
    kinds = {"==": sympy.Eq, "!=": sympy.Ne, "<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt, ">=": sympy.Ge}
    return kinds[op](left, right, evaluate=False)
