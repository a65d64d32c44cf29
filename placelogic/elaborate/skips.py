"""Skipping a step on overflow: one decision of all trained weights, about gradients that are there."""

from __future__ import annotations

from collections.abc import Sequence

from placelogic.elaborate.log import Log
from placelogic.elaborate.steps import StatedStep
from placelogic.program import program as pg
from placelogic.program.program import Op


def check_together(
    steps: dict[str, tuple[Op, ...]], trained: Sequence[str], items: dict[str, StatedStep], log: Log
) -> None:
    """A skip is one decision for all: it must stand in the step of all trained weights, and look at something."""
    skipping = [name for name, ops in steps.items() if any(isinstance(op, pg.Skip) for op in pg.flat(ops))]
    without = [name for name in trained if name not in skipping]
    if skipping and without:
        step = items[skipping[0]]
        log.at(step.item, "PL333", f"`{skipping[0]}` skips the update on overflow and `{without[0]}` does not",
               step.statement.span, "write `skip on overflow` in the step of all trained weights")  # fmt: skip
    for name in skipping:
        _check_seen(name, steps[name], items[name], log)


def _check_seen(name: str, ops: tuple[Op, ...], step: StatedStep, log: Log) -> None:
    """A skip looks at what the next update reads; where that is still empty, and another buffer is not, it is not
    said what it looks at."""
    order = list(pg.flat(ops))
    for at, op in enumerate(order):
        if not isinstance(op, pg.Skip):
            continue
        filled = dict.fromkeys(one.buffer for one in order[:at] if isinstance(one, pg.Accumulate))
        later = [one.buffer for one in order[at:] if isinstance(one, pg.Update)]
        wanted = later or [one.buffer for one in order if isinstance(one, pg.Update)]
        if filled and wanted and not set(wanted) & set(filled):
            read, other = (f"buffer `{b}`" if b else "the unnamed buffer" for b in (wanted[0], next(iter(filled))))
            log.at(step.item, "PL348", f"this skip stands before anything is accumulated into {read}, which the update of "
                   f"`{name}` reads, and after {other} is filled: which of them it looks at is not said",
                   op.origin.span, f"move it below the accumulate into {read}")  # fmt: skip
