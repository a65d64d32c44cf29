"""Which update of a step runs, and which buffer it reads."""

from __future__ import annotations

from placelogic.program.program import Loop, Op, Step, Update, flat
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either, negate
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Read, Trace


def fed(step: Step, sizes: Sizes) -> tuple[tuple[str | None, Formula], ...]:
    """The buffers that the update may read, and the sizes at which it is each of them.

    An update of a micro-batch that does not exist is none; of several that run, the first counts (they are
    refuted anyway)."""
    found = list(_updates(step, sizes))
    names = list(dict.fromkeys(update.buffer for update, _ in found))
    if len(names) < 2:
        return ((names[0] if names else None, TRUE),)
    before: Formula = FALSE
    when: dict[str | None, Formula] = dict.fromkeys(names, FALSE)
    for update, runs in found:
        when[update.buffer] = either(when[update.buffer], both(runs, negate(before)))
        before = either(before, runs)
    return tuple(when.items())


def read_next(step: Step, op: Op) -> str | None:
    """Clip and a gather of gradients work on what the next update below them reads."""
    ops = list(flat(step.ops))
    at = next(index for index, one in enumerate(ops) if one is op)
    return next((one.buffer for one in (*ops[at:], *ops) if isinstance(one, Update)), None)


def _updates(step: Step, sizes: Sizes) -> list[tuple[Update, Formula]]:
    out = []
    for op in step.ops:
        runs = _turns(op, sizes) if isinstance(op, Loop) else TRUE
        out += [(inner, runs) for inner in flat((op,)) if isinstance(inner, Update)]
    return out


def _turns(loop: Loop, sizes: Sizes) -> Formula:
    """The sizes at which the loop has a turn."""
    match loop.subset:
        case "index":
            return at_least(sizes.microbatches, loop.index or 0)
        case "but_first" | "but_last":
            return at_least(sizes.microbatches, 2)
        case _:
            return TRUE


def runs(read: Read) -> Formula:
    """The sizes at which it is reached at all."""
    return at_least(read.times, 1)


def updates(trace: Trace, sizes: Sizes) -> tuple[tuple[Read, Formula], ...]:
    """The updates that run at some size, each with the sizes at which it is the last one."""
    found = [read for read in trace.reads if read.what == "update"]
    out = []
    for read in found:
        later = either(*(runs(other) for other in found if other.order > read.order))
        when = both(runs(read), negate(later))
        if not sizes.never(when):
            out.append((read, when))
    return tuple(out)
