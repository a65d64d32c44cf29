"""What the solver is asked means what `holds` computes."""

from __future__ import annotations

import re

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placelogic.prove.formula import (
    FALSE,
    TRUE,
    And,
    Formula,
    Not,
    Or,
    Remainder,
    SumDiffers,
    at_least,
    both,
    differs,
    either,
    equal,
    holds,
    negate,
    smt,
    symbol,
    unquoted,
    variables,
)
from placelogic.prove.formula import test as condition
from placelogic.prove.ratio import ONE, Ratio, const, var

few = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = ("a", "mod", "x.dp")
ENVS = st.fixed_dictionaries({name: st.integers(1, 4) for name in NAMES})
OPS = ("=", "distinct", "<", "<=", ">", ">=")

_NUMBERS = st.fractions(-2, 2, max_denominator=3).map(const)
_NAMES = st.sampled_from(NAMES).map(var)
_POLYS = st.recursive(
    _NUMBERS | _NAMES, lambda p: st.builds(lambda x, y: x + y, p, p) | st.builds(lambda x, y: x * y, p, p), max_leaves=3
)
_SAFE = st.lists(st.sampled_from(NAMES), min_size=0, max_size=2).map(lambda names: _product(names))
RATIOS = st.builds(lambda n, d: n / d, _POLYS, _SAFE)


def _product(names: list[str]) -> Ratio:
    out = ONE
    for name in names:
        out = out * var(name)
    return out + (const(1) if names else const(0))


def _tests() -> st.SearchStrategy[Formula]:
    return st.builds(condition, st.sampled_from(OPS), RATIOS, RATIOS)


def _larger(parts: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    sums = st.builds(
        lambda cases, target: SumDiffers(tuple(cases), target), st.lists(st.tuples(parts, RATIOS), max_size=2), RATIOS
    )
    joined = st.lists(parts, max_size=2)
    return (
        st.builds(lambda ps: And(tuple(ps)), joined)
        | st.builds(lambda ps: Or(tuple(ps)), joined)
        | parts.map(Not)
        | sums
    )


FORMULAS = st.recursive(_tests(), _larger, max_leaves=4)


def solver_says(formula: Formula, env: dict[str, int]) -> bool:
    declared = "".join(f"(declare-const {symbol(name)} Int)" for name in env)
    fixed = "".join(f"(assert (= {symbol(name)} {value}))" for name, value in env.items())
    solver = z3.Solver()
    solver.from_string(f"{declared}{fixed}(assert {smt(formula)})")
    answer = solver.check()
    assert answer in (z3.sat, z3.unsat)
    return answer == z3.sat


@few
@given(FORMULAS, ENVS)
def test_the_solver_agrees(formula: Formula, env: dict[str, int]) -> None:
    assert solver_says(formula, env) == holds(formula, env)


@few
@given(st.integers(1, 3), ENVS)
def test_the_solver_agrees_on_remainders(shift: int, env: dict[str, int]) -> None:
    formula = Remainder("a", (var("mod") + const(shift)).num, var("x.dp").num)
    assert solver_says(formula, env) == holds(formula, env)


@few
@given(st.lists(FORMULAS, max_size=3), ENVS)
def test_joining_means_and_or(parts: list[Formula], env: dict[str, int]) -> None:
    assert holds(both(*parts), env) == all(holds(part, env) for part in parts)
    assert holds(either(*parts), env) == any(holds(part, env) for part in parts)


@few
@given(FORMULAS, ENVS)
def test_negation(formula: Formula, env: dict[str, int]) -> None:
    assert holds(negate(formula), env) != holds(formula, env)
    assert holds(negate(negate(formula)), env) == holds(formula, env)


@few
@given(st.lists(st.tuples(FORMULAS, RATIOS), max_size=3), RATIOS, ENVS)
def test_sums_are_decided_early_only_where_that_is_right(cases: list, target: Ratio, env: dict[str, int]) -> None:
    assert holds(differs(tuple(cases), target), env) == holds(SumDiffers(tuple(cases), target), env)


@few
@given(FORMULAS)
def test_whatever_the_text_names_is_declared(formula: Formula) -> None:
    named = {unquoted(symbol) for symbol in re.findall(r"\|([^|]+)\|", smt(formula))}
    assert named <= set(variables(formula)) <= set(NAMES)


def test_constants_are_decided_at_once() -> None:
    assert condition("<", const(1), const(2)) == TRUE
    assert condition("=", const(1), const(2)) == FALSE
    assert condition("=", var("a"), var("a")) == TRUE
    assert both() == TRUE and either() == FALSE
    assert both(TRUE, FALSE) == FALSE and either(FALSE, TRUE) == TRUE
    assert at_least(const(1), 2) == FALSE


def test_a_condition_on_one_size() -> None:
    formula = at_least(var("dp"), 2)
    assert [holds(formula, {"dp": n}) for n in (1, 2, 3)] == [False, True, True]
    assert holds(equal("dp", 3), {"dp": 3}) and not holds(equal("dp", 3), {"dp": 2})
    with pytest.raises(KeyError):
        holds(formula, {"tp": 2})
