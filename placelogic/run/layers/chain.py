"""One way through the layers of a plan, one operation after the other, with what crosses between devices.

It goes forward; what is done on the way back is handed over with what is done forward, so whoever computes
(algebra.py) goes back the way it came: along a tape of exact numbers, or by PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic

from msgspec import Struct, field

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import inputs
from placelogic.program.plan import Boundary, Move, Plan
from placelogic.run.grid import Grid
from placelogic.run.layers.algebra import Algebra, Site
from placelogic.run.layers.crossing import Crossing, Ragged, Step, backward, forward
from placelogic.run.layers.habits import Habits
from placelogic.run.layers.lay import Data, Labels, Tensor, part
from placelogic.run.layers.operations import operate
from placelogic.run.stop import GroupStop


class Layer(Struct, Generic[Data]):
    """What was met in one layer. `tensors`: as they are where they were made; `read`: as their readers got them, by
    tensor and the boundaries before these readers."""

    block: Block
    number: int
    tensors: dict[str, Tensor[Data]] = field(default_factory=dict)
    read: dict[tuple[str, tuple[int, ...]], Tensor[Data]] = field(default_factory=dict)


class Chain(Generic[Data]):
    """`blocks`: every layer, repeated ones as often as they are repeated. `sizes`: of whole dimensions. `habits` None: one
    device, which does what the model says."""

    def __init__(
        self, grid: Grid, plan: Plan, blocks: Sequence[Block], sizes: Mapping[str, int], algebra: Algebra[Data],
        habits: Habits | None = None,
    ) -> None:  # fmt: skip
        self.grid, self.plan, self.blocks, self.sizes = grid, plan, blocks, sizes
        self.algebra, self.habits = algebra, habits
        self._stop: GroupStop | None = None
        routers = [(block, op) for block in blocks for op in block.operations if isinstance(op, bl.Router)]
        tokens = frozenset(dim for block, op in routers for dim in block.tensors[op.output])
        self.ragged = Ragged(frozenset(op.experts for _, op in routers), tokens)

    def turn(self) -> None:
        """Before the way back. Raises GroupStop where a device cannot go it."""
        if self._stop is not None:
            raise self._stop

    def forward(self, tokens: Tensor[Data]) -> Tensor[Data]:
        """What the last block leaves. Raises GroupStop where a device cannot go on."""
        value = tokens
        for number, block in enumerate(self.blocks):
            layer: Layer[Data] = Layer(block, number)
            self._make(layer, block.input, self.algebra.entered(block, block.input, value))
            for index, op in enumerate(block.operations):
                ins = [self._take(layer, index, slot, name) for slot, name in enumerate(inputs(op))]
                if isinstance(op, bl.Collective):
                    out = self.algebra.entered(block, op.output, ins[0])
                    for axis, moves in self.plan.moves.get((block.name, index), {}).items():
                        out = self._crossed(op.output, out, axis, moves, (number, op.output, "written"))
                else:
                    site = self._site(layer, index, op, ins)
                    out = self.algebra.made(site, operate(self.algebra, site))
                self._make(layer, op.output, out)
            value = layer.tensors[block.result]
        return value

    def _make(self, layer: Layer[Data], name: str, value: Tensor[Data]) -> None:
        layer.tensors[name] = self._through(layer, name, value, self.plan.at(layer.block.name, name, None))

    def _take(self, layer: Layer[Data], index: int, slot: int, name: str) -> Tensor[Data]:
        """Readers of one boundary get the same tensor: what comes back from them is added up first."""
        boundaries = self.plan.at(layer.block.name, name, (index, slot))
        key = name, tuple(map(id, boundaries))
        if key not in layer.read:
            to = f"{name}_{layer.block.operations[index].output}"
            layer.read[key] = self._through(layer, to, layer.tensors[name], boundaries)
        return layer.read[key]

    def _through(
        self, layer: Layer[Data], name: str, value: Tensor[Data], boundaries: Sequence[Boundary]
    ) -> Tensor[Data]:
        for one in boundaries:
            place = layer.number, one.tensor, one.consumers
            value = self._crossed(name, value, one.axis, (one.forward, one.backward), place)
        return value

    def _crossed(
        self, name: str, value: Tensor[Data], axis: str, moves: tuple[Move, Move], place: tuple[object, ...]
    ) -> Tensor[Data]:
        there, back = moves
        lays, steps = forward(value.lays, there, axis, self.grid, self.ragged)
        returned: list[Step] = []
        try:
            returned = backward(lays, back, value.lays, axis, self.grid, self.ragged, self.algebra.by_position)
        except GroupStop as stop:
            self._stop = stop  # the first that a backward pass comes to
        if there.idle and back.idle:
            return Tensor(lays, value.data)
        written = place[-1] == "written"
        crossing = Crossing((*place, axis), axis, value.lays, lays, moves, steps, returned, self.ragged, written)
        return Tensor(lays, self.algebra.crossed(name, value, crossing))

    # --- one operation ------------------------------------------------------------------------

    def _site(self, layer: Layer[Data], index: int, op: bl.Operation, ins: list[Tensor[Data]]) -> Site[Data]:
        every, block = range(self.grid.count), layer.block
        apart: list[tuple[int, ...]] = [() for _ in every]
        counted, keys = [int for _ in every], {}
        if self.habits is not None:
            whole = self.sizes.get("sequence", 1)
            apart = [self.habits.apart(block, op.output, x, ins[0].lays) for x in every]
            attends = isinstance(op, bl.Attention)
            lays = layer.tensors[op.query].lays if attends else ins[0].lays
            counted = [self.habits.position(block, op.output, x, lays, whole) for x in every]
            if attends and op.positions:
                # Keys are counted where they are made, before they are brought together.
                lays = layer.tensors[op.key].lays
                for x in every:
                    of = self.habits.position(block, op.output, x, lays, whole)
                    keys.update({place: of(place) for place in lays[x].along(op.sequence)})
        scores = layer.tensors[op.router] if isinstance(op, bl.Dispatch) else None
        mine = [dict(self._mine(layer, index, op, x)) for x in every]
        work = self.plan.work.get((block.name, index), {})
        shared = tuple(axis for axis, one in work.items() if one.pieces is not None)
        return Site(
            block, layer.number, index, op, self.grid, self.sizes, ins, scores, mine, apart, counted, keys, shared
        )

    def _mine(self, layer: Layer[Data], index: int, op: bl.Operation, x: int) -> Iterator[tuple[str, Labels]]:
        """The places of a dimension that the weights of device x, or its experts, cover, where these are not all."""
        work = self.plan.work.get((layer.block.name, index), {})
        cut: dict[str, list[str]] = {}
        for axis in self.grid.axes:
            if axis in work:
                dim = work[axis].pieces if isinstance(op, bl.Dispatch | bl.Combine) else work[axis].weights
                if dim is not None:
                    cut.setdefault(dim, []).append(axis)
        for dim, axes in cut.items():
            labels: Labels = tuple(range(self.sizes[dim]))
            for axis in axes:
                labels = part(labels, self.grid.size[axis], self.grid.coordinate[axis][x])
            yield dim, labels
