"""A cost as tables: what is printed, exported and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import sympy
from msgspec import Struct

from placelogic.cost.data import Collective, Place
from placelogic.cost.time import seconds
from placelogic.cost.totals import Cost


class Row(Struct, frozen=True):
    """One quantity. `labels` are its cells in the label columns; `unit`: bytes, parameters, a share of 1, or seconds."""

    labels: tuple[str, ...]
    formula: sympy.Expr
    unit: Literal["bytes", "parameters", "share", "seconds"] = "bytes"


class Table(Struct, frozen=True):
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


STATES = ("params", "optimizer", "gradients", "activations")


def tables(cost: Cost, per: str = "rank") -> tuple[Table, ...]:
    """The tables of one view: of the worst device (`rank`), of every place along the stages (`stage`), of
    every group of weights, or of every communication."""
    views: dict[str, Callable[[Cost], tuple[Table, ...]]] = {
        "rank": _rank, "stage": _stage, "group": _group, "collective": _collective,
    }  # fmt: skip
    return views[per](cost)


def worst_place(cost: Cost) -> Place | None:
    """The place with the highest peak, where that is the same at all sizes left open."""
    from placelogic.cost.symbols import covers

    places = [place for place in cost.places if place.name != "single"] or list(cost.places)
    if len(places) < len(cost.places):
        return None
    peaks = [(place, cost.padded_peak_on(place)) for place in places]
    numbers = [(place, cost.known(peak)) for place, peak in peaks]
    if all(number is not None for _, number in numbers):
        return max(numbers, key=lambda pair: pair[1] or 0)[0]
    return next((place for place, peak in peaks if all(covers(peak, other) for _, other in peaks)), None)


def _rank(cost: Cost) -> tuple[Table, ...]:
    place = worst_place(cost)
    if place is not None and len(cost.places) > 1:
        title = f"memory of one device of the {place.name} stage, the worst"
        memory = tuple(_memory(cost, place))
    elif place is not None:
        title, memory = "memory of one device", tuple(_memory(cost, place))
    else:
        title, memory = "memory of one device, each line the largest over all stages", tuple(_worst(cost))
    return (Table(title, ("",), memory), Table("traffic of one device and step", ("",), tuple(_traffic(cost))))


def _memory(cost: Cost, place: Place) -> Iterator[Row]:
    for state in STATES:
        terms = [h for h in cost.held if h.place == place and h.state == state and not h.host]
        if terms:
            if state == "activations":
                yield Row(("model states",), cost.states_on(place))
            yield Row((state,), sympy.Add(*(h.bytes for h in terms)))
    held, padded = cost.held_on(place), cost.padded_on(place)
    yield Row(("held",), held)
    if differs(cost, held, padded):
        yield Row(("held, shards rounded up",), padded)
    unit, everything = cost.transient_on(place, gradients=False), cost.transient_on(place)
    if unit != 0:
        yield Row(("gathered unit",), unit)
    if everything != unit:
        yield Row(("largest transient",), everything)
    yield Row(("peak",), held + everything)
    peak = cost.padded_peak_on(place)
    if differs(cost, held + everything, peak):
        yield Row(("peak, shards rounded up",), peak)
    host = cost.sum(lambda h: h.place == place and h.host)
    if host != 0:
        yield Row(("host memory",), host)


def _worst(cost: Cost) -> Iterator[Row]:
    memory = cost.memory
    for state in STATES:
        if any(h.state == state and not h.host for h in cost.held):
            if state == "activations":
                yield Row(("model states",), memory.states)
            yield Row((state,), memory.state(state))
    yield Row(("held",), memory.held)
    if cost.transients:
        yield Row(("held and gathered unit",), memory.with_unit)
    yield Row(("peak",), memory.peak)
    if any(h.host for h in cost.held):
        yield Row(("host memory",), memory.host)


def _traffic(cost: Cost) -> Iterator[Row]:
    traffic = cost.traffic
    yield Row(("sent",), traffic.sent)
    yield Row(("limit for many devices",), traffic.limit)
    if cost.options.inter:
        yield Row(("within a node",), traffic.intra)
        yield Row(("between nodes",), traffic.inter)
    if any(not c.device_to_device for c in cost.collectives):
        yield Row(("to and from the host",), traffic.host)
    if (time := seconds(cost)) is not None:
        yield Row(("time to send, an estimate",), time, "seconds")
    if cost.bubble is not None:
        yield Row(("bubble, over ideal time",), sympy.factor(cost.bubble), "share")
        yield Row(("bubble, over whole time",), sympy.factor(cost.bubble / (1 + cost.bubble)), "share")


def _stage(cost: Cost) -> tuple[Table, ...]:
    rows = []
    for place in cost.places:
        name = place.name if place.axis is None else f"{place.name} ({place.when})"
        held, padded = cost.held_on(place), cost.padded_on(place)
        rows.append(Row((name, "held"), held))
        if differs(cost, held, padded):
            rows.append(Row((name, "held, shards rounded up"), padded))
        rows.append(Row((name, "peak"), cost.peak_on(place)))
        if differs(cost, cost.peak_on(place), cost.padded_peak_on(place)):
            rows.append(Row((name, "peak, shards rounded up"), cost.padded_peak_on(place)))
        rows.append(Row((name, "sent"), cost.sent_on(place)))
    return (Table("memory and traffic by stage", ("stage", ""), tuple(rows)),)


def _group(cost: Cost) -> tuple[Table, ...]:
    rows = []
    for group in dict.fromkeys(h.group for h in cost.held):
        for part in dict.fromkeys((h.part, h.host) for h in cost.held if h.group == group):
            terms = [h for h in cost.held if h.group == group and (h.part, h.host) == part]
            where = " (host)" if part[1] else ""
            rows.append(Row((group, f"{part[0]}{where}", terms[0].dtype), cost.worst(
                lambda place, terms=terms: sympy.Add(*(h.bytes for h in terms if h.place == place)))))  # fmt: skip
        sent = cost.busiest(lambda c, group=group: c.sent if c.group == group else sympy.Integer(0))
        rows.append(Row((group, "sent", ""), sent))
    return (Table("memory and traffic by weights, where they are", ("weights", "", "dtype"), tuple(rows)),)


def _collective(cost: Cost) -> tuple[Table, ...]:
    alone = all(place.name == "single" for place in cost.places)
    shown = [c for c in cost.collectives if alone or any(place.name != "single" for place in c.places)]
    rows = tuple(Row((c.group, c.what, c.operation, c.label, times(c)), c.sent) for c in shown)
    return (Table("sent by one device in a step", ("weights", "what", "operation", "over", "times"), rows),)


def times(one: Collective) -> str:
    return str(one.times)


def differs(cost: Cost, even: sympy.Expr, padded: sympy.Expr) -> bool:
    """Whether rounding up matters at the sizes that are known, or can matter at those that are open."""
    numbers = cost.known(even), cost.known(padded)
    if None not in numbers:
        return numbers[0] != numbers[1]
    return even != padded
