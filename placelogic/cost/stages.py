"""How the layers of several repeated blocks are shared out over stages, and what a stage keeps of them.

Stages (and their chunks) hold equally many consecutive layers, in the order of the blocks. Where the number
of stages, of chunks and of layers is known, every stage that differs is a place of its own. Where one of them
is open there is a place for each extreme: what a stage has is a mixture of these, and costs less than one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import sympy
from msgspec.structs import replace

from placelogic.cost.data import Place, Stage
from placelogic.cost.schedule import ALL_FORWARD_FIRST, INTERLEAVED, warmed
from placelogic.cost.shards import ceiling
from placelogic.cost.symbols import Symbols, total
from placelogic.program.block import Block
from placelogic.program.operations import weights_of
from placelogic.program.program import Program, Stages

Shares = tuple[sympy.Expr, ...]
"""Of each repeated block: how many layers."""

MANY = 3
"""Moments of a schedule that are told apart."""

ZERO, ONE = sympy.Integer(0), sympy.Integer(1)


def repeated(program: Program) -> tuple[Block, ...]:
    return tuple(block for block in program.layers.blocks if block.repeat is not None) if program.layers else ()


def mixed(program: Program) -> bool:
    """Whether stages hold layers of several blocks."""
    return program.stages is not None and len(repeated(program)) > 1


def bounded(program: Program, sizes: Symbols) -> bool:
    """Whether what a stage holds is bounded from above, and not told exactly."""
    stages = program.stages
    if stages is None or not mixed(program):
        return False
    return stages.vee or stages.schedule in INTERLEAVED or _numbers(program, sizes) is None


def staged(program: Program, sizes: Symbols, places: tuple[Place, ...]) -> tuple[Place, ...]:
    """The places, with what each has of every repeated block."""
    stages = program.stages
    if stages is None or not mixed(program) or any(place.axis != stages.axis for place in places):
        return places
    dealt = _Dealt(program, sizes, stages)
    return tuple(dict.fromkeys(found for place in places for found in dealt.at(place)))


class _Dealt:
    def __init__(self, program: Program, sizes: Symbols, stages: Stages) -> None:
        self.program, self.sizes, self.stages = program, sizes, stages
        self.blocks = repeated(program)
        self.counts = tuple(sizes.read(block.repeat) for block in self.blocks if block.repeat is not None)
        self.depth = sizes.meanings[stages.axis]
        self.chunks = sympy.Integer(2) if stages.vee else sizes.read(stages.chunks)
        self.batches = sizes.read(program.work.microbatches)
        self.numbers = _numbers(program, sizes)

    def at(self, place: Place) -> Iterator[Place]:
        if place.name == "single":
            flying = self.batches if self.stages.schedule in ALL_FORWARD_FIRST else ONE
            yield self._place(place, self.counts, self.counts, tuple(flying * n for n in self.counts))
        elif self.numbers is None:
            yield from self._open(place)
        else:
            yield from self._known(place)

    # --- every size known ---

    def _known(self, place: Place) -> Iterator[Place]:
        assert self.numbers is not None
        depth, chunks, counts = self.numbers
        devices = {"first": [0], "last": [depth - 1]}.get(place.name, list(range(1, depth - (place.name == "middle"))))
        seen: set[tuple[tuple[Shares, ...], ...]] = set()
        for device in devices:
            stages = [device, 2 * depth - 1 - device] if self.stages.vee else range(device, depth * chunks, depth)
            held = tuple(tuple(_shares(counts, s, depth * chunks, whole) for s in stages) for whole in (False, True))
            if held in seen:
                continue  # a stage before it has as much, and more micro-batches in flight
            seen.add(held)
            even, whole = held
            named = place if len(devices) == 1 else replace(place, when=f"{place.when}, stage {device + 1}")
            for kept, rounded in self._kept(device, even, whole):
                yield self._place(named, _sum(even), _sum(whole), kept, rounded)

    def _kept(
        self, device: int, even: tuple[Shares, ...], whole: tuple[Shares, ...]
    ) -> Iterator[tuple[Shares, Shares]]:
        """Layers times micro-batches in flight: the most there are at one time."""
        assert self.numbers is not None
        depth, chunks, _ = self.numbers
        schedule = self.stages.schedule
        known = self.sizes.known(self.batches)
        if schedule in INTERLEAVED and chunks > 1 and (known is None or known % depth == 0):
            times = warmed(device, depth, chunks, None if known is None else int(known))
            for one, rounded in _most([(_weighted(at, even), _weighted(at, whole)) for at in times]):
                if known is None:
                    one, rounded = (
                        tuple(sympy.Min(n, self.batches * all_) for n, all_ in zip(found, _sum(shares)))
                        for found, shares in ((one, even), (rounded, whole))
                    )
                yield one, rounded
            return
        if self.stages.vee or (schedule in INTERLEAVED and chunks > 1):
            passes = sympy.Min(self._passes(sympy.Integer(device)), chunks * self.batches)
            for one, rounded in zip(even, whole):
                yield tuple(passes * n for n in one), tuple(passes * n for n in rounded)
            return
        flying = self._flying(sympy.Integer(device))
        yield tuple(flying * n for n in _sum(even)), tuple(flying * n for n in _sum(whole))

    # --- some size open ---

    def _open(self, place: Place) -> Iterator[Place]:
        stage = total(self.counts) / self.depth
        device = {"first": ZERO, "last": self.depth - 1}.get(place.name, ONE)
        if self.chunks == 1 and place.name in ("first", "last"):
            ordered = self.counts if place.name == "first" else self.counts[::-1]
            flying = self._flying(device)
            even, whole = (_filled(ordered, room) for room in (stage, ceiling(stage)))
            if place.name == "last":
                even, whole = even[::-1], whole[::-1]
            yield self._place(place, even, whole, tuple(flying * n for n in even), tuple(flying * n for n in whole))
            return
        if self.chunks == 1:
            flying = self._flying(device)
        elif self.stages.schedule in ALL_FORWARD_FIRST:
            flying = self.batches
        else:
            # No chunk has more than 2p in flight, and none has more than there are.
            flying = sympy.Min(self._passes(device) if self.stages.vee else 2 * self.depth, self.batches)
        rooms = (stage, self.chunks * ceiling(total(self.counts) / (self.depth * self.chunks)))
        for order in _orders(len(self.counts)):
            even, whole = (_in_order(self.counts, room, order) for room in rooms)
            named = replace(place, when=f"{place.when}, most of {self.blocks[order[0]].name}")
            yield self._place(named, even, whole, tuple(flying * n for n in even), tuple(flying * n for n in whole))

    # --- in flight ---

    def _flying(self, device: sympy.Expr) -> sympy.Expr:
        """Micro-batches of which a stage without chunks keeps activations (docs/costs.md)."""
        match self.stages.schedule:
            case "1f1b":
                return sympy.Min(self.depth - device, self.batches)
            case "interleaved_1f1b" | "interleaved_zero_bubble":
                return sympy.Min(2 * self.depth - 1, self.batches)
            case "zero_bubble":
                return sympy.Min(self.depth, self.batches)
            case _:
                return self.batches

    def _passes(self, device: sympy.Expr) -> sympy.Expr:
        """Forward passes of chunks whose backward pass is still to come, of all chunks together."""
        match self.stages.schedule:
            case "zbv":
                return 2 * self.depth
            case "dualpipe_v":
                return 2 * self.depth + 2
            case _:
                return self.depth * self.chunks + self.depth - 1 - 2 * device

    # --- result ---

    def _place(self, place: Place, even: Shares, whole: Shares, kept: Shares, rounded: Shares | None = None) -> Place:
        names = [block.name for block in self.blocks]
        held = tuple(zip(names, even)), tuple(zip(names, whole))
        flying = tuple(zip(names, kept)), tuple(zip(names, kept if rounded is None else rounded))
        return replace(place, stage=Stage(*held, *flying, tuple(self._weights(even, whole))))

    def _weights(self, even: Shares, whole: Shares) -> Iterator[tuple[str, sympy.Expr, sympy.Expr]]:
        """Weights whose layers are those of the blocks that use them: how many of them there are here."""
        for weights in self.program.weights:
            cut = weights.params.cut(self.stages.axis)
            if weights.layers is None or cut is None or cut.dim != "layer":
                continue
            users = [
                n
                for n, block in enumerate(self.blocks)
                if any(weights_of(op) == weights.name for op in block.operations)
            ]
            layers = total(self.counts[n] for n in users)
            if users and sympy.expand(layers - self.sizes.read(weights.layers)) == 0:
                yield weights.name, total(even[n] for n in users), total(whole[n] for n in users)


def _numbers(program: Program, sizes: Symbols) -> tuple[int, int, tuple[int, ...]] | None:
    """Stages, chunks and the layers of each block, where all are known."""
    stages = program.stages
    assert stages is not None
    chunks = sympy.Integer(2) if stages.vee else sizes.read(stages.chunks)
    wanted = [sizes.meanings[stages.axis], chunks, *(sizes.read(b.repeat) for b in repeated(program) if b.repeat)]
    known = [sizes.known(one) for one in wanted]
    if any(one is None or one.denominator != 1 for one in known):
        return None
    depth, pieces, *counts = (int(one) for one in known if one is not None)
    return depth, pieces, tuple(counts)


def _shares(counts: Sequence[int], stage: int, stages: int, whole: bool) -> Shares:
    """Layers of each block on one of so many stages: those between its first and its last."""
    all_ = sympy.Integer(sum(counts))
    room = ceiling(all_ / stages) if whole else all_ / stages
    start, end = stage * room, min((stage + 1) * room, all_)
    found, before = [], 0
    for count in counts:
        found.append(max(ZERO, min(end, before + count) - max(start, before)))
        before += count
    return tuple(sympy.sympify(one) for one in found)


def _filled(counts: Sequence[sympy.Expr], room: sympy.Expr) -> Shares:
    """Layers of each block among the first `room` ones."""
    found: list[sympy.Expr] = []
    before: sympy.Expr = ZERO
    for count in counts:
        left = room if before == 0 else sympy.Max(0, room - before)
        found.append(sympy.Min(count, left))
        before += count
    return tuple(found)


def _in_order(counts: Sequence[sympy.Expr], room: sympy.Expr, order: Sequence[int]) -> Shares:
    filled = _filled([counts[n] for n in order], room)
    return tuple(filled[order.index(n)] for n in range(len(counts)))


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    return permutations(range(count))


def _sum(shares: Sequence[Shares]) -> Shares:
    return tuple(total(column) for column in zip(*shares))


def _weighted(times: Sequence[int], shares: Sequence[Shares]) -> Shares:
    return tuple(total(n * share for n, share in zip(times, column)) for column in zip(*shares))


def _most(found: Sequence[tuple[Shares, Shares]]) -> list[tuple[Shares, Shares]]:
    """Those that no other one covers; where they are many, the largest of each number instead."""
    kept: list[tuple[Shares, Shares]] = []
    for one in dict.fromkeys(found):
        flat = one[0] + one[1]
        if not any(all(a <= b for a, b in zip(flat, other[0] + other[1])) for other in found if other != one):
            kept.append(one)
    if len(kept) <= MANY:
        return kept
    return [tuple(tuple(map(max, zip(*(one[n] for one in kept)))) for n in (0, 1))]  # type: ignore[list-item]
