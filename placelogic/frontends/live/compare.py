"""A recorded step held against what the spec says of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from msgspec.structs import replace

from placelogic.frontends.live import checks
from placelogic.frontends.live.events import Event, Fed
from placelogic.frontends.live.expected import Plan
from placelogic.frontends.live.keys import (
    Axes,
    Difference,
    Found,
    Key,
    Keys,
    Kind,
    Row,
    about,
    in_bytes,
    in_calls,
    key_of,
    over,
    said,
)


def compare(plan: Plan, events: Sequence[Event], fed: Sequence[Fed], whole: Mapping[frozenset[int], Axes]) -> Found:
    """`whole`: every group of the mesh that this rank is in, by its ranks, in axes of the mesh."""
    placed = Keys(plan, whole)
    counted, notes = _counted(plan, events, fed, placed)
    rows = _rows(plan, counted)
    notes += [
        f"{said(row.key)}: {row.expected - row.found:,} bytes less than with a gather in every micro-batch: "
        "the pipeline keeps what is gathered"
        for row in rows
        if row.found < row.expected and _kept(plan, row)
    ]
    differences = [
        *_sums(plan, rows),
        *checks.operations(counted),
        *checks.transfers(plan, events, placed),
        *checks.norm(plan, events, placed),
        *checks.factors(plan, events, fed, placed),
    ]
    return Found(rows, tuple(differences), (*notes, *checks.unknown(events, fed, placed)))


def _counted(
    plan: Plan, events: Sequence[Event], fed: Sequence[Fed], placed: Keys
) -> tuple[list[tuple[Key, Event]], list[str]]:
    """The events that are about weights. What layers send to each other along axes that carry activations is
    not: the spec says nothing about it."""
    gathers = {key_of(one, plan) for one in plan.expected if one.operation == "all-gather"}
    counted: list[tuple[Key, Event]] = []
    gradients = _gradients(events, fed)
    left: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        key = placed.key(event)
        if len(event.ranks) == 1:
            continue
        if event.operation in ("send", "receive") and event.purpose != "control":
            left[f"transfers over {over(key.axes)}"].append(event)
            continue
        if event.purpose == "control":
            left["no floating-point numbers, or a barrier"].append(event)
        elif event.purpose == "scalar" and event.order not in gradients:
            left["single numbers, such as norms and losses"].append(event)
        elif event.again:
            left["the same reduction of an unchanged tensor once more; right, only costly"].append(event)
        elif event.purpose in ("weights", "scalar") or key in gathers:
            counted.append((key, event))
        elif event.operation == "broadcast":
            left["broadcasts in the forward pass, such as buffers"].append(event)
        elif key.axes & plan.carriers:
            left[f"activations over {over(key.axes)}"].append(event)
        else:
            counted.append((key, event))
    notes = [
        f"not compared: {len(some)} {'call' if len(some) == 1 else 'calls'}, "
        f"{sum(one.bytes for one in some):,} bytes: {what}"
        for what, some in left.items()
    ]
    return _gathered_by_broadcast(plan, counted), notes


def _gradients(events: Sequence[Event], fed: Sequence[Fed]) -> set[int]:
    """Events that gradients came out of on their way to the optimizer."""
    found: set[int] = set()
    for one in fed:
        parent = one.parent
        while parent is not None and parent not in found:
            found.add(parent)
            parent = events[parent].parent
    return found


def _gathered_by_broadcast(plan: Plan, counted: list[tuple[Key, Event]]) -> list[tuple[Key, Event]]:
    """Where every owner broadcasts its part, that is an all-gather of the whole."""
    wanted = {key_of(one, plan) for one in plan.expected if one.what == "updated params"}
    present = {key for key, _ in counted}
    result = []
    for key, event in counted:
        gather = replace(key, operation="all-gather")
        if event.operation == "broadcast" and gather in wanted and not {gather} & present:
            key = gather
        result.append((key, event))
    return result


def _rows(plan: Plan, counted: Sequence[tuple[Key, Event]]) -> tuple[Row, ...]:
    expected: dict[Key, int] = defaultdict(int)
    found: dict[Key, list[Event]] = defaultdict(list)
    for one in plan.expected:
        if one.operation != "send":
            expected[key_of(one, plan)] += one.total
    for key, event in counted:
        found[key].append(event)
    return tuple(
        Row(key, expected[key], sum(event.bytes for event in found[key]), len(found[key]))
        for key in dict.fromkeys([*expected, *found])
    )


# --- sums of bytes ----------------------------------------------------------------------------------


def _sums(plan: Plan, rows: Sequence[Row]) -> list[Difference]:
    """Differences of bytes. What is missing here and too much there is one difference, not two."""
    less = [row for row in rows if row.found < row.expected and not _kept(plan, row)]
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
                        f"{in_bytes(short.expected - short.found)}{about(who)}: {said(long.key)}, where the spec has "
                        f"{said(short.key)}",
                        who,
                    )
                )
                less.remove(short)
                more.remove(long)
                break
    return result + [_short(plan, row) for row in less] + [_long(plan, row) for row in more]


def _kept(plan: Plan, row: Row) -> bool:
    """Whether it is only that a pipeline keeps gathered parameters from one micro-batch to the next: how often
    depends on the schedule, and is no matter of right or wrong."""
    return plan.stages is not None and _gathered_once(plan, row)


def _gathered_once(plan: Plan, row: Row) -> bool:
    """Whether parameters were gathered less often than the spec says, but as many as all of them, once."""
    items = [one for one in plan.expected if key_of(one, plan) == row.key]
    once = sum({(one.weights, one.what): one.bytes for one in items if "forward" in one.what}.values())
    gathers = all(one.operation == "all-gather" and one.what.startswith("params for") for one in items)
    return gathers and 0 < once <= row.found < row.expected


def _short(plan: Plan, row: Row) -> Difference:
    who = _who(plan, row)
    missing = row.expected - row.found
    if row.found == 0:
        return Difference("missing", f"{said(row.key)}{_what(plan, row)}: {in_bytes(missing)}{about(who)}", who)
    hint = "; say `reshard_after_forward false` where they stay gathered" if _gathered_once(plan, row) else ""
    if who:
        message = f"{said(row.key)}: {in_bytes(missing)} of {row.expected:,}, as much as{about(who, '')}"
        return Difference("missing", message + hint, who)
    if row.expected % row.found == 0:
        message = f"{said(row.key)}: {in_bytes(row.found)}, {row.expected // row.found} times as much is expected"
        return Difference("missing", message + hint, ())
    return Difference("other size", f"{said(row.key)}: {in_bytes(row.found)}, {row.expected:,} expected{hint}", ())


def _long(plan: Plan, row: Row) -> Difference:
    who = _who(plan, row)
    if row.expected == 0:
        return Difference("extra", f"{said(row.key)}: {in_bytes(row.found)} in {in_calls(row.calls)}", ())
    if row.found % row.expected == 0:
        times = row.found // row.expected
        return Difference("extra", f"{said(row.key)}: {times} times the {row.expected:,} bytes expected", who)
    if who:
        more = row.found - row.expected
        return Difference("extra", f"{said(row.key)}: {in_bytes(more)} too much, as much as{about(who, '')}", who)
    return Difference("other size", f"{said(row.key)}: {in_bytes(row.found)}, {row.expected:,} expected", ())


def _who(plan: Plan, row: Row) -> tuple[str, ...]:
    """The groups that the difference is as large as: all of them, one, or two; where several could be it,
    the first in the order of the spec."""
    amount = abs(row.found - row.expected)
    totals: dict[str, int] = defaultdict(int)
    for one in plan.expected:
        if key_of(one, plan) == row.key:
            totals[one.weights] += one.total
    if amount == sum(totals.values()):
        return tuple(totals)
    for count in (1, 2):
        for some in combinations(totals, count):
            if sum(totals[name] for name in some) == amount:
                return some
    return ()


def _what(plan: Plan, row: Row) -> str:
    what = dict.fromkeys(one.what for one in plan.expected if key_of(one, plan) == row.key)
    return f" of {', '.join(what)}"
