"""Where to point: the statement a person would have to change, for a wrong gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placelogic.program.program import Accumulate, Program, Reduce, Scale, ScaleLoss, Step, Update, flat
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Read, Term
from placelogic.source import Span


def place(program: Program, step: Step, read: Read, code: str, axes: tuple[str, ...], mesh: Mapping[str, int]) -> Span:
    """The first stated thing that touches the blamed axes; else any stated thing; else the weights.
    What acts only on axes of one device in the counterexample's mesh changes nothing there."""
    return next(_candidates(program, step, read, code, axes, {axis for axis, size in mesh.items() if size > 1}))


def only_factor(step: Step, sizes: Sizes, terms: tuple[Term, ...], term: str | None) -> Span | None:
    """The one stated scale that is all that is wrong: without it every contribution counts once, at all sizes."""
    wrong = {t.scale for t in terms}
    if len(wrong) != 1:
        return None
    scales = [
        op.origin.span
        for op in flat(step.ops)
        if (isinstance(op, Scale) or isinstance(op, ScaleLoss) and op.term in (None, term))
        and op.origin.stated
        and sizes.ratio(op.factor) in wrong
    ]
    return scales[0] if len(scales) == 1 else None


def _candidates(
    program: Program, step: Step, read: Read, code: str, axes: tuple[str, ...], several: set[str]
) -> Iterator[Span]:
    ops = [op for op in flat(step.ops) if op.origin.stated]
    if code == "GI03":  # tokens counted over an axis that splits none
        odd = set(axes) - set(program.work.split_axes)
        yield from (loss.span for loss in program.work.losses if odd & set(loss.over) and loss.span.line)
        apart = [loss for loss in program.work.losses if set(axes) & {*loss.pieces, *loss.whole}]
        yield from (loss.span for loss in apart if loss.span.line)
        if apart and program.layers is not None:  # its tokens follow from the operation that computes it
            yield program.layers.blocks[-1].operations[-1].origin.span
    if code == "GI05" and axes:  # a sum that comes too late
        after = [*flat(step.ops)]
        start = next((index for index, op in enumerate(after) if isinstance(op, Update)), len(after))
        late = (op for op in after[start:] if isinstance(op, Reduce) and op.origin.stated)
        yield from (op.origin.span for op in late if set(op.axes) & set(axes))
    if code == "GI02":  # of several sums the first may have been right
        yield from (
            op.origin.span
            for op in reversed(ops)
            if isinstance(op, Reduce) and op.op == "sum" and set(op.axes) & set(axes)
        )
    if code != "GI01":  # what is there and wrong; a missing reduction is no operation
        yield from (op.origin.span for op in ops if isinstance(op, Reduce) and set(op.axes) & set(axes))
    yield from (line.origin.span for line in step.lines if line.axis in axes)
    yield from (feed.span for feed in program.work.feeds if feed.kind == "same" and feed.axis in axes)
    if code == "GI05":
        yield from (op.origin.span for op in ops if isinstance(op, Accumulate) and op.replace)
        if read.origin.stated:
            yield read.origin.span
    if not axes:
        yield from (op.origin.span for op in ops if isinstance(op, (Scale, ScaleLoss)))
        yield from (line.origin.span for line in step.lines if line.axis is None)
    if read.origin.stated:
        yield read.origin.span
    acting = [
        op for op in ops if isinstance(op, (Scale, ScaleLoss)) or isinstance(op, Reduce) and set(op.axes) & several
    ]
    yield from (op.origin.span for op in acting)
    yield from (line.origin.span for line in step.lines if line.axis is None or line.axis in several)
    yield from (op.origin.span for op in ops if isinstance(op, Reduce))
    yield from (line.origin.span for line in step.lines)
    if code == "GI03":
        yield from (loss.span for loss in program.work.losses if loss.span.line)
    facts = program.facts.get(step.weights, {})
    yield from (facts[axis].span for axis in axes if axis in facts)
    yield program.group(step.weights).span
