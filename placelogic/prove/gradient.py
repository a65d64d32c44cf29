"""Gradient integrity: what is fed to the optimizer is the single-device gradient, clip factor included."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.program.program import GlobalNorm, Program, Step, Weights
from placelogic.prove.differ import coefficient_differs
from placelogic.prove.feeding import updates
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either, negate, test
from placelogic.prove.kept import kept_obligations
from placelogic.prove.obligations import Obligation, Values
from placelogic.prove.ratio import ONE, Ratio, const
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Read, Term, Trace, members, unseen, within_loop
from placelogic.source import Span


def gradient_obligations(
    program: Program, weights: Weights, step: Step, trace: Trace, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """GI for one weight group: values at the update, tokens, the loop's buffer, a materialised gradient."""
    where = _where(step, weights)
    for read in (read for read in trace.reads if read.what == "update"):
        for loss in program.work.losses:
            terms = read.terms[loss.name]
            violation = both(read.when, coefficient_differs(program, weights, sizes, terms, trace.times))
            span = read.origin.span if read.origin.stated else where
            yield Obligation(
                name=f"gradient of {weights.name}{_of(loss.name)} at the update",
                code="GI",
                weights=weights.name,
                axes=(),
                violation=violation,
                span=span,
                stated=stated,
                values=Values(loss.name, terms, read),
            )
    for clash in trace.clashes:
        yield Obligation(
            name=f"buffer of {weights.name} over {clash.axis}",
            code="GI06",
            weights=weights.name,
            axes=(clash.axis,),
            violation=clash.when,
            span=clash.origin.span,
            stated=stated,
            variant="whole into a shard" if clash.whole else "shard into a whole",
        )
    if not program.work.tokens_even:
        yield from _uneven(program, weights, sizes, stated)
    yield from kept_obligations(program, weights, step, sizes)


def _of(term: str | None) -> str:
    return "" if term is None else f" (loss {term})"


def _where(step: Step, weights: Weights) -> Span:
    return step.origin.span if step.stated else weights.span


def _uneven(program: Program, weights: Weights, sizes: Sizes, stated: bool) -> Iterator[Obligation]:
    """A mean that does not count over everything that is split weighs items by their neighbours."""
    for loss in program.work.losses:
        if not loss.mean:
            continue
        missing = tuple(axis for axis in loss.splits(program.work.split_axes) if axis not in loss.over)
        groups = sizes.product(missing) * (ONE if loss.microbatches else sizes.microbatches)
        yield Obligation(
            name=f"token weights of {weights.name}{_of(loss.name)}",
            code="GI04",
            weights=weights.name,
            axes=missing,
            violation=at_least(groups, 2),
            span=loss.span,
            stated=stated,
            variant="mean" if loss.span != program.span else "mean by default",
        )


# --- clipping -------------------------------------------------------------------------------


def clip_obligations(
    program: Program, weights: Weights, step: Step, trace: Trace, sizes: Sizes, stated: bool
) -> Iterator[Obligation]:
    """GI07: one clip factor, from the norm of the whole, complete gradient, before the update."""
    clip = program.clip
    if clip is None:
        return
    where = _where(step, weights)
    ends = updates(trace, sizes)
    counted = [read for read in trace.reads if read.what == "clip"]

    def before(update: Read) -> list[Read]:
        """The clips that this update reads; one that comes after the last update is read by nobody."""
        return [read for read in counted if read.order <= update.order]

    once = [(update, when, test("distinct", _total(before(update)), ONE)) for update, when in ends]
    many = either(*(both(when, wrong) for _, when, wrong in once)) if once else test("distinct", _total(counted), ONE)

    def make(name: str, violation: Formula, variant: str, **more: object) -> Obligation:
        fields = dict(axes=(), span=where, stated=stated) | more
        return Obligation(
            name=f"{name} of {weights.name}",
            code="GI07",
            weights=weights.name,
            violation=violation,
            variant=variant,
            **fields,
        )

    yield make("clipping once", many, "once", own=True)
    for read in counted:
        used = either(*(when for update, when in ends if update.order >= read.order)) if ends else TRUE
        if sizes.never(used):
            continue
        span = read.origin.span if read.origin.stated else where
        for loss in program.work.losses:
            terms = read.terms[loss.name]
            yield make(
                f"complete gradient{_of(loss.name)} at the clip",
                both(read.when, used, coefficient_differs(program, weights, sizes, terms, trace.times)),
                "incomplete",
                span=span,
                values=Values(loss.name, terms, read),
                own=not any(_alike(terms, update.terms[loss.name]) for update, _ in ends),
            )
        if clip.listed is not None:
            yield from _norm(program, weights, clip, read, used, sizes, make)
    for update, when, wrong in once:
        for loss in program.work.losses:
            late = tuple(term for term in update.terms[loss.name] if not term.clipped)
            if not late or not before(update):
                continue
            yield make(
                f"everything{_of(loss.name)} clipped that is updated from",
                both(when, update.when, negate(wrong), coefficient_differs(program, weights, sizes, late, 0)),
                "unclipped",
                span=update.origin.span if update.origin.stated else where,
                values=Values(loss.name, late, update),
                own=True,
            )


def _alike(one: tuple[Term, ...], other: tuple[Term, ...]) -> bool:
    """Whether what is clipped is what is updated from: then one fault makes both wrong."""
    return [(t.scale, t.kinds, t.when) for t in one] == [(t.scale, t.kinds, t.when) for t in other]


def _norm(
    program: Program, weights: Weights, clip: GlobalNorm, read: Read, used: Formula, sizes: Sizes, make
) -> Iterator[Obligation]:
    """The stated sum of squares counts each element exactly once, along every axis."""
    assert clip.listed is not None
    listed, origin = clip.listed.get(weights.name, ((), clip.origin))
    for index, axis in enumerate(program.mesh.axes):
        cut = either(*(t.when for terms in read.terms.values() for t in terms if t.kinds[index].cut is not None))
        summed = axis in listed
        violation = both(used, within_loop(_miscounted(program, weights, sizes, axis, cut, summed), sizes))
        variant = "copies" if summed else "not held" if cut == FALSE else "left out"
        yield make(f"norm over {axis}", violation, variant, axes=(axis,), span=origin.span, stated=True)


def _miscounted(program: Program, weights: Weights, sizes: Sizes, axis: str, cut: Formula, summed: bool) -> Formula:
    """`cut`: the sizes at which each device holds only its own elements along the axis."""
    holders = members(weights, sizes, axis)
    if summed:
        return both(at_least(holders, 2), negate(cut))
    return either(both(at_least(holders, 2), cut), unseen(program, weights, sizes, axis))


def _total(reads: list[Read]) -> Ratio:
    total = const(0)
    for read in reads:
        total = total + read.times
    return total


def update_count(weights: Weights, step: Step, trace: Trace, stated: bool) -> Iterator[Obligation]:
    """One update per step: never is SC02, more than once uses gradients before they are complete."""
    found = [read for read in trace.reads if read.what == "update"]
    times = _total(found)
    span = found[0].origin.span if found and found[0].origin.stated else _where(step, weights)
    yield Obligation(
        name=f"an updater for {weights.name}",
        code="SC02",
        weights=weights.name,
        axes=(),
        violation=test("<", times, ONE),
        span=span,
        stated=stated,
        variant="never updated",
    )
    yield Obligation(
        name=f"one update of {weights.name} per step",
        code="GI05",
        weights=weights.name,
        axes=(),
        violation=test(">", times, ONE),
        span=span,
        stated=stated,
        variant="twice",
    )
