"""Pipeline schedules: idle time, and how many micro-batches a stage has in flight."""

from __future__ import annotations

import sympy

from placelogic.cost.data import Place
from placelogic.cost.symbols import Symbols
from placelogic.program.program import Program

FLUSHING = ("gpipe", "1f1b", "interleaved_1f1b", "looped_bfs")
"""Schedules whose idle time is that of filling and draining the pipeline once per step. The others hide
weight gradients in it: their idle time depends on how long each kind of pass takes, and is not given."""


def bubble(program: Program, sizes: Symbols) -> sympy.Expr | None:
    """Idle time of a device as a part of the time that the work itself takes (the ideal time): (p - 1)/(v m)
    for p stages, v chunks and m micro-batches. Over the whole time it is b/(1 + b)."""
    stages = program.stages
    if stages is None or stages.schedule not in FLUSHING:
        return None
    count = sizes.meanings[stages.axis]
    return (count - 1) / (sizes.read(stages.chunks) * sizes.read(program.work.microbatches))


def in_flight(program: Program, sizes: Symbols, place: Place) -> sympy.Expr:
    """Micro-batches whose activations a place keeps at once, in parts of all layers of a stage. Of p stages
    with v chunks, the first stage keeps the most:

    - all m where all forward passes come first (GPipe);
    - p under 1F1B (Narayanan et al., arXiv 2104.04473, section 2.2), p + (p - 1)/v interleaved
      (Korthikanti et al., arXiv 2205.05198, section 4.2.3);
    - p on every stage of the zero-bubble schedules with the memory of 1F1B, in a V too (Qi et al., arXiv
      2401.10241 and 2405.15362); p + 1 under DualPipe (arXiv 2412.19437, table 2).

    A schedule that is not known here keeps all of them."""
    count = sizes.read(program.work.microbatches)
    stages = program.stages
    if stages is None or place.axis is None:
        return sympy.Integer(1)
    if place.name == "single":
        return count if stages.schedule in ALL_FORWARD_FIRST else sympy.Integer(1)
    depth = sizes.meanings[stages.axis]
    chunks = sizes.read(stages.chunks)
    match stages.schedule:
        case "1f1b":
            behind = {"first": 0, "middle": 1, "last": depth - 1}.get(place.name, 0)
            return sympy.Min(depth - behind, count)
        case "interleaved_1f1b" | "interleaved_zero_bubble":
            return sympy.Min(depth + (depth - 1) / chunks, count)
        case "zero_bubble" | "zbv":
            return sympy.Min(depth, count)
        case "dualpipe_v":
            return sympy.Min(depth + 1, count)
        case _:
            return count


def in_flight_at_start(program: Program, sizes: Symbols, place: Place) -> sympy.Expr:
    """The same of what stands before the first layer: with several chunks the first one runs ahead, by
    groups of as many micro-batches as there are stages, so two groups of it are in flight."""
    stages = program.stages
    if stages is None or place.name in ("all", "single") or stages.schedule not in INTERLEAVED:
        return in_flight(program, sizes, place)
    depth = sizes.meanings[stages.axis]
    return sympy.Min(2 * depth, sizes.read(program.work.microbatches))


def in_flight_at_end(program: Program, sizes: Symbols, place: Place) -> sympy.Expr:
    """The same of what stands after the last layer: its backward pass follows at once, except where all
    forward passes come first."""
    stages = program.stages
    if stages is not None and place.axis is not None and stages.schedule in ALL_FORWARD_FIRST:
        return sizes.read(program.work.microbatches)
    return sympy.Integer(1)


ALL_FORWARD_FIRST = ("gpipe", "looped_bfs")
INTERLEAVED = ("interleaved_1f1b", "interleaved_zero_bubble")


def warmed(device: int, depth: int, chunks: int, batches: int | None) -> list[tuple[int, ...]]:
    """Interleaved 1F1B with known numbers: how many micro-batches of each chunk a device has in flight, at every
    moment at which it has the most in all. Chunks take turns by groups of `depth` micro-batches, forward and, the
    other way round, backward (Narayanan et al., arXiv 2104.04473, section 2.2)."""
    enough = 4 * depth  # from there on it repeats
    total = chunks * (enough if batches is None else min(batches, enough))
    most = total if total == depth * chunks else min(total, depth * chunks + depth - 1 - 2 * device)
    flying = [0] * chunks
    found = []
    for place in range(total):
        flying[place // depth % chunks] += 1
        if place + 1 > most:
            flying[chunks - 1 - (place - most) // depth % chunks] -= 1
        if place + 1 >= most:
            found.append(tuple(flying))
    # With one group of micro-batches all forward passes come first, on every device.
    return found if batches is not None else [*found, (depth,) * chunks]
