"""What the operations of layers add to the obligations: values that must be right forward, and gradients
that reach weights in another way than the facts say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from placelogic.program.facts import Flow, Layering, Parts, Path, When
from placelogic.program.ops import Origin
from placelogic.program.program import Program
from placelogic.prove.differ import sum_differs
from placelogic.prove.formula import FALSE, TRUE, Formula, at_least, both, either
from placelogic.prove.kinds import PARTIAL, REPLICATED, Kind, spoil, tie
from placelogic.prove.obligations import Obligation, Through
from placelogic.prove.sizes import Sizes
from placelogic.prove.values import Term, Trace


def need_obligations(program: Program, sizes: Sizes) -> Iterator[Obligation]:
    """FW03, FW04: a value that one device would not have; FW05: something that does not lie as it must."""
    layering = program.layering
    for need in layering.needs if layering is not None else ():
        when = when_of(need.when, sizes)
        axes = (need.axis,) if need.axis is not None else ()
        for path in (path for _, paths in need.parts for path in paths):
            sizes.need_divisors(path.scale)
        yield Obligation(
            name=f"{need.operation} of {need.tensor} in {need.block}",
            code="FW05" if need.axis is not None else "FW",
            weights=None,
            axes=axes,
            violation=both(
                when,
                at_least(sizes.size(need.axis), 2)
                if need.axis is not None
                else _wrong(program.mesh.axes, need.parts, sizes),
            ),
            span=need.origin.span,
            stated=need.origin.stated,
            need=need,
        )


def line_obligations(program: Program) -> Iterator[Obligation]:
    """One for each axis of what a person wrote of a boundary: a `forward` or `backward` line, or a collective.
    Along a boundary that something wrong came through, or that may be why something does
    not lie as it must, there is none: the obligation about that is its own."""
    layering = program.layering
    if layering is None or program.layers is None:
        return
    met = {origin for path in _paths(layering) for origin in path.through}
    met |= {need.origin for need in layering.needs}
    unfit = {need.axis for need in layering.needs if need.axis is not None}
    for axis, name, origin, changes in _lines(program, layering):
        if origin.stated and origin not in met and not (changes and axis in unfit):
            yield Obligation(
                name=f"{name} over {axis}",
                code="FW",
                weights=None,
                axes=(axis,),
                violation=FALSE,  # every value and gradient that comes through was followed, and is as it has to be
                span=origin.span,
                stated=True,
            )


def _lines(program: Program, layering: Layering) -> Iterator[tuple[str, str, Origin, bool]]:
    for crossing in layering.crossings:
        name = f"{crossing.direction} {crossing.tensor}" + (f" of {crossing.block}" if crossing.block else "")
        yield crossing.axis, name, crossing.origin, crossing.changes
    if program.layers is None:
        return
    from placelogic.program.block import Collective

    for block in program.layers.blocks:
        for op in block.operations:
            if isinstance(op, Collective):
                for axis in op.axes:
                    yield axis, f"{op.kind} {op.output} of {block.name}", op.origin, True


def _paths(layering: Layering) -> Iterator[Path]:
    for flow in layering.flows:
        yield from flow.paths
        yield from (path for _, paths in flow.beyond or () for path in paths)
    for need in layering.needs:
        yield from (path for _, paths in need.parts for path in paths)


def _wrong(axes: tuple[str, ...], parts: Parts, sizes: Sizes) -> Formula:
    return either(
        *(
            sum_differs(axes, sizes, tuple(term_of(axes, path, sizes) for path in paths), sizes.size, times)
            for times, paths in parts
        )
    )


def term_of(axes: tuple[str, ...], path: Path, sizes: Sizes) -> Term:
    """A value of a tensor, or what a layer makes of a gradient, as a term: whole, or a share, along each axis."""
    kinds: list[Kind] = []
    for axis in axes:
        kind = PARTIAL if axis in path.partial else REPLICATED
        if axis in path.tied:
            kind = tie(kind)
        if axis in path.lost:
            kind = spoil(kind, at_least(sizes.size(axis), 2), "is made of partial values that cannot be combined so")
        kinds.append(kind)
    scale = sizes.ratio(path.scale)
    return Term(scale, tuple(kinds), counted=tuple(sorted(path.counted)), unknown=Term(scale, ()).unknown)


def flows_of(program: Program, weights: str) -> tuple[Flow, ...]:
    layering = program.layering
    return () if layering is None else tuple(flow for flow in layering.flows if flow.weights == weights)


def is_plain(program: Program, weights: str) -> bool:
    """Whether some gradient of these weights comes as the facts say."""
    return program.layering is None or weights in program.layering.plain


def about_values(one: Obligation) -> bool:
    """Whether an obligation is about what a gradient is worth."""
    return one.values is not None or one.code == "SC01"


def through(
    axes: tuple[str, ...], flow: Flow, usual: Trace, obligations: Iterable[Obligation], sizes: Sizes
) -> Iterator[Obligation]:
    """The obligations about values, for a gradient that comes by these paths."""
    when = when_of(flow.when, sizes)
    beyond = TRUE if flow.beyond is None else _wrong(axes, flow.beyond, sizes)
    updates = [read.terms for read in usual.reads if read.what == "update"]
    for path in flow.paths:
        sizes.need_divisors(path.scale)
    for one in obligations:
        if about_values(one):
            yield replace(
                one,
                name=f"{one.name}, by {flow.tensor} of {flow.block}"
                if flow.block
                else f"{one.name}, by what reaches it",
                violation=both(when, one.violation, beyond),
                stated=True,
                through=Through(flow, updates[0] if updates else {}),
            )


def when_of(alternatives: When, sizes: Sizes) -> Formula:
    if not alternatives:
        return TRUE
    return either(*(both(*(sizes.condition(one) for one in conditions)) for conditions in alternatives))
