"""What follows from the table of operations (`program/table.py`), for any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from placelogic.program import block as bl
from placelogic.program.block import Dims
from placelogic.program.ops import WithOrigin
from placelogic.program.table import facts

Op = TypeVar("Op", bound=WithOrigin)


def _named(op: Any, fields: tuple[str, ...]) -> tuple[str, ...]:
    """What stands in these fields, each a name or several."""
    values = (getattr(op, name) for name in fields)
    return tuple(name for value in values for name in (value if isinstance(value, tuple) else (value,)))


def reads(op: bl.Operation) -> tuple[str, ...]:
    """The tensors that it reads, in order."""
    return _named(op, facts(op).reads)


def reading(op: Op, now: Callable[[str], Any]) -> Op:
    """The operation, reading other tensors: `now` gives the name for each."""
    changed = {}
    for name in facts(op).reads:  # type: ignore[arg-type]
        value = getattr(op, name)
        changed[name] = now(value) if isinstance(value, str) else tuple(map(now, value))
    return replace(op, **changed)  # type: ignore[type-var]


def inputs(op: bl.Operation) -> tuple[str, ...]:
    """The tensors whose values and gradients pass through it, in order. What a dispatch reads of its router
    only chooses: it has no gradient."""
    entry = facts(op)
    return _named(op, tuple(name for name in entry.reads if name not in entry.chooses))


def weights_of(op: bl.Operation) -> str | None:
    return getattr(op, "weights", None)


def name_of(op: bl.Operation) -> str:
    """For people: what the operation is called in the language."""
    return facts(op).name


def sides(op: bl.Operation) -> tuple[Dims, Dims]:
    """The dimensions of an operation's weights, without experts: those it produces, and those it contracts."""
    entry = facts(op)
    return _named(op, entry.produces), _named(op, entry.contracts)


def within(op: bl.Operation) -> Dims:
    """The dimensions that its input has to have, and keeps."""
    return tuple(dim for dim in _named(op, facts(op).within) if dim is not None)


def apart(block: bl.Block, op: bl.Operation) -> frozenset[str]:
    """The dimensions along which no place of an input meets another place: a gradient that is nothing at a place of
    the output is nothing there of every input."""
    entry = facts(op)
    if entry.moves:
        return frozenset()
    kept = frozenset(block.tensors[op.output]) & frozenset(block.tensors[inputs(op)[0]])
    return kept - {*mixed(op), *_named(op, entry.shared)}


def mixed(op: bl.Operation) -> Dims:
    """The dimensions along which it lets places meet."""
    return _named(op, tuple(name for names in facts(op).mixes.values() for name in names))


def mixing(op: bl.Operation, dim: str) -> str | None:
    """What it does that lets places along the dimension meet, with `{}` for the dimension."""
    return next((does for does, names in facts(op).mixes.items() if dim in _named(op, names)), None)


def needs_right(op: bl.Operation) -> tuple[int, ...]:
    """Which inputs must be what one device has, because the operation is not linear in them."""
    entry = facts(op)
    return tuple(slot for slot, name in enumerate(entry.reads) if name in entry.nonlinear)


def needed(op: bl.Operation, frozen: bool) -> tuple[str, ...]:
    """The tensors that the backward pass of an operation reads. Token ids are the batch itself, and `frozen`
    weights need no input: their gradient is not wanted."""
    entry = facts(op)
    kept = _named(op, (*(() if frozen else entry.saves_for_weights), *entry.saves))
    return (*kept, op.output) if isinstance(op, bl.Attention) and op.fused else kept
