"""Lines about gradients that reach weights, in a spec without blocks: what is wrong, or right, in any case.

Such a line acts on the gradients of its weights and of all before them, and which those are is not said. Every
obligation is about the reading in which nothing else is before; here it is made to hold in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from placelogic.problem import Problem
from placelogic.program.facts import Reach
from placelogic.program.program import Program
from placelogic.prove.formula import Formula, at_least, both, either, negate, test
from placelogic.prove.layers import about_values
from placelogic.prove.obligations import Obligation
from placelogic.prove.ratio import ONE
from placelogic.prove.sizes import Sizes

BLOCKS = (
    "write the operations of a layer in a block, and say it of one of its tensors; or say with `sync` and `scale` what "
    "the gradients of the weights come to"
)


class Doubt(Struct, frozen=True):
    """Where `changes` can hold, a spec that is right in one reading is not in another."""

    changes: Formula
    problem: Problem


def reaches_of(program: Program) -> tuple[Reach, ...]:
    return () if program.layering is None else program.layering.reaches


def doubts(program: Program, sizes: Sizes) -> Iterator[Doubt]:
    for reach in reaches_of(program):
        sizes.need_divisors(reach.factor)
        if reach.doubt is not None:
            message = f"whether this is right depends on what is not stated: {reach.doubt}"
            yield Doubt(_changes(reach, sizes), Problem("PL389", message, reach.origin.span, BLOCKS))


def in_any_case(program: Program, obligations: Iterable[Obligation], sizes: Sizes) -> Iterator[Obligation]:
    """The obligations, such that what violates one is wrong whatever comes before what.

    Of all weights with a line that changes something, those that gradients reach first meet no line but their
    own. So where the gradients of all of these are wrong by their own lines, training is wrong in any case; so it
    is, with any others that are wrong, where no line changes anything."""
    reaches = reaches_of(program)
    every = tuple(obligations)
    changed = {r.weights: either(*(_changes(o, sizes) for o in reaches if o.weights == r.weights)) for r in reaches}
    wrong = {
        name: either(*(one.violation for one in every if one.weights == name and about_values(one))) for name in changed
    }
    for one in every:
        if about_values(one):
            surely = (either(negate(changed[name]), wrong[name]) for name in changed if name != one.weights)
            one = replace(one, violation=both(one.violation, *surely))
        yield one


def _changes(reach: Reach, sizes: Sizes) -> Formula:
    """Whether the line does anything."""
    several = [at_least(sizes.size(axis), 2) for axis in reach.cut]
    return either(test("distinct", sizes.ratio(reach.factor), ONE), *several)
