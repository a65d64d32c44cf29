"""Pipeline schedules: idle time, and how many micro-batches a stage has in flight."""

from __future__ import annotations

import sympy

from placelogic.cost.data import Place
from placelogic.cost.symbols import Sizes
from placelogic.program.program import Program

FLUSHING = ("gpipe", "1f1b", "interleaved_1f1b", "looped_bfs")
"""Schedules whose idle time is that of filling and draining the pipeline once per step. The others hide
weight gradients in it: their idle time depends on how long each kind of pass takes, and is not given."""


def bubble(program: Program, sizes: Sizes) -> sympy.Expr | None:
    """Idle time of a device as a part of the time that the work itself takes (the ideal time): (p - 1)/(v m)
    for p stages, v chunks and m micro-batches. Over the whole time it is b/(1 + b)."""
    stages = program.stages
    if stages is None or stages.schedule not in FLUSHING:
        return None
    count = sizes.meanings[stages.axis]
    return (count - 1) / (sizes.read(stages.chunks) * sizes.read(program.work.microbatches))


def in_flight(program: Program, sizes: Sizes, place: Place) -> sympy.Expr:
    """Micro-batches whose activations a place keeps at once, in parts of all layers of a stage. The first
    stage keeps the most. A schedule that is not known here keeps all of them."""
    count = sizes.read(program.work.microbatches)
    stages = program.stages
    if stages is None or place.axis is None:
        return sympy.Integer(1)
    depth = sizes.meanings[stages.axis] if place.name != "single" else sympy.Integer(1)
    chunks = sizes.read(stages.chunks)
    if stages.schedule == "1f1b":
        behind = {"first": 0, "middle": 1, "last": depth - 1}.get(place.name, 0)
        return sympy.Min(depth - behind, count)
    if stages.schedule == "interleaved_1f1b":
        return sympy.Min(depth + (depth - 1) / chunks, count)
    return count
