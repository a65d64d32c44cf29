"""Every cell of the transfer table of docs/semantics.md, for every size and at size 1."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from placelogic.prove import kinds
from placelogic.prove.formula import FALSE, at_least, equal, holds
from placelogic.prove.kinds import PARTIAL, REPLICATED, Kind, Moved
from placelogic.prove.ratio import ONE, Ratio, const, var

N = var("N")
ROWS = (("in", ("a",)),)
COLUMNS = (("out", ("a",)),)
OWN = kinds.shard(ROWS)
ROOT = Kind("root", 0)
MIXED = kinds.spoil(REPLICATED, at_least(N, 2), "was ruined before")

Rule = Callable[[Kind, Ratio], Moved]


def reduce(op: str, into: kinds.Stack | None = None) -> Rule:
    return lambda kind, size: kinds.reduce(kind, op, size, into)  # type: ignore[arg-type]


def route(kind: Kind, size: Ratio) -> Moved:
    return kinds.route(kind, size, ROWS)


RULES: dict[str, Rule] = {
    "sum": reduce("sum"),
    "mean": reduce("mean"),
    "sum into S": reduce("sum", ROWS),
    "mean into S": reduce("mean", ROWS),
    "gather": lambda kind, size: kinds.Moved(kinds.gather(kind, size)),
    "route": route,
}

RUINED = "ruined from two devices on"

# (rule, kind before) -> (value, cut, factor, whether the factor counts copies), or RUINED
TABLE: dict[tuple[str, Kind], tuple[str, kinds.Stack | None, Ratio, bool] | str] = {
    ("sum", PARTIAL): ("replicated", None, ONE, False),
    ("sum", REPLICATED): ("replicated", None, N, True),
    ("sum", OWN): RUINED,
    ("sum", ROOT): ("root", None, N, True),
    ("mean", PARTIAL): ("replicated", None, ONE / N, False),
    ("mean", REPLICATED): ("replicated", None, ONE, False),
    ("mean", OWN): RUINED,
    ("mean", ROOT): ("root", None, ONE, False),
    ("sum into S", PARTIAL): ("replicated", ROWS, ONE, False),
    ("sum into S", REPLICATED): ("replicated", ROWS, N, True),
    ("sum into S", OWN): RUINED,
    ("sum into S", ROOT): ("root", ROWS, N, True),
    ("mean into S", PARTIAL): ("replicated", ROWS, ONE / N, False),
    ("mean into S", REPLICATED): ("replicated", ROWS, ONE, False),
    ("mean into S", OWN): RUINED,
    ("mean into S", ROOT): ("root", ROWS, ONE, False),
    ("gather", PARTIAL): RUINED,
    ("gather", REPLICATED): ("replicated", None, ONE, False),
    ("gather", OWN): ("replicated", None, ONE, False),
    ("gather", ROOT): ("root", None, ONE, False),
    ("route", PARTIAL): ("replicated", ROWS, ONE, False),
    ("route", REPLICATED): ("replicated", ROWS, N, True),
    ("route", ROOT): ("root", ROWS, N, True),
}


@pytest.mark.parametrize(("rule", "kind"), TABLE, ids=lambda part: part if isinstance(part, str) else part.value)
def test_cell(rule: str, kind: Kind) -> None:
    moved = RULES[rule](kind, N)
    wanted = TABLE[rule, kind]
    if wanted == RUINED:
        assert moved.kind.mixed and moved.kind.fault
        assert moved.kind.ruined == at_least(N, 2)
        assert (moved.factor, moved.counted) == (ONE, False)
    else:
        assert (moved.kind.value, moved.kind.cut, moved.factor, moved.counted) == wanted
        assert not moved.kind.mixed


def test_every_cell_is_tested() -> None:
    """Routing a value that is cut already does not occur: it is the first thing that happens."""
    cells = {(rule, kind) for rule in RULES for kind in (PARTIAL, REPLICATED, OWN, ROOT)}
    assert cells - set(TABLE) == {("route", OWN)}


ELSEWHERE = equal("D", 2)
"""Sizes of another axis, at which a value may be ruined along this one."""


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", [PARTIAL, REPLICATED, OWN, ROOT], ids=["partial", "replicated", "shard", "root"])
def test_what_is_mixed_stays_mixed(rule: str, kind: Kind) -> None:
    """At the sizes where it is; at the others the rule acts as on any value."""
    right = RULES[rule](kind, N)
    moved = RULES[rule](kinds.spoil(kind, ELSEWHERE, "was ruined before"), N)
    assert (moved.factor, moved.counted) == (right.factor, right.counted)
    assert (moved.kind.value, moved.kind.root, moved.kind.cut) == (right.kind.value, right.kind.root, right.kind.cut)
    assert moved.kind.fault == "was ruined before"
    for n, d in ((1, 1), (1, 2), (2, 1), (2, 2)):
        here = {"N": n, "D": d}
        assert holds(moved.kind.ruined, here) == (d == 2 or holds(right.kind.ruined, here))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", [PARTIAL, REPLICATED, OWN, ROOT], ids=["partial", "replicated", "shard", "root"])
def test_at_size_1_every_rule_is_the_identity(rule: str, kind: Kind) -> None:
    here = {"N": 1}
    moved = RULES[rule](kind, N)
    assert moved.factor.at(here) == 1
    assert not holds(moved.kind.ruined, here)
    fixed = RULES[rule](kind, const(1))
    assert fixed.factor == ONE
    assert not fixed.kind.mixed


def test_the_root_is_kept() -> None:
    third = Kind("root", 2)
    for rule in RULES.values():
        assert rule(third, N).kind.root == 2


# --- accumulating into a buffer -------------------------------------------------------------


def test_a_copy_is_cut_when_it_is_accumulated_and_a_share_stays_whole() -> None:
    assert kinds.settle(REPLICATED, ROWS) == OWN
    assert kinds.settle(ROOT, ROWS) == Kind("root", 0, ROWS)
    assert kinds.settle(PARTIAL, ROWS) == PARTIAL


def test_what_is_cut_already_keeps_its_cut() -> None:
    assert kinds.settle(OWN, COLUMNS) == OWN


def test_a_buffer_with_room_for_all_cuts_nothing() -> None:
    for kind in (PARTIAL, REPLICATED, OWN, ROOT, MIXED):
        assert kinds.settle(kind, None) == kind


def test_accumulating_does_not_heal() -> None:
    settled = kinds.settle(MIXED, ROWS)
    assert (settled.cut, settled.ruined) == (ROWS, MIXED.ruined)


# --- spoiling -------------------------------------------------------------------------------


def test_the_first_fault_is_the_cause() -> None:
    twice = kinds.spoil(MIXED, equal("N", 7), "another")
    assert twice == MIXED


def test_a_fault_at_no_size_is_none() -> None:
    assert kinds.spoil(REPLICATED, FALSE, "never") == REPLICATED
    assert kinds.reduce(OWN, "sum", ONE, None).kind == OWN
