"""A recorded step held against what the spec says of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Literal

from placelogic.frontends.live.events import Event, Fed
from placelogic.frontends.live.expected import Expected, Plan

Axes = frozenset[str]
Kind = Literal["missing", "extra", "other group", "other operation", "other size"]


@dataclass(frozen=True, slots=True)
class Key:
    """What can be told apart: an operation among so many devices along axes (atoms of the spec)."""

    operation: str
    axes: Axes
    members: int


@dataclass(frozen=True, slots=True)
class Row:
    """One key: bytes that the spec wants per step, bytes that were sent, in how many calls."""

    key: Key
    expected: int
    found: int
    calls: int


@dataclass(frozen=True, slots=True)
class Difference:
    """`weights`: groups it is about, where that can be told."""

    kind: Kind
    message: str
    weights: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """`notes` never make a run disagree."""

    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


def compare(plan: Plan, events: Sequence[Event], fed: Sequence[Fed], whole: Mapping[frozenset[int], Axes]) -> Found:
    """`whole`: every group of the mesh that this rank is in, by its ranks, in axes of the mesh."""
    placed = _Placed(plan, whole)
    counted, notes = _counted(plan, events, placed)
    rows = _rows(plan, counted)
    differences = [
        *_sums(plan, rows),
        *_operations(counted),
        *_transfers(plan, events, placed),
        *_norm(plan, events, placed),
        *_factors(plan, events, fed, placed),
    ]
    return Found(rows, tuple(differences), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Placed:
    plan: Plan
    whole: Mapping[frozenset[int], Axes]

    def key(self, event: Event) -> Key:
        """Ranks that are no group of the mesh are part of one: a pair of stages, half of the shards."""
        axes = event.axes
        if axes is None:
            around = [(len(ranks), axes) for ranks, axes in self.whole.items() if set(event.ranks) <= ranks]
            axes = tuple(min(around, key=lambda one: one[0])[1]) if around else ()
        return Key(event.operation, self.atoms(axes), len(event.ranks))

    def atoms(self, axes: Iterable[str]) -> Axes:
        atoms = (atom for axis in axes for atom in self.plan.meanings[axis])
        return frozenset(atom for atom in atoms if self.plan.sizes[atom] > 1)


def _counted(plan: Plan, events: Sequence[Event], placed: _Placed) -> tuple[list[tuple[Key, Event]], list[str]]:
    """The events that are about weights. What layers send to each other along axes that carry activations is
    not: the spec says nothing about it."""
    gathers = {_key(one, plan) for one in plan.expected if one.operation == "all-gather"}
    counted: list[tuple[Key, Event]] = []
    left: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        key = placed.key(event)
        if len(event.ranks) == 1:
            continue
        if event.operation in ("send", "receive") and event.purpose != "control":
            left[f"transfers over {_over(key.axes)}"].append(event)
            continue
        if event.purpose == "control":
            left["no floating-point numbers, or a barrier"].append(event)
        elif event.purpose == "scalar":
            left["single numbers, such as norms and losses"].append(event)
        elif event.again:
            left["the same reduction of an unchanged tensor once more; right, only costly"].append(event)
        elif event.purpose == "weights" or key in gathers:
            counted.append((key, event))
        elif event.operation == "broadcast":
            left["broadcasts in the forward pass, such as buffers"].append(event)
        elif key.axes & plan.carriers:
            left[f"activations over {_over(key.axes)}"].append(event)
        else:
            counted.append((key, event))
    notes = [
        f"not compared: {len(some)} {'call' if len(some) == 1 else 'calls'}, "
        f"{sum(one.bytes for one in some):,} bytes: {what}"
        for what, some in left.items()
    ]
    return _gathered_by_broadcast(plan, counted), notes


def _gathered_by_broadcast(plan: Plan, counted: list[tuple[Key, Event]]) -> list[tuple[Key, Event]]:
    """Where every owner broadcasts its part, that is an all-gather of the whole."""
    wanted = {_key(one, plan) for one in plan.expected if one.what == "updated params"}
    present = {key for key, _ in counted}
    result = []
    for key, event in counted:
        gather = replace(key, operation="all-gather")
        if event.operation == "broadcast" and gather in wanted and not {gather} & present:
            key = gather
        result.append((key, event))
    return result


def _key(one: Expected, plan: Plan) -> Key:
    return Key(one.operation, frozenset(axis for axis in one.axes if plan.sizes[axis] > 1), one.members)


def _rows(plan: Plan, counted: Sequence[tuple[Key, Event]]) -> tuple[Row, ...]:
    expected: dict[Key, int] = defaultdict(int)
    found: dict[Key, list[Event]] = defaultdict(list)
    for one in plan.expected:
        if one.operation != "send":
            expected[_key(one, plan)] += one.total
    for key, event in counted:
        found[key].append(event)
    return tuple(
        Row(key, expected[key], sum(event.bytes for event in found[key]), len(found[key]))
        for key in dict.fromkeys([*expected, *found])
    )


# --- sums of bytes ----------------------------------------------------------------------------------


def _sums(plan: Plan, rows: Sequence[Row]) -> list[Difference]:
    """Differences of bytes. What is missing here and too much there is one difference, not two."""
    less = [row for row in rows if row.found < row.expected]
    more = [row for row in rows if row.found > row.expected]
    result = []
    for short in list(less):
        for long in list(more):
            if long.found - long.expected != short.expected - short.found:
                continue
            kind: Kind | None = None
            if long.key.operation == short.key.operation:
                kind = "other group"
            elif long.key.axes == short.key.axes:
                kind = "other operation"
            if kind is not None:
                who = _who(plan, short)
                result.append(
                    Difference(
                        kind,
                        f"{_bytes(short.expected - short.found)}{_of(who)}: {_said(long.key)}, where the spec has "
                        f"{_said(short.key)}",
                        who,
                    )
                )
                less.remove(short)
                more.remove(long)
                break
    return result + [_short(plan, row) for row in less] + [_long(plan, row) for row in more]


def _short(plan: Plan, row: Row) -> Difference:
    who = _who(plan, row)
    missing = row.expected - row.found
    if row.found == 0:
        return Difference("missing", f"{_said(row.key)}{_what(plan, row)}: {_bytes(missing)}{_of(who)}", who)
    if who:
        return Difference(
            "missing", f"{_said(row.key)}: {_bytes(missing)} of {row.expected:,}, as much as{_of(who, '')}", who
        )
    return Difference("other size", f"{_said(row.key)}: {_bytes(row.found)}, {row.expected:,} expected", ())


def _long(plan: Plan, row: Row) -> Difference:
    who = _who(plan, row)
    if row.expected == 0:
        return Difference("extra", f"{_said(row.key)}: {_bytes(row.found)} in {_calls(row.calls)}", ())
    if row.found % row.expected == 0:
        times = row.found // row.expected
        return Difference("extra", f"{_said(row.key)}: {times} times the {row.expected:,} bytes expected", who)
    if who:
        more = row.found - row.expected
        return Difference("extra", f"{_said(row.key)}: {_bytes(more)} too much, as much as{_of(who, '')}", who)
    return Difference("other size", f"{_said(row.key)}: {_bytes(row.found)}, {row.expected:,} expected", ())


def _who(plan: Plan, row: Row) -> tuple[str, ...]:
    """The groups that the difference is as large as: all of them, one, or two; where several could be it,
    the first in the order of the spec."""
    amount = abs(row.found - row.expected)
    totals: dict[str, int] = defaultdict(int)
    for one in plan.expected:
        if _key(one, plan) == row.key:
            totals[one.weights] += one.total
    if amount == sum(totals.values()):
        return tuple(totals)
    for count in (1, 2):
        for some in combinations(totals, count):
            if sum(totals[name] for name in some) == amount:
                return some
    return ()


def _what(plan: Plan, row: Row) -> str:
    what = dict.fromkeys(one.what for one in plan.expected if _key(one, plan) == row.key)
    return f" of {', '.join(what)}"


# --- everything else --------------------------------------------------------------------------------


def _operations(counted: Sequence[tuple[Key, Event]]) -> list[Difference]:
    """Reductions that neither sum nor average."""
    found: dict[tuple[Key, str], int] = defaultdict(int)
    for key, event in counted:
        if event.op is not None and event.op not in ("sum", "avg", "premul_sum"):
            found[key, event.op] += event.bytes
    return [
        Difference("other operation", f"{_said(key)}: {_bytes(size)} reduced by {op}, no sum or mean", ())
        for (key, op), size in found.items()
    ]


def _transfers(plan: Plan, events: Sequence[Event], placed: _Placed) -> list[Difference]:
    """Between stages something must be sent; how much, the spec says only where it has layers."""
    sent = [event for event in events if event.operation in ("send", "receive") and event.purpose != "control"]
    axes = {placed.key(event).axes for event in sent}
    result = []
    if plan.stages is not None and frozenset({plan.stages}) not in axes:
        result.append(Difference("missing", f"transfers between the stages over {plan.stages}", ()))
    for along in axes:
        if not along or not along <= plan.carriers:
            count = sum(placed.key(event).axes == along for event in sent)
            result.append(Difference("extra", f"{_calls(count)} from rank to rank over {_over(along)}", ()))
    return result


def _norm(plan: Plan, events: Sequence[Event], placed: _Placed) -> list[Difference]:
    """A norm for clipping is summed over every axis that cuts parameters."""
    if not plan.clips:
        return []
    seen: set[str] = set()
    for event in events:
        if event.purpose == "scalar" and event.phase != "forward" and event.operation in ("all-reduce", "all-gather"):
            seen |= placed.key(event).axes
    return [
        Difference("missing", f"the sum of squares for clipping over {axis}", ()) for axis in sorted(plan.norm - seen)
    ]


def _factors(plan: Plan, events: Sequence[Event], fed: Sequence[Fed], placed: _Placed) -> list[Difference]:
    """Whether gradients are divided as often as the spec says, between the backward pass and the update."""
    wrong: dict[tuple[Axes, Fraction, Fraction, tuple[str, ...]], int] = defaultdict(int)
    for one in fed:
        axes, factor = _history(one, events, placed)
        if factor is None:
            continue
        exact = [scaling for scaling in plan.scalings if scaling.axes == axes]
        # Some reductions come when the optimizer is already running, as those of DTensor do.
        candidates = exact or [scaling for scaling in plan.scalings if scaling.axes > axes]
        allowed = {value for scaling in candidates for value in (scaling.factor, scaling.means)}
        if candidates and factor not in allowed:
            who = tuple(scaling.weights for scaling in candidates)
            wrong[axes, factor, candidates[0].factor, who] += one.elements
    return [
        Difference(
            "other operation",
            f"gradients of {count:,} elements, reduced over {_over(axes)}, are multiplied by {factor}, the spec "
            f"multiplies by {wanted}" + (": a sum where the spec has a mean" if factor == 1 and wanted < 1 else ""),
            who,
        )
        for (axes, factor, wanted, who), count in wrong.items()
    ]  # fmt: skip


def _history(one: Fed, events: Sequence[Event], placed: _Placed) -> tuple[Axes, Fraction | None]:
    """The axes it was reduced over, and what it was multiplied by all in all; None where that is unknown."""
    axes: set[str] = set()
    factor = one.factor
    parent = one.parent
    while parent is not None and factor is not None:
        event = events[parent]
        if event.op is not None:
            axes |= placed.key(event).axes
            if event.op not in ("sum", "avg") or event.factor is None:
                return frozenset(axes), None
            factor *= event.factor / (len(event.ranks) if event.op == "avg" else 1)
        parent = event.parent
    return frozenset(axes), factor


# --- words ------------------------------------------------------------------------------------------


def _said(key: Key) -> str:
    return f"{key.operation} over {_over(key.axes)}" if key.axes else f"{key.operation} among {key.members} ranks"


def _over(axes: Iterable[str]) -> str:
    return ", ".join(sorted(axes)) or "no axis"


def _of(who: Sequence[str], before: str = " for") -> str:
    return f"{before} " + ", ".join(f"`{name}`" for name in who) if who else ""


def _bytes(count: int) -> str:
    return f"{count:,} bytes"


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"
