"""Saved activations and the traffic of layer operations: read from the plan of a spec that states its layers.

What is kept and sent is said by `placelogic.layers`, per layer and micro-batch; here it is multiplied by the
layers of a stage and the micro-batches in flight. A spec without blocks has neither, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy

from placelogic.cost.data import Collective, Held, Options, Place, Transient
from placelogic.cost.schedule import in_flight, in_flight_at_end, in_flight_at_start
from placelogic.cost.symbols import Sizes, largest, total
from placelogic.cost.widths import width, widths_of
from placelogic.layers.derive import complete
from placelogic.layers.operations import weights_of
from placelogic.layers.saved import Saved, hosted, saved
from placelogic.layers.sent import Sent, sent
from placelogic.layers.stages import stage_of
from placelogic.problem import Problem, SpecError
from placelogic.program.block import Block
from placelogic.program.expr import show
from placelogic.program.plan import Plan
from placelogic.program.program import Program

NOT_DERIVED = "activations, and what layers send to each other, are not derived: the spec states no layer operations"
STATISTICS = "not counted: row statistics of norms and of fused attention (two numbers, or one, for each row)"
SPREAD = (
    "activations are not derived: {blocks} are both repeated, and the spec does not say which stages have which layers"
)

WIDTHS = {"mask": "int8", "softmax": "fp32"}
"""Dropout masks take a byte an element; the probabilities of the loss are kept in 32 bits."""


def has_layers(program: Program) -> bool:
    """Whether the program states the operations of its layers."""
    return program.layers is not None and bool(program.layers.blocks)


def notes(program: Program) -> Iterator[str]:
    """What is left out, in words."""
    if not has_layers(program):
        yield NOT_DERIVED
    elif (names := _unclear(program)) is not None:
        yield SPREAD.format(blocks=names)
    else:
        yield STATISTICS


def _unclear(program: Program) -> str | None:
    assert program.layers is not None
    repeated = [block.name for block in program.layers.blocks if block.repeat is not None]
    if program.stages is None or len(repeated) < 2:
        return None
    return " and ".join(f"`{name}`" for name in repeated)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A program whose layers are known, with what turns its dimensions into sizes."""

    program: Program
    sizes: Sizes
    plan: Plan
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, program: Program, sizes: Sizes, options: Options) -> _Reading | None:
        if not has_layers(program) or not options.activations or _unclear(program) is not None:
            return None
        laid = program if program.layering is not None else complete(program)
        assert laid.layering is not None and laid.layers is not None
        return cls(laid, sizes, laid.layering.plan, laid.layers.blocks)

    def elements(self, one: Saved | Sent) -> sympy.Expr:
        """Of one array on one device: each axis divides the dimension that it cuts."""
        assert self.program.layers is not None
        found = sympy.Mul(*(self.sizes.read(self.program.layers.sizes[dim]) for dim in one.dims))
        if one.share is not None:
            found *= self.sizes.read(one.share)
        return found / sympy.Mul(*(self.sizes.meanings[axis] for axis in one.cut))

    def layers_on(self, block: Block, place: Place) -> sympy.Expr:
        """How many of a block's layers a device of this place has: those before the repeated ones are on the
        first stage, those after them on the last."""
        count = sympy.Integer(1) if block.repeat is None else self.sizes.read(block.repeat)
        if self.program.stages is None or place.name in ("all", "single"):
            return count
        if block.repeat is not None:
            return count / self.sizes.meanings[self.program.stages.axis]
        last = stage_of(self.program, block.name) == "last" and not self.program.stages.vee
        return sympy.Integer(1 if place.name == ("last" if last else "first") else 0)

    def dtype(self, block: Block) -> str:
        """What activations of a block are computed in. Raises SpecError (PL362)."""
        names = dict.fromkeys(name for op in block.operations if (name := weights_of(op)) is not None)
        groups = [self.program.group(name) for name in names]
        matrices = [group for group in groups if group.kind != "vector"] or groups
        found = {widths_of(group).compute: group for group in matrices}
        if len(found) > 1:
            one, two = list(found.items())[:2]
            message = f"block `{block.name}` computes `{one[1].name}` in {one[0]} and `{two[1].name}` in {two[0]}"
            hint = "costs know activations of one dtype: give the matrices of a block one `compute` precision"
            raise SpecError(Problem("PL362", message, two[1].span, hint))
        return next(iter(found), "fp32")

    def bytes(self, block: Block, one: Saved) -> sympy.Expr:
        return self.elements(one) * width(self.dtype_of(block, one))

    def dtype_of(self, block: Block, one: Saved) -> str:
        return WIDTHS.get(one.width) or self.dtype(block)


def activations(program: Program, sizes: Sizes, places: tuple[Place, ...], options: Options) -> tuple[Held, ...]:
    """Saved activations of the layers, per place, for all micro-batches in flight. Raises SpecError."""
    reading = _Reading.of(program, sizes, options)
    if reading is None:
        return ()
    return tuple(_held(reading, places))


