"""What of a recorded step can be told apart, what comes of holding it against a spec, and the words for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from placelogic.frontends.live.events import Event
from placelogic.frontends.live.expected import Expected, Plan

Axes = frozenset[str]
Kind = Literal["missing", "extra", "other group", "other operation", "other size"]


class Key(Struct, frozen=True):
    """What can be told apart: an operation among so many devices along axes (atoms of the spec)."""

    operation: str
    axes: Axes
    members: int


class Row(Struct, frozen=True):
    """One key: bytes that the spec wants per step, bytes that were sent, in how many calls."""

    key: Key
    expected: int
    found: int
    calls: int


class Difference(Struct, frozen=True):
    """`weights`: groups it is about, where that can be told."""

    kind: Kind
    message: str
    weights: tuple[str, ...]


class Found(Struct, frozen=True):
    """`notes` never make a run disagree."""

    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


class Keys(Struct, frozen=True):
    """Gives events their keys. `whole`: every group of the mesh that this rank is in, by its ranks, in axes of
    the mesh."""

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


def key_of(one: Expected, plan: Plan) -> Key:
    return Key(one.operation, frozenset(axis for axis in one.axes if plan.sizes[axis] > 1), one.members)


def said(key: Key) -> str:
    return f"{key.operation} over {over(key.axes)}" if key.axes else f"{key.operation} among {key.members} ranks"


def over(axes: Iterable[str]) -> str:
    return ", ".join(sorted(axes)) or "no axis"


def about(who: Sequence[str], before: str = " for") -> str:
    return f"{before} " + ", ".join(f"`{name}`" for name in who) if who else ""


def in_bytes(count: int) -> str:
    return f"{count:,} bytes"


def in_calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"
