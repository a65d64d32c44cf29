"""What a replay held and sent, beside what the spec says."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from placelogic.program.program import Layout, Program
from placelogic.replay.cases import Case
from placelogic.replay.direct import Run
from placelogic.report.replayed import Bytes

MOMENTS = 2
"""Arrays that an optimizer keeps, beside a master copy."""


def accounts(case: Case, run: Run) -> tuple[Bytes, ...]:
    """Held between steps, the largest of all ranks; sent in one step, on rank 0."""
    if not run.held:
        return ()
    derived = _held(case.meeting.program, case.meeting.sizes, run.elements, run.width)
    found = []
    for state, amount in derived.items():
        measured = max(held[state] for held in run.held)
        cause = "the largest shard: sizes do not divide" if measured != amount else None
        found.append(Bytes(f"{state} held", measured, amount, cause))
    for (purpose, kind), amount in sorted(run.sent.items()):
        found.append(Bytes(f"{kind} of {purpose}", amount))
    return tuple(found)


def _held(program: Program, sizes: Mapping[str, int], elements: Mapping[str, int], width: int) -> dict[str, int]:
    total = {"params": Fraction(0), "optimizer": Fraction(0), "gradients": Fraction(0)}
    for group in program.weights:
        count = elements[group.name] * width
        total["params"] += count * _part(group.params, sizes)
        if group.frozen:
            continue
        copies = MOMENTS + (1 if group.master else 0)
        total["optimizer"] += copies * count * _part(group.optimizer_state, sizes)
        step = program.step(group.name)
        if step is not None:
            total["gradients"] += count * _part(group.gradients, sizes)
    return {state: ceil(amount) for state, amount in total.items()}


def _part(layout: Layout, sizes: Mapping[str, int]) -> Fraction:
    part = Fraction(1)
    for cut in layout.cuts:
        for axis in cut.axes:
            part /= sizes[axis]
    return part
