"""Scripts about what happens inside layers: the operations of a spec's blocks with what crosses between devices.

`trace` walks forward through the plan and leaves a line for each operation and each move; autograd goes back, and
every move has its own way back. `step` is what becomes of the gradients."""

from __future__ import annotations

from placelogic.program.program import Program
from placelogic.replay.cases import BROKEN, Case
from placelogic.replay.script.layers.build import Layered
from placelogic.replay.script.layers.smaller import goes_wrong, smallest
from placelogic.replay.script.lines import NotShown
from placelogic.report.diagnostic import Finding
from placelogic.run.work import Counts
from placelogic.simulate import SimulationTooLarge, simulate_layers

MOST_LINES = 130
"""Whole layers take more than the step of a few weights."""


def layered(program: Program, finding: Finding, source: str, case: Case, counts: Counts, per_item: int) -> str:
    """The program's text, where the exact simulator says that what it shows is wrong. Raises NotShown."""
    meeting = case.meeting
    if finding.code == "FW07":
        raise NotShown(f"its step cannot be carried out: {BROKEN}")
    if counts is not None:
        raise NotShown("it is about tokens that are not dealt out evenly, and what happens inside layers")
    try:
        outcome = simulate_layers(program, meeting.sizes, meeting.quantities, per_item)
        if outcome.stops:
            raise NotShown(f"its step cannot be carried out: {outcome.stops[0].reason}")
        if not goes_wrong(outcome):
            decided = "whether to skip or clip, from gradients that come through layers"
            raise NotShown(decided if outcome.differences else "it is not what the operations of its layers do")
        program = smallest(program, case, per_item, outcome)
    except SimulationTooLarge as reason:
        raise NotShown(str(reason)) from None
    text = Layered(program, finding, source, case, counts, per_item).text()
    if len(text.splitlines()) > MOST_LINES:
        raise NotShown(f"it would have {len(text.splitlines())} lines")
    return text


__all__ = ["Layered", "layered"]
