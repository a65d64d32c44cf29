"""All obligations of a program, in the order in which findings are told: causes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from placelogic.program.facts import Flow
from placelogic.program.program import Program, Scale, ScaleLoss, Step, Weights, flat
from placelogic.prove.arriving import Doubt, doubts, in_any_case, reaches_of
from placelogic.prove.divide import division_obligations
from placelogic.prove.gradient import clip_obligations, gradient_obligations, update_count
from placelogic.prove.layers import about_values, flows_of, is_plain, line_obligations, need_obligations, through
from placelogic.prove.obligations import Obligation
from placelogic.prove.publish import publication_obligations
from placelogic.prove.run import Run
from placelogic.prove.sizes import Sizes
from placelogic.prove.start import random_obligations, start_obligations
from placelogic.prove.state import alignment_obligations, optimizer_obligations, replica_obligations, shards
from placelogic.prove.transfer import Group
from placelogic.prove.values import Trace
from placelogic.prove.whole import conflict_obligations, forward_obligations, skip_obligations


class Collected(Struct, frozen=True):
    obligations: tuple[Obligation, ...]
    traces: Mapping[str, Trace]
    doubts: tuple[Doubt, ...] = ()


def is_stated(step: Step) -> bool:
    """Whether any operation of this step was stated by a person."""
    return step.stated or bool(step.lines) or any(op.origin.stated for op in flat(step.ops))


def collect(program: Program, sizes: Sizes) -> Collected:
    """Runs every step over the value calculus and lists what has to hold."""
    facts = program.facts
    traces: dict[str, Trace] = {}
    out: list[Obligation] = [*conflict_obligations(program, sizes), *forward_obligations(program, facts, sizes)]
    for weights in program.weights:
        out += start_obligations(program, weights, sizes)
        out += random_obligations(program, weights, facts[weights.name], sizes)
    out += division_obligations(program, sizes)
    if program.layers is not None:
        from placelogic.prove.streams import stream_obligations

        out += stream_obligations(program, sizes)
    out += need_obligations(program, sizes)
    out += line_obligations(program)
    flowing: dict[str, list[tuple[Flow | None, Trace]]] = {}
    for step in program.steps:
        weights = program.group(step.weights)
        for op in flat(step.ops):
            if isinstance(op, (Scale, ScaleLoss)):
                sizes.need_divisors(op.factor)
        usual = Run(Group(program, weights, facts[weights.name], sizes)).run(step)
        found = flowing[step.weights] = [(None, usual)]
        for flow in flows_of(program, weights.name):
            found.append((flow, Run(Group(program, weights, facts[weights.name], sizes, flow)).run(step)))
        traces[step.weights] = found[-1][1] if reaches_of(program) else usual
    for step in program.steps:
        (_, usual), *others = flowing[step.weights]
        weights = program.group(step.weights)
        obligations = tuple(_of_step(program, weights, step, usual, sizes))
        if not is_plain(program, weights.name):  # no gradient of these weights comes as the facts say
            obligations = tuple(one for one in obligations if not about_values(one))
        out += obligations
        for flow, trace in others:
            assert flow is not None
            out += through(program.mesh.axes, flow, usual, _of_step(program, weights, step, trace, sizes), sizes)
    out += skip_obligations(program, flowing, sizes)
    if reaches_of(program):
        return Collected(tuple(in_any_case(program, out, sizes)), traces, tuple(doubts(program, sizes)))
    return Collected(tuple(out), traces)


def _of_step(program: Program, weights: Weights, step: Step, trace: Trace, sizes: Sizes) -> Iterator[Obligation]:
    stated = is_stated(step)
    cuts = shards(program, weights, trace, sizes)
    yield from gradient_obligations(program, weights, step, trace, sizes, stated)
    yield from update_count(weights, step, trace, stated)
    yield from alignment_obligations(program, weights, cuts, sizes, stated)
    yield from optimizer_obligations(program, weights, step, cuts, sizes, stated)
    yield from publication_obligations(program, weights, step, trace, cuts, sizes, stated)
    yield from clip_obligations(program, weights, step, trace, sizes, stated)
    yield from replica_obligations(program, weights, step, trace, cuts, sizes, stated)
