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
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, either, made
from placelogic.prove.ratio import ONE, Ratio
from placelogic.prove.written import Written

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
    that its own device keeps is in it, the rest is lost (docs/layers.md). `raw`: which rule made it of what; None
    where it is how a gradient starts."""

    value: Literal["partial", "replicated", "root"]
    root: int = 0
    cut: Stack | None = None
    ruined: Formula = FALSE
    fault: str = ""
    tied: bool = False
    raw: Written | None = None

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


def _by(kind: Kind, rule: str, *parts: object) -> Kind:
    return replace(kind, raw=Written(rule, parts))


def spoil(kind: Kind, when: Formula, fault: str) -> Kind:
    """Ruined from these sizes on. The first fault is the cause and stays."""
    return _by(_spoil(kind, when, fault), "spoil", kind, when)


def _spoil(kind: Kind, when: Formula, fault: str) -> Kind:
    if kind.mixed or when == FALSE:
        return kind
    return replace(kind, ruined=when, fault=fault)


def tie(kind: Kind) -> Kind:
    """Of every share only the piece that its own device keeps."""
    return _by(replace(kind, tied=True), "tie", kind)


def _where_not_ruined(kind: Kind, rule: Callable[[Kind], Moved]) -> Moved:
    """What ruined a value may hang on another axis (flat shards of two stages): it stays ruined at
    those sizes, and at smaller ones the rule acts on it as on any other."""
    if not kind.mixed:
        return rule(kind)
    moved = rule(replace(kind, ruined=FALSE, fault=""))
    ruined = either(kind.ruined, moved.kind.ruined)
    return replace(moved, kind=replace(moved.kind, ruined=ruined, fault=kind.fault))


def reduce(kind: Kind, op: Literal["sum", "mean"], size: Ratio, into: Stack | None) -> Moved:
    """Add up (or average) over an axis of this size; `into`: keep only the own shard of the result."""
    moved = _where_not_ruined(kind, lambda value: _reduce(value, op, size, into))
    factor = replace(moved.factor, raw=Written(op, (kind, size)))
    return Moved(_by(moved.kind, "reduce", kind, size, into), factor, moved.counted)


def _reduce(kind: Kind, op: Literal["sum", "mean"], size: Ratio, into: Stack | None) -> Moved:
    if kind.cut is not None:
        return Moved(_spoil(kind, at_least(size, 2), "adds different elements at one offset"))
    match kind.value:
        case "partial":
            return Moved(Kind("replicated", cut=into, tied=kind.tied), ONE if op == "sum" else ONE / size)
        case "replicated" | "root":
            counted = op == "sum"
            return Moved(Kind(kind.value, kind.root, into, tied=kind.tied), size if counted else ONE, counted)


def gather(kind: Kind, size: Ratio) -> Kind:
    """Everyone collects all pieces along the axis."""
    return _by(_where_not_ruined(kind, lambda value: Moved(_gather(value, size))).kind, "gather", kind, size)


def _gather(kind: Kind, size: Ratio) -> Kind:
    if kind.value == "partial":
        return _spoil(kind, at_least(size, 2), "gathers shares as if they were pieces")
    return Kind(kind.value, kind.root, tied=kind.tied)


def route(kind: Kind, size: Ratio, owner: Stack) -> Moved:
    """Contributions travel to the owner of each element and are summed there: the first thing that happens to
    them, before any is tied."""
    moved = _where_not_ruined(kind, lambda value: _route(value, size, owner))
    factor = replace(moved.factor, raw=Written("route", (kind, size)))
    return Moved(_by(moved.kind, "route", kind), factor, moved.counted)


def _route(kind: Kind, size: Ratio, owner: Stack) -> Moved:
    match kind.value:
        case "partial":
            return Moved(shard(owner))
        case "replicated" | "root":
            return Moved(Kind(kind.value, kind.root, owner), size, True)


def settle(kind: Kind, room: Stack | None) -> Kind:
    """Accumulating into a buffer that has room for a shard only: a whole value is cut, a share stays whole."""
    cut = kind.cut if room is None or kind.cut is not None or kind.value == "partial" else room
    return _by(replace(kind, cut=cut), "settle", kind, room)


# --- what is asked of a kind ------------------------------------------------------------------


def is_partial(kind: Kind) -> Formula:
    return made(TRUE if kind.value == "partial" else FALSE, "partial", kind)


def is_cut(kind: Kind) -> Formula:
    return made(TRUE if kind.cut is not None else FALSE, "cut", kind)


def is_ruined(kind: Kind) -> Formula:
    return made(kind.ruined, "ruined", kind)


def miscast(kind: Kind) -> Formula:
    """Where the rules, as they stand, come to another kind than was found."""
    return made(FALSE, "miscast", kind, replace(kind, raw=None, ruined=FALSE))


def unlike(one: Kind, other: Kind) -> Formula:
    return made(FALSE if one == other else TRUE, "unlike", one, other)
