"""Other faults behind one that was found: what an accepted fault must not hide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from placelogic.program.program import Program
from placelogic.prove.confirm import Confirmation, complete
from placelogic.prove.differ import without_factor
from placelogic.prove.formula import both, test
from placelogic.prove.obligations import Obligation
from placelogic.prove.ratio import ONE
from placelogic.prove.sizes import Sizes
from placelogic.prove.smallest import Found, GaveUp
from placelogic.report.diagnostic import Finding


def others(
    program: Program,
    sizes: Sizes,
    one: Obligation,
    known: Finding,
    env: Mapping[str, int],
    search: Callable[[Obligation], Found | GaveUp | None],
    tell: Callable[[Obligation, Mapping[str, int], Mapping[str, int] | None], Finding],
    gave_up: Callable[[Obligation, str], Finding],
) -> Iterator[Finding]:
    """Further faults of the same obligation: those that show where each one before is made good. Along axes it is
    where these are 1; a constant factor, by its inverse; else, where there is one micro-batch, or one device along
    what the counterexample needed."""
    rest = one
    single: set[str] = set()
    scaled = False
    while True:
        axes = set(known.axes)
        made_good = None
        if known.code == "GI03" and not axes and not scaled:
            made_good = without_factor(program, sizes, rest, complete(sizes, env))
        if made_good is not None:
            rest, scaled = made_good, True
        else:
            mesh = known.counterexample.mesh if known.counterexample is not None else {}
            axes = axes or {axis for axis, size in mesh.items() if size > 1}
            turns = not known.axes and sizes.microbatches != ONE and "microbatches" not in single
            if single.issuperset(axes) and not turns:
                return  # the same fault: a factor such as dp/2 is wrong at dp = 1 too
            single |= axes
            alone = [test("=", sizes.size(axis), ONE) for axis in axes]
            if turns:
                single.add("microbatches")
                alone = [test("=", sizes.microbatches, ONE)]
            rest = replace(rest, violation=both(rest.violation, *alone))
        match search(rest):
            case Found(sizes=env, confirmation=Confirmation(wrong=True, at=at)):
                known = tell(rest, env, at)
                if known.axes and single.issuperset(known.axes):
                    return
                yield known
            case GaveUp(reason=reason):
                yield gave_up(rest, reason)
                return
            case _:
                return
