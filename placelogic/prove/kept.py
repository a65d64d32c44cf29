"""GI05: gradients that are not kept (materialized) must be consumed at once."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.program.program import Program, Skip, Step, Update, Weights, flat
from placelogic.prove.formula import Formula, alike, at_least, negate
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes


def kept_obligations(program: Program, weights: Weights, step: Step, sizes: Sizes) -> Iterator[Obligation]:
    """One for each reason why a gradient that is not kept would be needed later (docs/semantics.md)."""
    origin = weights.gradients.materialized
    if origin is None:
        return
    uses = weights.uses
    twice = uses is not None and uses.first and uses.last
    if program.layers is not None:
        from placelogic.layers.operations import tied  # so that specs without blocks start faster

        twice = twice or weights.name in tied(program.layers.blocks)
    reasons: list[tuple[Formula, str]] = [
        (at_least(sizes.microbatches, 2), "there are several micro-batches"),
        (negate(alike(program.clip, None)), "the global norm is needed first"),
        (alike(_skips(step), True), "whether to skip the update depends on all gradients"),
        (alike(twice, True), "the weights are used twice in a backward pass"),
    ]
    for violation, why in reasons:
        yield Obligation(
            name=f"materialised gradients of {weights.name}: {why}",
            code="GI05",
            weights=weights.name,
            axes=(),
            violation=violation,
            span=origin.span,
            stated=origin.stated,
            variant="not kept",
            words={"why": why},
        )


def _skips(step: Step) -> bool:
    """Whether the step decides, before its update, if it comes at all."""
    ops = list(flat(step.ops))
    return any(isinstance(op, Skip) and any(isinstance(o, Update) for o in ops[i:]) for i, op in enumerate(ops))
