"""The cost of a spec: its terms, and the totals over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import sympy
from msgspec import Struct

from placelogic.cost.data import Collective, Held, Options, Place, Transient
from placelogic.cost.symbols import Symbols, at, exact, largest, symbol, total
from placelogic.program.ops import Axes

GATHERED = ("gathered params", "kept params")
"""What using params that are gathered takes, by the semantics of S*."""


class Memory(Struct, frozen=True):
    """Bytes on the worst device. Each is a sympy expression in the sizes."""

    cost: Cost

    @property
    def held(self) -> sympy.Expr:
        """What stays on the device through the step, shards dividing evenly."""
        return self.cost.worst(self.cost.held_on)

    @property
    def states(self) -> sympy.Expr:
        """`held` without activations: the model states."""
        return self.cost.worst(self.cost.states_on)

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
        return self.cost.worst(
            lambda place: self.cost.sum(lambda h: h.place == place and not h.host and h.state == state)
        )

    def group(self, group: str) -> sympy.Expr:
        return self.cost.worst(
            lambda place: self.cost.sum(lambda h: h.place == place and not h.host and h.group == group)
        )

    def _repr_latex_(self) -> str:
        from placelogic.cost.letters import inline

        return inline("M", self.peak, self.cost.axes)


class Traffic(Struct, frozen=True):
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
        from placelogic.cost.letters import inline

        return inline("T", self.sent, self.cost.axes)


class Cost(Struct, frozen=True):
    """The cost of one spec. `in_flight`: by place, micro-batches whose activations it keeps at once. `notes` say
    what is assumed or left out."""

    name: str
    axes: Axes
    sizes: Symbols
    places: tuple[Place, ...]
    held: tuple[Held, ...]
    transients: tuple[Transient, ...]
    collectives: tuple[Collective, ...]
    parameters: sympy.Expr
    bubble: sympy.Expr | None
    in_flight: Mapping[str, sympy.Expr]
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

    @property
    def size_names(self) -> tuple[str, ...]:
        """Names of the symbols of all sizes, open and fixed."""
        return tuple(meaning.name for meaning in self.sizes.meanings.values() if meaning.is_Symbol)

    def at(self, expr: sympy.Expr, /, **sizes: int | float) -> sympy.Expr:
        """The formula with the sizes that the spec fixes, and those given, put in; others stay symbols."""
        return at(expr, {**self.values, **{symbol(name).name: Fraction(size) for name, size in sizes.items()}})

    def known(self, expr: sympy.Expr, /, **sizes: int | float) -> Fraction | None:
        """The value at the sizes that the spec fixes and those given; None where others are open."""
        found = self.at(expr, **sizes)
        if found.free_symbols or not found.is_Rational:
            return None
        return Fraction(int(found.p), int(found.q))

    def number(self, expr: sympy.Expr, /, **sizes: int | float) -> Fraction:
        """As `known`. Raises ValueError where sizes are open, and names them."""
        value = self.known(expr, **sizes)
        if value is None:
            open_ = ", ".join(sorted(one.name for one in self.at(expr, **sizes).free_symbols))
            missing = f"{open_} is missing" if "," not in open_ else f"{open_} are missing"
            raise ValueError(f"there is no number: {missing}" if open_ else f"there is no number: {expr}")
        return value

    # --- totals ---

    def sum(self, chosen: Callable[[Held], bool]) -> sympy.Expr:
        return total(h.bytes for h in self.held if chosen(h))

    def held_on(self, place: Place) -> sympy.Expr:
        return self.sum(lambda h: h.place == place and not h.host)

    def states_on(self, place: Place) -> sympy.Expr:
        return self.sum(lambda h: h.place == place and not h.host and h.state != "activations")

    def padded_on(self, place: Place) -> sympy.Expr:
        return total(h.padded_bytes for h in self.held if h.place == place and not h.host)

    def transient_on(self, place: Place, *, gradients: bool = True, padded: bool = False) -> sympy.Expr:
        """The most that comes on top at one time: one unit, and what lies there until backward."""

        def size(t: Transient) -> sympy.Expr:
            return t.padded_bytes if padded else t.bytes

        mine = [t for t in self.transients if t.place == place and (gradients or t.kind in GATHERED)]
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
        if not others.has(sympy.Max, sympy.Min, sympy.ceiling):
            # One formula for both, where that can be seen without much work.
            if sympy.expand(others.xreplace({axis: exact(1)}) - alone) == 0:
                return others
        return sympy.Piecewise((alone, sympy.Eq(axis, 1)), (others, True))

    def _repr_latex_(self) -> str:
        from placelogic.cost.letters import inline

        return inline("M", self.memory.peak, self.axes)


def _one_stage(place: Place, expr: sympy.Expr) -> sympy.Expr:
    """On the only stage there is, the number of stages is 1."""
    return expr.xreplace({symbol(place.axis or ""): exact(1)}).doit() if place.name == "single" else expr
