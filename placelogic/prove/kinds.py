"""The transfer rules: what an operation over one axis does to a gradient's kind along that axis.

Each rule is the table of docs/semantics.md, "The value calculus". At an axis of size 1 every
rule is the identity; a rule that ruins the value says from which sizes on it does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from placelogic.program.program import Axes, Layout
from placelogic.prove.formula import FALSE, Formula, at_least, either
from placelogic.prove.ratio import ONE, Ratio

Stack = tuple[tuple[str, Axes], ...]
"""How an axis cuts a dimension: (dimension, axes of the cut), outermost first, its own cut last."""


def stack(layout: Layout, axis: str) -> Stack | None:
    """The stack of a layout along an axis, or None where the state is whole."""
    cuts = layout.stacked(axis)
    return tuple((cut.dimension, cut.axes) for cut in cuts) if cuts else None


class Kind(Struct, frozen=True):
    """A gradient along one axis.

    `partial`: devices hold different addable parts. `replicated`: all hold the whole. `root`: all hold
    what device `root` had. With `cut`, each device has only its own elements of that.
    `mixed` (from the sizes where `ruined` holds) is not a value anyone can use; at smaller
    sizes it is what `before` says. `fault` tells how it came about. `tied`: of every share only the piece
    that its own device keeps is in it, the rest is lost (docs/layers.md)."""

    value: Literal["partial", "replicated", "root"]
    root: int = 0
    cut: Stack | None = None
    ruined: Formula = FALSE
    fault: str = ""
    tied: bool = False

    @property
    def mixed(self) -> bool:
        return self.ruined != FALSE


PARTIAL = Kind("partial")
REPLICATED = Kind("replicated")


def shard(cut: Stack) -> Kind:
    return Kind("replicated", cut=cut)


class Moved(Struct, frozen=True):
    """The kind after an operation, the factor it put on the scale, and whether that factor
    counts copies (each contribution once per device)."""

    kind: Kind
    factor: Ratio = ONE
    counted: bool = False


def spoil(kind: Kind, when: Formula, fault: str) -> Kind:
    """Ruined from these sizes on. The first fault is the cause and stays."""
    if kind.mixed or when == FALSE:
        return kind
    return replace(kind, ruined=when, fault=fault)


def _where_not_ruined(kind: Kind, rule: Callable[[Kind], Moved]) -> Moved:
    """What ruined a value may hang on another axis (flat shards of two stages): it stays ruined at
    those sizes, and at smaller ones the rule acts on it as on any other."""
    moved = rule(replace(kind, ruined=FALSE, fault=""))
    ruined = either(kind.ruined, moved.kind.ruined)
    return replace(moved, kind=replace(moved.kind, ruined=ruined, fault=kind.fault))


def reduce(kind: Kind, op: Literal["sum", "mean"], size: Ratio, into: Stack | None) -> Moved:
    """Add up (or average) over an axis of this size; `into`: keep only the own shard of the result."""
    if kind.mixed:
        return _where_not_ruined(kind, lambda value: reduce(value, op, size, into))
    if kind.cut is not None:
        return Moved(spoil(kind, at_least(size, 2), "adds different elements at one offset"))
    match kind.value:
        case "partial":
            return Moved(Kind("replicated", cut=into, tied=kind.tied), ONE if op == "sum" else ONE / size)
        case "replicated" | "root":
            counted = op == "sum"
            return Moved(Kind(kind.value, kind.root, into, tied=kind.tied), size if counted else ONE, counted)


def gather(kind: Kind, size: Ratio) -> Moved:
    """Everyone collects all pieces along the axis."""
    if kind.mixed:
        return _where_not_ruined(kind, lambda value: gather(value, size))
    if kind.value == "partial":
        return Moved(spoil(kind, at_least(size, 2), "gathers shares as if they were pieces"))
    return Moved(Kind(kind.value, kind.root, tied=kind.tied))


def route(kind: Kind, size: Ratio, owner: Stack) -> Moved:
    """Contributions travel to the owner of each element and are summed there: the first thing that happens to
    them, before any is tied."""
    if kind.mixed:
        return _where_not_ruined(kind, lambda value: route(value, size, owner))
    match kind.value:
        case "partial":
            return Moved(shard(owner))
        case "replicated" | "root":
            return Moved(Kind(kind.value, kind.root, owner), size, True)


def settle(kind: Kind, room: Stack | None) -> Kind:
    """Accumulating into a buffer that has room for a shard only: a whole value is cut, a share stays whole."""
    if room is None or kind.cut is not None or kind.value == "partial":
        return kind
    return replace(kind, cut=room)
