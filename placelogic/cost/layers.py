"""Saved activations and the traffic of layer operations: read from the plan of a spec that states its layers.

What is kept and sent is said by `placelogic.layers`, per layer and micro-batch; here it is multiplied by the
layers of a stage and the micro-batches in flight. A spec without blocks has neither, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sympy
from msgspec import Struct

from placelogic.cost.data import Collective, Held, Options, Place, Transient
from placelogic.cost.schedule import in_flight, in_flight_at_end, in_flight_at_start
from placelogic.cost.shards import ceiling
from placelogic.cost.stages import bounded, mixed, repeated
from placelogic.cost.symbols import Symbols, largest, total
from placelogic.cost.widths import width, widths_of
from placelogic.layers.derive import complete
from placelogic.layers.saved import Saved, hosted, saved, spanning
from placelogic.layers.sent import Sent, sent
from placelogic.layers.stages import stage_of
from placelogic.problem import Problem, SpecError
from placelogic.program.block import Block
from placelogic.program.expr import show
from placelogic.program.operations import weights_of
from placelogic.program.plan import Plan
from placelogic.program.program import Program

NOT_DERIVED = "activations, and what layers send to each other, are not derived: the spec states no layer operations"
STATISTICS = "not counted: row statistics of norms and of fused attention (two numbers, or one, for each row)"
SPREAD = (
    "assumed: stages hold equally many consecutive layers of {blocks}, in this order; weights and activations of a stage "
    "are those of its layers"
)
BOUNDED = (
    "activations, and layers on stages that are not the first or last, are at most this: which layers meet on one stage, "
    "or are in flight together, is taken as it costs the most where it is not determined"
)

WIDTHS = {"mask": "int8", "softmax": "fp32"}
"""Dropout masks take a byte an element; the probabilities of the loss are kept in 32 bits."""


def has_layers(program: Program) -> bool:
    """Whether the program states the operations of its layers."""
    return program.layers is not None and bool(program.layers.blocks)


def notes(program: Program, sizes: Symbols) -> Iterator[str]:
    """What is left out, and what is assumed, in words."""
    if not has_layers(program):
        yield NOT_DERIVED
        return
    yield STATISTICS
    if mixed(program):
        names = _listed(block.name for block in repeated(program))
        yield SPREAD.format(blocks=names)
        if bounded(program, sizes):
            yield BOUNDED


def _listed(names: Iterable[str]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} and {last}" if most else last


class _Reading(Struct, frozen=True):
    """A program whose layers are known, with what turns its dimensions into sizes."""

    program: Program
    sizes: Symbols
    plan: Plan
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, program: Program, sizes: Symbols, options: Options) -> _Reading | None:
        if not has_layers(program) or not options.activations:
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
        if block.repeat is not None and place.stage is not None:
            return dict(place.stage.even)[block.name]
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

    def made_again(self, block: Block, one: Saved, place: Place, whole: bool) -> sympy.Expr:
        """Bytes while a region runs again: of as many layers as run together."""
        found = self.elements(one) * width(self.dtype_of(block, one))
        if one.every is None:
            return found
        together = sympy.Min(self.sizes.read(one.every), self.there(block, place, whole))
        return found * (together - 1 if one.inner else together)

    def there(self, block: Block, place: Place, whole: bool) -> sympy.Expr:
        """Layers of a block on a place, where they divide evenly, or as `whole` ones."""
        layers = self.layers_on(block, place)
        stages = self.program.stages
        if not whole or block.repeat is None or stages is None or place.name in ("all", "single"):
            return layers
        if place.stage is not None:
            return dict(place.stage.whole)[block.name]
        if place.name != "last":
            return ceiling(layers)
        before = (self.sizes.meanings[stages.axis] - 1) * ceiling(layers)
        return sympy.Max(0, self.sizes.read(block.repeat) - before, evaluate=False)

    def dtype_of(self, block: Block, one: Saved) -> str:
        return WIDTHS.get(one.width) or self.dtype(block)


def activations(program: Program, sizes: Symbols, places: tuple[Place, ...], options: Options) -> tuple[Held, ...]:
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
            if layers == 0 and (place.stage is None or dict(place.stage.whole).get(block.name, 0) == 0):
                continue
            flying, rounded = _layers_kept(reading, block, place)
            for dtype in dict.fromkeys(reading.dtype_of(block, one) for one in kept if one.block == block.name):
                mine = [one for one in kept if one.block == block.name and reading.dtype_of(block, one) == dtype]
                elements = sympy.factor(total(reading.elements(one) for one in mine))
                host = hosted(reading.program, block)
                yield Held(
                    place, "activations", "activations", block.name, host, elements * flying, elements * rounded,
                    width(dtype), dtype,
                )  # fmt: skip


def _layers_kept(reading: _Reading, block: Block, place: Place) -> tuple[sympy.Expr, sympy.Expr]:
    """Layers times micro-batches in flight of which a place keeps something: where all divides evenly, and as whole
    layers. Of layers that run again together it is one; a chunk keeps one too for those that are left over."""
    batches = _in_flight(reading, block, place)
    layers, whole = (reading.there(block, place, rounded) for rounded in (False, True))
    even, rounded = layers * batches, whole * batches
    if place.stage is not None and block.repeat is not None:
        even, rounded = (dict(found)[block.name] for found in (place.stage.kept, place.stage.rounded))
    every = spanning(block)
    if every is None:
        return even, rounded
    together, stages = reading.sizes.read(every), reading.program.stages
    alone = stages is None or place.name in ("all", "single")
    chunks = sympy.Integer(1) if alone or stages is None else reading.sizes.read(stages.chunks)
    if stages is not None and stages.vee and not alone:
        chunks = sympy.Integer(2)
    groups = layers / (together * chunks)
    known = reading.sizes.known(groups)
    if known is not None and 0 < known < 1:
        even = even / (groups * together)
    else:
        even = even / together
    if place.stage is None or alone or chunks == 1:
        return even, chunks * ceiling(whole / (chunks * together)) * batches
    # Each chunk may have one more than divides evenly, for every micro-batch of it in flight.
    return even, rounded / together + chunks * batches


def _in_flight(reading: _Reading, block: Block, place: Place) -> sympy.Expr:
    """The micro-batches whose activations a place keeps of a block: of the ends, those that the first stage
    has begun, and those whose loss has no gradient yet."""
    if block.repeat is not None or not any(other.repeat is not None for other in reading.blocks):
        return in_flight(reading.program, reading.sizes, place)
    repeated = [i for i, other in enumerate(reading.blocks) if other.repeat is not None]
    if reading.blocks.index(block) < repeated[0]:
        return in_flight_at_start(reading.program, reading.sizes, place)
    return in_flight_at_end(reading.program, reading.sizes, place)


def recomputed(program: Program, sizes: Symbols, places: tuple[Place, ...], options: Options) -> Iterator[Transient]:
    """What exists while a region runs again: that of the largest region of each block, in one layer."""
    reading = _Reading.of(program, sizes, options)
    if reading is None:
        return
    made = [one for one in saved(reading.program, reading.plan) if one.region is not None and one.width != "statistics"]
    for block in reading.blocks:
        mine = [one for one in made if one.block == block.name]
        regions = dict.fromkeys(one.region for one in mine)
        every = spanning(block)
        several = "one" if every is None else show(every)
        unit = block.name if block.repeat is None else f"{several} of {show(block.repeat)} layers"
        for place in places if regions else ():
            if reading.layers_on(block, place) != 0:
                even, rounded = (
                    largest(
                        total(reading.made_again(block, one, place, whole) for one in mine if one.region == n)
                        for n in regions
                    )
                    for whole in (False, True)
                )
                yield Transient(place, "recomputed", unit, block.name, even, rounded, reading.dtype(block))


# --- traffic ----------------------------------------------------------------------------------


def boundaries(program: Program, sizes: Symbols, places: tuple[Place, ...], options: Options) -> tuple[Collective, ...]:
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
