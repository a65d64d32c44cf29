"""What a replay held and sent, beside what the spec says."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from msgspec.structs import replace

from placelogic.problem import SpecError
from placelogic.program.expr import number
from placelogic.program.program import Layout, Program, Reduce, flat
from placelogic.replay.cases import Case
from placelogic.replay.direct import Run
from placelogic.replay.meshes import fixed
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
    sent = _sent(case, run)
    for purpose, kind in sorted({*sent, *run.sent}):
        measured, amount = run.sent.get((purpose, kind), 0), sent.get((purpose, kind))
        if amount is None and purpose in ("params", "gradients"):
            amount = 0
        cause = None
        if amount is not None and amount != measured:
            gathered = (purpose, kind) == ("params", "all-gather") and measured < amount
            whole = (purpose, kind) == ("gradients", "all-reduce") and _scattered(case.meeting.program)
            more = WHOLE if whole else "shards are padded to the largest"
            cause = ONCE if gathered else more if measured > amount else None
        found.append(Bytes(f"{kind} of {purpose}", measured, amount, cause))
    return tuple(found)


WHOLE = "the interpreter reduces whole buffers, also where only the own shard of them is left"
ONCE = "the interpreter gathers what it computes with once a step, and keeps it"


def _scattered(program: Program) -> bool:
    """Whether some step goes on with a buffer of which only the own shard counts."""
    return any(isinstance(op, Reduce) and op.scattered for step in program.steps for op in flat(step.ops))


def _sent(case: Case, run: Run) -> dict[tuple[str, str], int]:
    """What the first device sends for parameters and gradients, by the formulas of `placelogic cost`."""
    from placelogic.cost import derive

    program = fixed(case.meeting)
    weights = tuple(
        replace(group, size=number(run.elements[group.name]), precision=_all_wide(group.precision))
        for group in program.weights
    )
    try:
        cost = derive(replace(program, weights=weights))
    except SpecError:  # an optimizer or a precision whose costs are not known
        return {}
    found: dict[tuple[str, str], int] = {}
    for one in cost.collectives:
        if not any(place.name in ("all", "single", "first") for place in one.places) or not one.device_to_device:
            continue
        purpose = "params" if "params" in one.what else None
        if one.what == "gradients" or one.what.startswith("for "):  # what an optimizer gathers is read off gradients
            purpose = "gradients"
        amount = cost.known(one.bytes * one.times)
        if purpose is None or amount is None or one.operation == "all-to-all":
            continue
        key = purpose, one.operation
        found[key] = found.get(key, 0) + round(amount * run.width / WIDE)
    return found


WIDE = 8
"""Bytes of fp64."""


def _all_wide(precision: Mapping[str, str]) -> dict[str, str]:
    """Every number in fp64, as it is replayed; the same copies are kept."""
    every = ("params", "compute", "gradients", "moments")
    return dict.fromkeys((*every, *(["master"] if "master" in precision else [])), "fp64")


def _held(program: Program, sizes: Mapping[str, int], elements: Mapping[str, int], width: int) -> dict[str, int]:
    """On the device that holds most: ends of a pipeline hold weights that others do not."""
    total = {"params": Fraction(0), "optimizer": Fraction(0), "gradients": Fraction(0)}
    along = [group.uses.axis for group in program.weights if group.uses is not None]
    for stage in range(sizes[along[0]] if along else 1):
        here = _held_on(program, sizes, elements, width, stage)
        total = {state: max(amount, here[state]) for state, amount in total.items()}
    return {state: ceil(amount) for state, amount in total.items()}


def _held_on(
    program: Program, sizes: Mapping[str, int], elements: Mapping[str, int], width: int, stage: int
) -> dict[str, Fraction]:
    total = {"params": Fraction(0), "optimizer": Fraction(0), "gradients": Fraction(0)}
    for group in program.weights:
        uses = group.uses
        if uses is not None:
            last = uses.last_stage(sizes)
            if not (uses.first and stage == 0 or uses.last and stage == last):
                continue
        count = elements[group.name] * width
        total["params"] += count * _part(group.params, sizes)
        if group.frozen:
            continue
        copies = MOMENTS + (1 if group.master else 0)
        total["optimizer"] += copies * count * _part(group.optimizer_state, sizes)
        if program.step(group.name) is not None:
            total["gradients"] += count * _part(group.gradients, sizes)
    return total


def _part(layout: Layout, sizes: Mapping[str, int]) -> Fraction:
    part = Fraction(1)
    for cut in layout.cuts:
        for axis in cut.axes:
            part /= sizes[axis]
    return part
