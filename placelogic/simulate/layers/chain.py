"""One way through the layers of a plan: forward, then backward, one operation after the other.

It knows the order of things, and nothing of numbers: a value stands for a tensor on all devices, and is made, moved
and added up by whoever runs the chain: exactly, on small integers (exact.py), or by PyTorch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct, field

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.plan import Move, Plan, Work
from placelogic.run.grid import Grid
from placelogic.simulate.layers.arrays import Labels
from placelogic.simulate.layers.one import inputs
from placelogic.simulate.layers.ragged import Ragged

Value = TypeVar("Value")


class Layer(Struct, Generic[Value]):
    """What was met on the way forward. `before`: a tensor before each of its boundaries; `crossed`: the same
    on the way to one reader, or (slot -1) before each move of a collective; `read`: what a reader got."""

    block: Block
    number: int
    arrays: dict[str, Value] = field(default_factory=dict)
    before: dict[tuple[str, int], Value] = field(default_factory=dict)
    read: dict[tuple[int, int], Value] = field(default_factory=dict)
    crossed: dict[tuple[int, int, int], Value] = field(default_factory=dict)


class Chain(ABC, Generic[Value]):
    """`blocks`: every layer, repeated ones as often as they are repeated. `sizes`: of whole dimensions."""

    def __init__(self, grid: Grid, plan: Plan, blocks: Sequence[Block], sizes: Mapping[str, int]) -> None:
        self.grid = grid
        self.plan = plan
        self.blocks = blocks
        self.sizes = sizes
        self.layers: list[Layer[Value]] = []
        routers = [(block, op) for block in blocks for op in block.operations if isinstance(op, bl.Router)]
        tokens = frozenset(dim for block, op in routers for dim in block.tensors[op.output])
        self.ragged = Ragged(frozenset(op.experts for _, op in routers), tokens)

    # --- what whoever runs it does ------------------------------------------------------------

    @abstractmethod
    def moved(self, value: Value, move: Move, axis: str) -> Value:
        """A tensor after a move. Raises GroupStop where the arrays are no such pieces."""

    @abstractmethod
    def moved_back(self, value: Value, move: Move, axis: str, before: Value) -> Value:
        """The gradient of what the tensor was `before` the move forward. Raises GroupStop."""

    @abstractmethod
    def added(self, several: Sequence[Value]) -> Value:
        """What comes back from several readers. Raises GroupStop."""

    @abstractmethod
    def operate(self, layer: Layer[Value], index: int, op: bl.Operation, ins: list[Value]) -> Value:
        """What an operation makes of what it reads. Raises GroupStop."""

    @abstractmethod
    def operate_back(
        self, layer: Layer[Value], index: int, op: bl.Operation, ins: list[Value], here: Value
    ) -> list[Value]:
        """The gradients of what it reads; those of its weights are kept. Raises GroupStop."""

    # --- forward ------------------------------------------------------------------------------

    def forward(self, tokens: Value) -> Value:
        """What the last block leaves. Raises GroupStop where a device cannot go on."""
        arrays = tokens
        for number, block in enumerate(self.blocks):
            layer: Layer[Value] = Layer(block, number)
            self.layers.append(layer)
            self._make(layer, block.input, arrays)
            for index, op in enumerate(block.operations):
                ins = [self._take(layer, index, slot, name) for slot, name in enumerate(inputs(op))]
                self._make(layer, op.output, self._run(layer, index, op, ins))
            arrays = layer.arrays[block.result]
        return arrays

    def _make(self, layer: Layer[Value], tensor: str, arrays: Value) -> None:
        for place, boundary in enumerate(self.plan.at(layer.block.name, tensor, None)):
            layer.before[tensor, place] = arrays
            arrays = self.moved(arrays, boundary.forward, boundary.axis)
        layer.arrays[tensor] = arrays

    def _take(self, layer: Layer[Value], index: int, slot: int, tensor: str) -> Value:
        arrays = layer.arrays[tensor]
        for place, boundary in enumerate(self.plan.at(layer.block.name, tensor, (index, slot))):
            layer.crossed[index, slot, place] = arrays
            arrays = self.moved(arrays, boundary.forward, boundary.axis)
        layer.read[index, slot] = arrays
        return arrays

    def _run(self, layer: Layer[Value], index: int, op: bl.Operation, ins: list[Value]) -> Value:
        if not isinstance(op, bl.Collective):
            return self.operate(layer, index, op, ins)
        arrays = ins[0]
        for place, (axis, (there, _)) in enumerate(self._moves(layer, index)):
            layer.crossed[index, -1, place] = arrays
            arrays = self.moved(arrays, there, axis)
        return arrays

    def _moves(self, layer: Layer[Value], index: int) -> list[tuple[str, tuple[Move, Move]]]:
        return list(self.plan.moves.get((layer.block.name, index), {}).items())

    # --- backward -----------------------------------------------------------------------------

    def backward(self, arrived: Value) -> None:
        """From the gradient of what the last block leaves. Raises GroupStop."""
        for layer in reversed(self.layers):
            waiting: dict[str, list[Value]] = {layer.block.result: [arrived]}
            for index in reversed(range(len(layer.block.operations))):
                op = layer.block.operations[index]
                if op.output not in waiting:
                    continue
                here = self._crossed_back(layer, op.output, waiting[op.output])
                for slot, (tensor, arrays) in enumerate(zip(inputs(op), self._back(layer, index, op, here))):
                    chain = list(enumerate(self.plan.at(layer.block.name, tensor, (index, slot))))
                    for place, boundary in reversed(chain):
                        before = layer.crossed[index, slot, place]
                        arrays = self.moved_back(arrays, boundary.backward, boundary.axis, before)
                    waiting.setdefault(tensor, []).append(arrays)
            if layer.block.input in waiting:
                arrived = self._crossed_back(layer, layer.block.input, waiting[layer.block.input])

    def _crossed_back(self, layer: Layer[Value], tensor: str, several: list[Value]) -> Value:
        arrays = self.added(several)
        chain = list(enumerate(self.plan.at(layer.block.name, tensor, None)))
        for place, boundary in reversed(chain):
            arrays = self.moved_back(arrays, boundary.backward, boundary.axis, layer.before[tensor, place])
        return arrays

    def _back(self, layer: Layer[Value], index: int, op: bl.Operation, here: Value) -> list[Value]:
        if not isinstance(op, bl.Collective):
            ins = [layer.read[index, slot] for slot in range(len(inputs(op)))]
            return self.operate_back(layer, index, op, ins, here)
        arrays = here
        for place, (axis, (_, back)) in reversed(list(enumerate(self._moves(layer, index)))):
            arrays = self.moved_back(arrays, back, axis, layer.crossed[index, -1, place])
        return [arrays]

    # --- places -------------------------------------------------------------------------------

    def work(self, layer: Layer[Value], index: int) -> Mapping[str, Work]:
        return self.plan.work.get((layer.block.name, index), {})

    def shared_out(self, layer: Layer[Value], index: int) -> tuple[str, ...]:
        """The axes over which pieces of a vocabulary are shared out."""
        return tuple(axis for axis, work in self.work(layer, index).items() if work.pieces is not None)

    def mine(self, layer: Layer[Value], index: int, op: bl.Operation, x: int) -> dict[str, Labels]:
        """The places of a dimension that the weights of device x, or its experts, cover; a dimension that is
        not in it is whole."""
        cut: dict[str, list[str]] = {}
        for axis in self.grid.axes:
            work = self.work(layer, index).get(axis)
            dim = None if work is None else work.weights
            if work is not None and isinstance(op, bl.Dispatch | bl.Combine):
                dim = work.pieces
            if dim is not None:
                cut.setdefault(dim, []).append(axis)
        return {dim: self._piece(dim, axes, x) for dim, axes in cut.items()}

    def _piece(self, dim: str, axes: Sequence[str], x: int) -> Labels:
        labels: Labels = tuple(range(self.sizes[dim]))
        for axis in axes:
            size = len(labels) // self.grid.size[axis]
            at = self.grid.coordinate[axis][x]
            labels = labels[at * size : (at + 1) * size]
        return labels