def _held(reading: _Reading, places: tuple[Place, ...]) -> Iterator[Held]:
    kept = [one for one in saved(reading.program, reading.plan) if one.region is None and one.width != "statistics"]
    for place in places:
        for block in reading.blocks:
            layers = reading.layers_on(block, place)
            if layers == 0:
                continue
            flying = layers * _in_flight(reading, block, place)
            for dtype in dict.fromkeys(reading.dtype_of(block, one) for one in kept if one.block == block.name):
                mine = [one for one in kept if one.block == block.name and reading.dtype_of(block, one) == dtype]
                elements = sympy.factor(total(reading.elements(one) for one in mine)) * flying
                host = hosted(reading.program, block)
                yield Held(
                    place, "activations", "activations", block.name, host, elements, elements, width(dtype), dtype
                )


def _in_flight(reading: _Reading, block: Block, place: Place) -> sympy.Expr:
    """The micro-batches whose activations a place keeps of a block: of the ends, those that the first stage
    has begun, and those whose loss has no gradient yet."""
    if block.repeat is not None or not any(other.repeat is not None for other in reading.blocks):
        return in_flight(reading.program, reading.sizes, place)
    repeated = [i for i, other in enumerate(reading.blocks) if other.repeat is not None]
    if reading.blocks.index(block) < repeated[0]:
        return in_flight_at_start(reading.program, reading.sizes, place)
    return in_flight_at_end(reading.program, reading.sizes, place)


def recomputed(program: Program, sizes: Sizes, places: tuple[Place, ...], options: Options) -> Iterator[Transient]:
    """What exists while a region runs again: that of the largest region of each block, in one layer."""
    reading = _Reading.of(program, sizes, options)
    if reading is None:
        return
    made = [one for one in saved(reading.program, reading.plan) if one.region is not None and one.width != "statistics"]
    for block in reading.blocks:
        regions: dict[int | None, sympy.Expr] = {}
        for one in made:
            if one.block == block.name:
                regions[one.region] = regions.get(one.region, sympy.Integer(0)) + reading.bytes(block, one)
        if not regions:
            continue
        amount = largest(list(regions.values()))
        unit = block.name if block.repeat is None else f"one of {show(block.repeat)} layers"
        for place in places:
            if reading.layers_on(block, place) != 0:
                yield Transient(place, "recomputed", unit, block.name, amount, amount, reading.dtype(block))


# --- traffic ----------------------------------------------------------------------------------


def boundaries(program: Program, sizes: Sizes, places: tuple[Place, ...], options: Options) -> tuple[Collective, ...]:
    """Collectives inside layers, and what stages send to the next. Raises SpecError."""
    reading = _Reading.of(program, sizes, options)
    if reading is None:
        return ()
    return tuple(
        found
        for one in sent(reading.program, reading.plan)
        for place in places
        if (found := _message(reading, one, place, options)) is not None
    )


def _message(reading: _Reading, one: Sent, place: Place, options: Options) -> Collective | None:
    sizes, program = reading.sizes, reading.program
    block = next(block for block in reading.blocks if block.name == one.block)
    members = sympy.Mul(*(sizes.meanings[axis] for axis in one.axes))
    if sizes.known(members) == 1:
        return None
    inner = sympy.Mul(*(sizes.meanings[axis] for axis in one.axes if axis not in options.inter))
    batches = sizes.read(program.work.microbatches)
    times = _sends(reading, one, place) if one.kind == "send" else batches * reading.layers_on(block, place)
    if times == 0:
        return None
    dtype = reading.dtype(block)
    size = reading.elements(one) * width(dtype)
    what = {"forward": one.tensor, "backward": f"gradient of {one.tensor}", "again": f"{one.tensor} once more"}[
        one.when
    ]
    what += " (ring)" if one.ring else ""
    label = program.mesh.label(one.axes)
    return Collective(
        (place,), block.name, what, one.kind, one.axes, label, size, members, inner, times, dtype, one.origin
    )  # fmt: skip


def _sends(reading: _Reading, one: Sent, place: Place) -> sympy.Expr:
    """How often a device of this place hands something on per step: every chunk sends to the next, but the very
    last one; gradients go the other way. In a V the last device keeps what its two chunks hand each other."""
    stages = reading.program.stages
    assert stages is not None
    count = reading.sizes.read(reading.program.work.microbatches)
    depth = reading.sizes.meanings[stages.axis]
    if place.name == "single":
        return sympy.Integer(0)
    if stages.vee:
        return count if place.name == "first" else count * sympy.Min(2, depth - 1)
    chunks = reading.sizes.read(stages.chunks)
    end = "last" if one.when == "forward" else "first"
    return count * (chunks - 1 if place.name == end else chunks)
