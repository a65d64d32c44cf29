"""How a job starts: SC05 (copies start equal, shards survive) and SC07 (random streams)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placelogic.problem import Problem
from placelogic.program.facts import Fact
from placelogic.program.program import Origin, Program, Weights
from placelogic.prove.formula import TRUE, Formula, alike, at_least, both, either
from placelogic.prove.obligations import Obligation
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import laid_out_apart, members


def start_obligations(program: Program, weights: Weights, sizes: Sizes) -> Iterator[Obligation]:
    """SC05: copies start equal, and no broadcast overwrites shards."""
    unequal: dict[str, tuple[Formula, Origin]] = {}
    apart = laid_out_apart(weights, sizes)
    for op in weights.init:
        for axis in op.axes:
            several = at_least(members(weights, sizes, axis), 2)
            cut = weights.params.cut(axis)
            stages = weights.uses is not None and weights.uses.axis == axis
            if op.kind == "different":
                # Shards are other elements: they may well start from other numbers. Not so where one
                # element lies on another coordinate on the other stage.
                flat = alike(cut is not None and cut.dim, "flat")
                unequal[axis] = (both(several, either(alike(cut, None), both(flat, apart))), op.origin)
            elif cut is not None or (stages and not sizes.never(apart)):
                yield Obligation(
                    name=f"start of {weights.name}: broadcast over {axis}",
                    code="SC05",
                    weights=weights.name,
                    axes=(axis,),
                    violation=several if cut is not None else apart,
                    span=op.origin.span,
                    stated=op.origin.stated,
                    variant="shards" if cut is not None else "stages",
                )
                if cut is None:  # where the buffers are laid out alike, the stages are equal now
                    unequal[axis] = (alike(op.kind, "different"), op.origin)
            else:
                unequal[axis] = (alike(op.kind, "different"), op.origin)
    for axis, (violation, origin) in unequal.items():
        yield Obligation(
            name=f"start of {weights.name} over {axis}",
            code="SC05",
            weights=weights.name,
            axes=(axis,),
            violation=violation,
            span=origin.span,
            stated=origin.stated,
            variant="different",
        )


def random_obligations(
    program: Program, weights: Weights, facts: Mapping[str, Fact], sizes: Sizes
) -> Iterator[Obligation]:
    """SC07: random streams are equal where values must be copies."""
    for line in weights.random:
        fact = facts[line.axis]
        activation = weights.activations.cut(line.axis)
        parts = fact.kind == "partial" or (activation is not None and activation.letter == "S")
        if fact.kind == "shard" and not parts:
            continue  # own parts of shared work: see ambiguous_streams
        several = at_least(members(weights, sizes, line.axis), 2)
        wrong = both(alike(line.kind, "different"), alike(parts, False))
        odd = both(alike(line.kind, "same"), alike(parts, True))
        yield Obligation(
            name=f"random streams of {weights.name} over {line.axis}",
            code="SC07",
            weights=weights.name,
            axes=(line.axis,),
            violation=both(several, either(wrong, odd)),
            span=line.origin.span,
            stated=line.origin.stated,
            variant="same" if odd == TRUE else "different",
            warning=odd == TRUE,
        )


def ambiguous_streams(program: Program) -> Iterator[Problem]:
    """`different` along an axis that only cuts the weights it names: between its shards the streams
    must differ, and where the partial results meet again they must be the same. One word is too few."""
    lines: dict[tuple[str, Origin], list[bool]] = {}
    for weights in program.weights:
        for line in weights.random:
            if line.kind == "different":
                fact = program.facts[weights.name][line.axis]
                activation = weights.activations.cut(line.axis)
                own = fact.kind == "shard" and not _own_layers(program, weights, line.axis)
                unclear = own and (activation is None or activation.letter != "S")
                lines.setdefault((line.axis, line.origin), []).append(unclear)
    for (axis, origin), unclear in lines.items():
        if all(unclear):
            yield Problem(
                "PL344",
                f"along {axis} these weights compute their own parts of one result: whether their random numbers "
                "may differ depends on where they are drawn",
                origin.span,
                f"cut the activations (`place ... over {axis} {{ activations sharded on heads }}`), "
                "or state the streams of the weights that are copies there",
            )


def _own_layers(program: Program, weights: Weights, axis: str) -> bool:
    """Whether devices along the axis are stages with layers of their own: no two draw for one of these."""
    cut = weights.params.cut(axis)
    return program.stages is not None and program.stages.axis == axis and cut is not None and cut.dim == "layer"
