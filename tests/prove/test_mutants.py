"""Some wrong transfer rules, each with a spec whose verdict gives it away.

`scripts/mutants.py` does this by the hundred; these few run with every test run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import placelogic
from placelogic.prove import kinds
from placelogic.prove.formula import TRUE
from placelogic.prove.kinds import REPLICATED, Kind, Moved
from placelogic.prove.ratio import ONE

VERDICTS = Path(__file__).parents[1] / "verdicts"
RIGHT = {name: getattr(kinds, name) for name in ("reduce", "gather", "route", "settle", "_spoil")}

reduce, gather, route, settle, spoil = RIGHT.values()
OTHER = {"sum": "mean", "mean": "sum"}


def scale(moved: Moved, factor: Any) -> Moved:
    return Moved(moved.kind, factor, moved.counted)


MUTANTS: dict[str, tuple[str, Callable[..., Any], str, str]] = {
    "a sum averages, a mean sums": (
        "reduce", lambda k, op, n, into: reduce(k, OTHER[op], n, into), "more/reductions", "share_by_sum"),
    "a mean of shares does not divide": (
        "reduce", lambda k, op, n, into: scale(reduce(k, op, n, into), ONE) if k.value == "partial" else reduce(k, op, n, into),
        "more/reductions", "share_by_mean_counted_together"),
    "a sum of copies counts them once": (
        "reduce", lambda k, op, n, into: scale(reduce(k, op, n, into), ONE) if k == REPLICATED else reduce(k, op, n, into),
        "more/reductions", "copy_summed_again"),
    "a mean of copies divides": (
        "reduce", lambda k, op, n, into: scale(reduce(k, op, n, into), ONE / n) if k == REPLICATED and op == "mean"
        else reduce(k, op, n, into), "more/reductions", "copy_averaged_again"),
    "pieces can be added": (
        "reduce", lambda k, op, n, into: Moved(k) if k.cut else reduce(k, op, n, into),
        "more/reductions", "pieces_averaged"),
    "a reduce-scatter leaves all of it": (
        "reduce", lambda k, op, n, into: reduce(k, op, n, None), "more/reductions", "scattered_and_summed_again"),
    "a reduction heals what was mixed": (
        "reduce", lambda k, op, n, into: reduce(Kind(k.value, k.root, k.cut), op, n, into), "cases/tied", "cut_before_summed"),
    "a gather leaves pieces": (
        "gather", lambda k, n: k, "cases/language_steps", "scatter_and_gather"),
    "a gather puts shares together": (
        "gather", lambda k, n: k if k.value == "partial" else gather(k, n),
        "more/pieces", "shares_gathered_then_averaged"),
    "a gather heals what was mixed": (
        "gather", lambda k, n: Kind(k.value, k.root) if k.mixed else gather(k, n),
        "more/pieces", "mixed_then_gathered"),
    "routing counts copies once": (
        "route", lambda k, n, owner: scale(route(k, n, owner), ONE), "cases/experts", "tokens_not_split"),
    "routing leaves copies whole": (
        "route", lambda k, n, owner: Moved(Kind(k.value), n, True) if k == REPLICATED else route(k, n, owner),
        "more/pieces", "routed_copies_divided"),
    "a share is cut when it is accumulated": (
        "settle", lambda k, room: Kind(k.value, k.root, room or k.cut), "more/cut_gradients", "whole_until_the_boundary"),
    "a copy stays whole in a cut buffer": (
        "settle", lambda k, room: k, "more/pieces", "copies_kept_in_shards"),
    "ruined at every size": (
        "_spoil", lambda k, when, fault: spoil(k, TRUE, fault), "more/pieces", "pieces_of_one_device"),
}  # fmt: skip


def outcome(stem: str, spec: str) -> tuple[str, tuple[str, ...]]:
    """The verdict, and the codes of what is wrong."""
    report = placelogic.check(VERDICTS / f"{stem}.place")
    (found,) = [one for one in report.specs if one.name == spec]
    return found.verdict, tuple(finding.code for finding in found.findings if finding.severity == "error")


@cache
def before(stem: str, spec: str) -> tuple[str, tuple[str, ...]]:
    return outcome(stem, spec)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, wrong, stem, spec = MUTANTS[name]
    right = before(stem, spec)
    monkeypatch.setattr(kinds, function, wrong)
    assert outcome(stem, spec) != right
