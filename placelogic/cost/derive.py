"""From a complete step program to its cost."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from placelogic.cost import layers, memory, traffic
from placelogic.cost.data import Collective, Options
from placelogic.cost.places import places_of
from placelogic.cost.schedule import bubble, in_flight
from placelogic.cost.shards import size_of
from placelogic.cost.stages import staged
from placelogic.cost.symbols import Symbols, total
from placelogic.cost.totals import Cost
from placelogic.cost.widths import QUANTISED, UNSTATED
from placelogic.program.expr import Num, holds
from placelogic.program.program import Program


def derive(program: Program, options: Options = Options()) -> Cost:
    """The cost of a program with one step per trained group. Raises SpecError (PL36x) for what costs
    do not know."""
    sizes = Symbols.of(program)
    places = staged(program, sizes, places_of(program, sizes))
    held = (*memory.held(program, sizes, places), *layers.activations(program, sizes, places, options))
    moved = (*traffic.collectives(program, sizes, places, options), *layers.boundaries(program, sizes, places, options))
    return Cost(
        name=program.name,
        axes=program.mesh.axes,
        sizes=sizes,
        places=places,
        held=held,
        transients=(
            *memory.transients(program, sizes, places, options),
            *layers.recomputed(program, sizes, places, options),
        ),
        collectives=tuple(_merged(moved)),
        parameters=total(size_of(weights, sizes) for weights in program.weights),
        bubble=bubble(program, sizes),
        in_flight={place.name: in_flight(program, sizes, place) for place in places[::-1]},
        notes=tuple(_notes(program, sizes)),
        options=options,
    )


def _merged(moved: tuple[Collective, ...]) -> Iterator[Collective]:
    """Terms that are the same on several places become one."""
    found: dict[tuple, list[Collective]] = {}
    for one in moved:
        key = replace(one, places=())
        found.setdefault((key.group, key.what, key.operation, key.axes, key.label, key.bytes, key.members, key.inner,
                          key.times, key.dtype, key.origin), []).append(one)  # fmt: skip
    for same in found.values():
        yield replace(same[0], places=tuple(place for one in same for place in one.places))


def _notes(program: Program, sizes: Symbols) -> Iterator[str]:
    for assumption in program.assumptions:
        sides = assumption.condition.left, assumption.condition.right
        left, right = (sizes.known(sizes.read(side)) for side in sides)
        if left is not None and right is not None and not holds(
            replace(assumption.condition, left=Num(left), right=Num(right)), {}
        ):  # fmt: skip
            yield f"these sizes are not allowed: `{assumption.text}` does not hold"
    silent = [w.name for w in program.weights if "params" not in w.precision]
    if silent:
        yield f"no precision of params is stated for {', '.join(silent)}: {UNSTATED} is assumed"
    if any(w.optimizer.name in QUANTISED and not w.frozen for w in program.weights):
        yield "the scales of 8-bit moments (a number for each block) are not counted"
    yield from layers.notes(program, sizes)
    yield "not counted: scalars that are reduced, workspace of kernels and of the communication library, fragmentation"
