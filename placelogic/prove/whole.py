"""Conditions beyond one group's step: what a device can compute, decisions of the job, composition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from placelogic.program.facts import Facts, Flow
from placelogic.program.program import Origin, Program, Weights
from placelogic.prove.feeding import runs
from placelogic.prove.formula import FALSE, Formula, alike, at_least, both, either, negate, not_zero
from placelogic.prove.layers import is_plain, when_of
from placelogic.prove.obligations import Obligation, Through
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Read, Trace, members, unseen, within_loop
from placelogic.report.sentences import Words
from placelogic.source import Span


def _elsewhere(program: Program, axis: str, cut: Span) -> Words:
    """Whether parameters that are cut along an axis, as the statement `cut` says, could be so along another one."""
    split = next((split for split in program.work.splits if split.axis == axis), None)
    return {} if split is None or split.span == cut else {"elsewhere": True, "dim": split.dim}


def forward_obligations(program: Program, facts: Facts, sizes: Sizes) -> Iterator[Obligation]:
    """FW01: parameters are there when needed. FW02: partners compute with the same samples."""
    for weights in program.weights:
        for axis, fact in facts[weights.name].items():
            if fact.kind == "absent":
                yield Obligation(
                    name=f"parameters of {weights.name} over {axis}",
                    code="FW01",
                    weights=weights.name,
                    axes=(axis,),
                    violation=at_least(sizes.size(axis), 2),
                    span=fact.span,
                    stated=False,
                    variant="absent",
                    words={"because": fact.because, **_elsewhere(program, axis, fact.span)},
                )
        origin = weights.params.materialized
        if origin is not None:
            yield Obligation(
                name=f"parameters of {weights.name} can be recomputed",
                code="FW01",
                weights=weights.name,
                axes=(),
                violation=negate(both(alike(weights.master, True), alike(weights.frozen, False))),
                span=origin.span,
                stated=origin.stated,
                variant="materialized",
            )
    # Devices that split a sequence attend over one sample together: they share its computation too.
    splitting = {split.axis for split in program.work.splits if split.dim != "sequence"}
    for feed in program.work.feeds:
        apart = both(*(negate(alike(feed.axis, axis)) for axis in splitting))
        yield Obligation(
            name=f"samples along {feed.axis}",
            code="FW02",
            weights=None,
            axes=(feed.axis,),
            violation=both(at_least(sizes.size(feed.axis), 2), alike(feed.kind, "different"), apart),
            span=feed.span,
            stated=True,
            variant="sequence" if feed.axis in program.work.split_axes else "no work",
        )


def conflict_obligations(program: Program, sizes: Sizes) -> Iterator[Obligation]:
    """CC01: no state of a group is placed twice along an axis, in conflict."""
    for conflict in program.conflicts:
        yield Obligation(
            name=f"placement of {conflict.state} of {conflict.weights} over {conflict.axis}",
            code="CC01",
            weights=conflict.weights,
            axes=(conflict.axis,),
            violation=at_least(sizes.size(conflict.axis), 2),
            span=conflict.second.span,
            stated=conflict.second.stated,
            variant="conflict",
            words=conflict.words,
        )


def skip_obligations(
    program: Program, flowing: Mapping[str, Sequence[tuple[Flow | None, Trace]]], sizes: Sizes
) -> Iterator[Obligation]:
    """SC08: whether to skip the step is one decision of the whole job. The skips of all steps make it together, as
    all clips are one event: each looks at the gradients of all trained weights, over its own axes. So the decision
    is a copy along an axis that some skip leaves out only where every gradient is. A step may skip twice: the
    second skips are another decision, in which a step with one takes part with that one. A skip that no update comes
    after decides nothing, and counts as none.

    `flowing`: weights -> what their step makes of gradients that come as the facts say (None), and otherwise."""
    seen: list[tuple[Weights, Flow | None, list[Read]]] = []
    yield from _all_or_none(flowing, sizes)
    for name, traces in flowing.items():
        for flow, trace in traces:
            acting = ((read, _acts(trace, read)) for read in trace.reads if read.what == "skip")
            reads = [replace(read, when=both(read.when, acts)) for read, acts in acting if not sizes.never(acts)]
            if reads:
                seen.append((program.group(name), flow, reads))
    rounds = max((len({read.order for read in reads}) for _, _, reads in seen), default=0)
    for number in range(rounds):
        together = [(weights, flow, read) for weights, flow, reads in seen for read in _round(reads, number)]
        for axis in program.mesh.axes:
            yield from _over(program, axis, together, f"the {number + 1}. " if rounds > 1 else "one ", sizes)


def _acts(trace: Trace, skip: Read) -> Formula:
    """The sizes at which an update comes after this skip."""
    return either(*(runs(read) for read in trace.reads if read.what == "update" and read.order > skip.order))


def _all_or_none(flowing: Mapping[str, Sequence[tuple[Flow | None, Trace]]], sizes: Sizes) -> Iterator[Obligation]:
    """Where the updates of some weights are skipped, those of all are."""
    skipping: dict[str, Formula] = {}
    idle: dict[str, Read] = {}
    for name, ((_, trace), *_) in flowing.items():
        skips = [read for read in trace.reads if read.what == "skip"]
        skipping[name] = either(*(_acts(trace, read) for read in skips))
        if skips and not sizes.always(skipping[name]):
            idle[name] = skips[-1]
    if not idle:
        return
    spared, late = next(iter(idle.items()))
    others = ", ".join(f"`{name}`" for name, acts in skipping.items() if acts != FALSE and name != spared)
    yield Obligation(
        name="a skip of all updates, or of none",
        code="SC08",
        weights=None,
        axes=(),
        violation=both(either(*skipping.values()), negate(both(*skipping.values()))),
        span=late.origin.span,
        stated=True,
        variant="some",
        words={"others": others, "spared": f"`{spared}`"},
    )


def _round(reads: list[Read], number: int) -> list[Read]:
    """What the skip of this number reads (from each buffer that may be updated from), else the last one."""
    orders = sorted({read.order for read in reads})
    return [read for read in reads if read.order == orders[min(number, len(orders) - 1)]]


def _over(
    program: Program, axis: str, seen: list[tuple[Weights, Flow | None, Read]], which: str, sizes: Sizes
) -> Iterator[Obligation]:
    apart = [read for _, _, read in seen if axis not in read.axes]
    where = apart[0].origin if apart else seen[0][2].origin
    several = len({frozenset(read.axes) for _, _, read in seen}) > 1
    usual = [
        both(read.when, _sees_other(program, weights, read, axis, sizes))
        for weights, flow, read in seen
        if flow is None and apart
    ]
    decision = _decision(axis, f"{which}decision to skip, over {axis}", where, either(*usual), several)
    yield decision
    for weights, flow, read in seen:
        if flow is not None and apart:
            differ = both(when_of(flow.when, sizes), read.when, _differs(program, weights, read, axis, sizes))
            if not sizes.never(differ):
                name = f"{decision.name}, by {flow.tensor} of {flow.block}"
                yield replace(decision, name=name, violation=differ, through=Through(flow, {}))


def _decision(axis: str, name: str, origin: Origin, differ: Formula, several: bool) -> Obligation:
    return Obligation(
        name=name,
        code="SC08",
        weights=None,
        axes=(axis,),
        violation=differ,
        span=origin.span,
        stated=True,
        variant="skip",
        words={"every": several},
    )


def _sees_other(program: Program, weights: Weights, read: Read, axis: str, sizes: Sizes) -> Formula:
    """Devices along the axis hold different values of this group at this point."""
    differ = FALSE
    if is_plain(program, weights.name):  # else none of its gradients comes as this trace has it
        differ = _differs(program, weights, read, axis, sizes)
    # Stages that hold nothing of it see no gradient; that matters where they update other weights.
    return either(differ, unseen(program, weights, sizes, axis))


def _differs(program: Program, weights: Weights, read: Read, axis: str, sizes: Sizes) -> Formula:
    several = at_least(members(weights, sizes, axis), 2)
    index = program.mesh.axes.index(axis)
    out: list[Formula] = []
    for term in (t for terms in read.terms.values() for t in terms):
        kind = term.kinds[index]
        if kind.cut is not None or kind.value == "partial":
            out.append(both(term.when, several, not_zero(term.scale)))
        if kind.mixed:
            out.append(both(term.when, kind.ruined))
    return within_loop(either(*out), sizes)
