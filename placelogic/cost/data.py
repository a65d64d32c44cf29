"""The terms of a cost, and the totals over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import sympy

from placelogic.cost.symbols import Sizes, at, exact, largest, symbol, total
from placelogic.program.ops import Axes, Origin

State = Literal["params", "optimizer", "gradients", "activations"]
Part = Literal["params", "master", "moments", "gradients", "activations"]


@dataclass(frozen=True, slots=True)
class Options:
    """`unit`: what is gathered at once, one `layer` of all weights with that many layers, or one layer
    of one weight `group`. `ahead`: units gathered before they are needed. `inter`: axes that cross
    nodes. `activations`: whether saved activations are counted, where the spec has layer operations."""

    unit: Literal["layer", "group"] = "layer"
    ahead: int = 0
    inter: Axes = ()
    activations: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """Devices that hold the same, up to rounding: where they stand along the stages.

    `when`: the condition on the number of stages under which there is such a place, in words."""

    name: Literal["all", "single", "first", "middle", "last", "rest"]
    axis: str | None
    when: str


@dataclass(frozen=True, slots=True)
class Held:
    """One part of a state of one group, on one place: `even` elements where shards divide evenly,
    `padded` elements where every shard is as large as the first one."""

    place: Place
    state: State
    part: Part
    group: str
    host: bool
    even: sympy.Expr
    padded: sympy.Expr
    width: sympy.Rational
    dtype: str

    @property
    def bytes(self) -> sympy.Expr:
        return self.even * self.width

    @property
    def padded_bytes(self) -> sympy.Expr:
        return self.padded * self.width


@dataclass(frozen=True, slots=True)
class Transient:
    """What is on the device only while it is used. `unit`: which unit it belongs to, of which one is
    in use at a time; None: it lies there together with all others (kept gathered until backward)."""

    place: Place
    kind: Literal["gathered params", "whole gradient", "kept params", "recomputed"]
    unit: str | None
    group: str
    bytes: sympy.Expr
    padded_bytes: sympy.Expr
    dtype: str


Operation = Literal["all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all", "send", "to host", "to device"]

RINGS: Mapping[str, int] = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "all-to-all": 1}
"""How often (n - 1)/n of the message leaves a device."""


@dataclass(frozen=True, slots=True)
class Collective:
    """One communication of one group. `bytes`: the whole message (gathered, or before it is scattered).
    `members`: devices that take part, `inner` of them within a node. `times`: per step."""

    places: tuple[Place, ...]
    group: str
    what: str
    operation: Operation
    axes: Axes
    label: str
    bytes: sympy.Expr
    members: sympy.Expr
    inner: sympy.Expr
    times: sympy.Expr
    dtype: str
    origin: Origin | None

    @property
    def sent(self) -> sympy.Expr:
        """Bytes that one device sends per step (ring algorithms; a broadcast passes the message on)."""
        return self._volume(self.members, self.bytes)

    @property
    def limit(self) -> sympy.Expr:
        """The same for many members: (n - 1)/n is 1 where n is the size of an axis."""
        if self.members.is_number:
            return self.sent
        return RINGS.get(self.operation, 1) * self.bytes * self.times

    @property
    def intra(self) -> sympy.Expr:
        """The part of `sent` that stays within a node, when nodes are reduced or gathered first."""
        return self._volume(self.inner, self.bytes) if self.device_to_device else sympy.Integer(0)

    @property
    def inter(self) -> sympy.Expr:
        if not self.device_to_device:
            return sympy.Integer(0)
        return self._volume(self.members / self.inner, self.bytes / self.inner)

    @property
    def device_to_device(self) -> bool:
        return self.operation not in ("to host", "to device")

    def _volume(self, members: sympy.Expr, size: sympy.Expr) -> sympy.Expr:
        if self.operation in RINGS:
            return size * self.times * RINGS[self.operation] * ((members - 1) / members)
        if self.operation in ("broadcast", "send"):
            return size * self.times * sympy.Min(1, members - 1)
        return size * self.times


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the worst device. Each is a sympy expression in the sizes."""

    cost: Cost

    @property
    def held(self) -> sympy.Expr:
        """What stays on the device through the step, shards dividing evenly."""
        return self.cost.worst(self.cost.held_on)

    @property
    def padded(self) -> sympy.Expr:
        """`held` with shards rounded up."""
        return self.cost.worst(self.cost.padded_on)

    @property
    def with_unit(self) -> sympy.Expr:
        """`held` and the gathered unit: the semantics of S*."""
        return self.cost.worst(lambda place: self.cost.held_on(place) + self.cost.transient_on(place, gradients=False))

    @property
    def peak(self) -> sympy.Expr:
        """`held` and the largest transient."""
        return self.cost.worst(self.cost.peak_on)

    @property
    def peak_padded(self) -> sympy.Expr:
        """`peak` with shards rounded up."""
        return self.cost.worst(self.cost.padded_peak_on)

    @property
    def host(self) -> sympy.Expr:
        """Bytes of host memory that one device needs."""
        return self.cost.worst(lambda place: self.cost.sum(lambda h: h.place == place and h.host))

    def state(self, state: str) -> sympy.Expr:
        return self.cost.worst(lambda place: self.cost.sum(lambda h: h.place == place and not h.host and h.state == state))

    def group(self, group: str) -> sympy.Expr:
        return self.cost.worst(lambda place: self.cost.sum(lambda h: h.place == place and not h.host and h.group == group))

    def _repr_latex_(self) -> str:
        from placelogic.cost.latex import inline

        return inline("M", self.peak, self.cost.axes)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that the busiest device sends to other devices per step."""

    cost: Cost

    @property
    def sent(self) -> sympy.Expr:
        return self.cost.busiest(lambda c: c.sent)

    @property
    def limit(self) -> sympy.Expr:
        return self.cost.busiest(lambda c: c.limit)

    @property
    def intra(self) -> sympy.Expr:
        return self.cost.busiest(lambda c: c.intra)

    @property
    def inter(self) -> sympy.Expr:
        return self.cost.busiest(lambda c: c.inter)

    @property
    def host(self) -> sympy.Expr:
        """Bytes between a device and its host, both ways."""
        return self.cost.busiest(lambda c: c.sent, host=True)

    def over(self, *axes: str) -> sympy.Expr:
        """What is sent in collectives over exactly these axes."""
        return self.cost.busiest(lambda c: c.sent if c.axes == axes else sympy.Integer(0))

    def _repr_latex_(self) -> str:
        from placelogic.cost.latex import inline

        return inline("T", self.sent, self.cost.axes)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one spec. `values` are the sizes that the spec fixes; `notes` say what is assumed
    or left out."""

    name: str
    axes: Axes
    sizes: Sizes
    places: tuple[Place, ...]
    held: tuple[Held, ...]
    transients: tuple[Transient, ...]
    collectives: tuple[Collective, ...]
    parameters: sympy.Expr
    bubble: sympy.Expr | None
    notes: tuple[str, ...]
    options: Options

    @property
    def memory(self) -> Memory:
        return Memory(self)

    @property
    def traffic(self) -> Traffic:
        return Traffic(self)

    @property
    def values(self) -> Mapping[str, Fraction]:
        return self.sizes.values

    @property
    def symbols(self) -> dict[str, sympy.Symbol]:
        """The symbols that the formulas use, by name."""
        found = self.memory.peak_padded.free_symbols | self.traffic.sent.free_symbols | self.memory.host.free_symbols
        found |= self.traffic.host.free_symbols | self.memory.peak.free_symbols
        return {one.name: one for one in sorted(found, key=lambda one: one.name)}

    def number(self, expr: sympy.Expr, **sizes: int) -> Fraction | None:
        """The value at the sizes that the spec fixes and those given; None where others are open."""
        found = at(expr, {**self.values, **{symbol(name).name: Fraction(size) for name, size in sizes.items()}})
        if found.free_symbols or not found.is_Rational:
            return None
        return Fraction(int(found.p), int(found.q))

    # --- totals ---

    def sum(self, chosen: Callable[[Held], bool]) -> sympy.Expr:
        return total(h.bytes for h in self.held if chosen(h))

    def held_on(self, place: Place) -> sympy.Expr:
        return self.sum(lambda h: h.place == place and not h.host)

    def padded_on(self, place: Place) -> sympy.Expr:
        return total(h.padded_bytes for h in self.held if h.place == place and not h.host)

    def transient_on(self, place: Place, *, gradients: bool = True, padded: bool = False) -> sympy.Expr:
        """The most that comes on top at one time: one unit, and what lies there until backward."""

        def size(t: Transient) -> sympy.Expr:
            return t.padded_bytes if padded else t.bytes

        mine = [t for t in self.transients if t.place == place and (gradients or t.kind != "whole gradient")]
        kept = total(size(t) for t in mine if t.unit is None)
        units = dict.fromkeys(t.unit for t in mine if t.unit is not None)
        return kept + largest([total(size(t) for t in mine if t.unit == unit) for unit in units])

    def peak_on(self, place: Place) -> sympy.Expr:
        return self.held_on(place) + self.transient_on(place)

    def padded_peak_on(self, place: Place) -> sympy.Expr:
        return self.padded_on(place) + self.transient_on(place, padded=True)

    def sent_on(self, place: Place) -> sympy.Expr:
        return self._moved(place, lambda c: c.sent, host=False)

    def busiest(self, volume: Callable[[Collective], sympy.Expr], *, host: bool = False) -> sympy.Expr:
        return self.worst(lambda place: self._moved(place, volume, host=host))

    def _moved(self, place: Place, volume: Callable[[Collective], sympy.Expr], *, host: bool) -> sympy.Expr:
        moved = total(volume(c) for c in self.collectives if place in c.places and c.device_to_device != host)
        return _one_stage(place, moved)

    def worst(self, amount: Callable[[Place], sympy.Expr]) -> sympy.Expr:
        """The largest over all places, for every number of stages that the spec allows."""
        singles = [place for place in self.places if place.name == "single"]
        others = largest([amount(place) for place in self.places if place.name != "single"])
        if not singles:
            return others
        alone = _one_stage(singles[0], amount(singles[0]))
        if len(self.places) == 1:
            return alone
        axis = symbol(singles[0].axis or "")
        if sympy.expand(others.xreplace({axis: exact(1)}).doit() - alone) == 0:
            return others
        return sympy.Piecewise((alone, sympy.Eq(axis, 1)), (others, True))

    def _repr_latex_(self) -> str:
        from placelogic.cost.latex import inline

        return inline("M", self.memory.peak, self.axes)


def _one_stage(place: Place, expr: sympy.Expr) -> sympy.Expr:
    """On the only stage there is, the number of stages is 1."""
    return expr.xreplace({symbol(place.axis or ""): exact(1)}).doit() if place.name == "single" else expr
