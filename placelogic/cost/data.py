"""The terms of a cost: what a device holds, what lies on it for a while, what it sends."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import sympy
from msgspec import Struct

from placelogic.program.ops import Axes, Origin

State = Literal["params", "optimizer", "gradients", "activations"]
Part = Literal["params", "master", "moments", "gradients", "update", "activations"]


class Options(Struct, frozen=True):
    """`unit`: what is gathered at once, one `layer` of all weights with that many layers, or one layer
    of one weight `group`. `ahead`: units gathered before they are needed. `inter`: axes that cross
    nodes. `activations`: whether saved activations are counted, where the spec has layer operations.
    `bandwidth`, `inter_bandwidth` (bytes per second, of one device) and `latency` (seconds): for an estimate
    of the time that sending takes."""

    unit: Literal["layer", "group"] = "layer"
    ahead: int = 0
    inter: Axes = ()
    activations: bool = True
    bandwidth: Fraction | None = None
    inter_bandwidth: Fraction | None = None
    latency: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.unit not in ("layer", "group"):
            raise ValueError(f"unit is `layer` or `group`, not {self.unit!r}")
        if self.ahead < 0:
            raise ValueError(f"ahead is a number of units, not {self.ahead}")


Layers = tuple[tuple[str, sympy.Expr], ...]
"""By block, a number of its layers."""


class Stage(Struct, frozen=True):
    """What a place has of the layers of several repeated blocks: `even` where they divide evenly, `whole` where
    stages hold whole layers. `kept`, `rounded`: the same times micro-batches in flight. `weights`: name, and how
    many of the layers of these weights there are, even and whole."""

    even: Layers
    whole: Layers
    kept: Layers
    rounded: Layers
    weights: tuple[tuple[str, sympy.Expr, sympy.Expr], ...]


class Place(Struct, frozen=True):
    """Devices that hold the same, up to rounding: where they stand along the stages.

    `when`: the condition on the number of stages under which there is such a place, in words. `stage`: where
    stages hold layers of several blocks."""

    name: Literal["all", "single", "first", "middle", "last", "rest"]
    axis: str | None
    when: str
    stage: Stage | None = None

    def layers_of(self, weights: str) -> tuple[sympy.Expr, sympy.Expr] | None:
        """How many layers of these weights are here, even and whole; None where all stages have as many."""
        found = [] if self.stage is None else [one[1:] for one in self.stage.weights if one[0] == weights]
        return found[0] if found else None


class Held(Struct, frozen=True):
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


class Transient(Struct, frozen=True):
    """What is on the device only while it is used. `unit`: which unit it belongs to, of which one is
    in use at a time; None: it lies there together with all others (kept gathered until backward)."""

    place: Place
    kind: Literal["gathered params", "whole gradient", "kept params", "recomputed", "whole for the update"]
    unit: str | None
    group: str
    bytes: sympy.Expr
    padded_bytes: sympy.Expr
    dtype: str


Operation = Literal[
    "all-reduce", "reduce-scatter", "all-gather", "broadcast", "all-to-all", "send", "to host", "to device"
]

RINGS: Mapping[str, int] = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1, "all-to-all": 1}
"""How often (n - 1)/n of the message leaves a device."""


class Collective(Struct, frozen=True):
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
