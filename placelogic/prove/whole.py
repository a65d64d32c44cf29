"""Conditions beyond one group's step: what a device can compute, decisions of the job, composition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placelogic.program.facts import Facts
from placelogic.program.program import Axes, Program, Skip, Weights
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Read, Trace, members, unseen, within_loop


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
                    message=f"a device cannot compute with `{weights.name}`: {fact.because}",
                    label=f"only a shard is there along {axis}",
                    shown=("shard {i} of the parameters", "all parameters"),
                    help="use `gathered` (S*) for params, which gathers them before use",
                )
        origin = weights.params.materialized
        if origin is not None:
            yield Obligation(
                name=f"parameters of {weights.name} can be recomputed",
                code="FW01",
                weights=weights.name,
                axes=(),
                violation=FALSE if weights.master and not weights.frozen else TRUE,
                span=origin.span,
                stated=origin.stated,
                message=f"the parameters of `{weights.name}` are materialized, but there is no master copy to make them from",
                label="nothing to recompute from",
                help="keep them, or state a master copy: precision { master fp32 }",
            )
    # Devices that split a sequence attend over one sample together: they share its computation too.
    apart = {split.axis for split in program.work.splits if split.dim != "sequence"}
    for feed in program.work.feeds:
        wrong = feed.kind == "different" and feed.axis not in apart
        yield Obligation(
            name=f"samples along {feed.axis}",
            code="FW02",
            weights=None,
            axes=(feed.axis,),
            violation=at_least(sizes.size(feed.axis), 2) if wrong else FALSE,
            span=feed.span,
            stated=True,
            message=f"devices along {feed.axis} share one computation, but are fed different samples",
            label=f"{feed.axis} splits {'one sequence' if feed.axis in program.work.split_axes else 'no work'}",
            shown=("samples {i}", "one batch"),
            help=f"feed the same samples along {feed.axis}, or say what it splits (`batch over {feed.axis}`)",
            fault="nonuniform",
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
            message=conflict.message,
            label="placed a second time here",
            help="say it once, or name the weights in the statement that is to win",
        )


def skip_obligations(program: Program, traces: Mapping[str, Trace], sizes: Sizes) -> Iterator[Obligation]:
    """SC08: whether to skip the step is one decision of the whole job."""
    decisions: dict[tuple[Axes, object], list[tuple[Weights, Read]]] = {}
    for step in program.steps:
        skips = [op for op in step.ops if isinstance(op, Skip)]
        reads = [read for read in traces[step.weights].reads if read.what == "skip"]
        for skip, read in zip(skips, reads):
            decisions.setdefault((skip.axes, skip.origin), []).append((program.group(step.weights), read))
    for (axes, origin), seen in decisions.items():
        for index, axis in enumerate(program.mesh.axes):
            differ = FALSE if axis in axes else either(*(_sees_other(program, w, r, index, axis, sizes) for w, r in seen))
            yield Obligation(
                name=f"one decision to skip, over {axis}",
                code="SC08",
                weights=None,
                axes=(axis,),
                violation=differ,
                span=seen[0][1].origin.span,
                stated=True,
                message=f"devices along {axis} may decide differently whether to skip the step",
                label=f"{axis} is left out, and devices along it see different gradients",
                shown=("decides from gradients {i}", "one decision"),
                help=f"add {axis} to the axes of `skip on overflow over ...`",
                fault="nonuniform",
            )


def _sees_other(program: Program, weights: Weights, read: Read, index: int, axis: str, sizes: Sizes) -> Formula:
    """Devices along the axis hold different values of this group at this point."""
    several = at_least(members(weights, sizes, axis), 2)
    out: list[Formula] = []
    for term in (t for terms in read.terms.values() for t in terms):
        kind = term.kinds[index]
        if kind.cut is not None or kind.value == "share":
            out.append(both(term.when, several))
        if kind.mixed:
            out.append(both(term.when, kind.ruined))
    # Stages that hold nothing of it see no gradient; that matters where they update other weights.
    out.append(unseen(program, weights, sizes, axis))
    return within_loop(either(*out), sizes)
