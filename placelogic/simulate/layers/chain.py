"""The chain of layers on every device at once: forward, then backward, one operation after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.expr import Expr
from placelogic.program.plan import Move, Plan, Work
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.layers import functions as fn
from placelogic.simulate.layers import moves
from placelogic.simulate.layers.arrays import Labels, added
from placelogic.simulate.layers.functions import Element, Gradients, Local
from placelogic.simulate.layers.habits import Habits
from placelogic.simulate.layers.moves import Arrays
from placelogic.simulate.layers.one import inputs, one_back, one_forward, weights_dims
from placelogic.simulate.mesh import Grid
from placelogic.simulate.outcome import GroupStop

WeightsOf = Callable[[int, int, bl.Operation, tuple[str, ...]], fn.Weights]
"""layer, operation and its number, and the dimensions of its weights -> its weights."""


@dataclass(slots=True)
class Layer:
    block: Block
    number: int
    first: bool
    arrays: dict[str, Arrays] = field(default_factory=dict)
    before: dict[tuple[str, int], Arrays] = field(default_factory=dict)
    read: dict[tuple[int, int], Arrays] = field(default_factory=dict)
    crossed: dict[tuple[int, int, int], Arrays] = field(default_factory=dict)
    made: dict[str, Arrays] = field(default_factory=dict)


@dataclass(slots=True)
class Chain:
    """`number`: the residue of an expression over sizes. `weights`: as above. `gradients`: (layer, operation) ->
    one mapping per device. `alone`: one device, which does what the model says."""

    grid: Grid
    plan: Plan
    blocks: Sequence[Block]
    sizes: Mapping[str, int]
    number: Callable[[Expr], int]
    weights: WeightsOf
    alone: bool = False
    habits: Habits | None = None
    layers: list[Layer] = field(default_factory=list)
    gradients: dict[tuple[int, int], list[Gradients]] = field(default_factory=dict)
    ragged: moves.Ragged = field(default_factory=moves.Ragged)

    def __post_init__(self) -> None:
        routers = [(block, op) for block in self.blocks for op in block.operations if isinstance(op, bl.Router)]
        tokens = frozenset(dim for block, op in routers for dim in block.tensors[op.output])
        self.ragged = moves.Ragged(frozenset(op.experts for _, op in routers), tokens)

    # --- forward ------------------------------------------------------------------------------

    def forward(self, tokens: Arrays) -> Arrays:
        """What the last block leaves. Raises GroupStop where a device cannot go on."""
        arrays = tokens
        for number, block in enumerate(self.blocks):
            layer = Layer(block, number, number == 0)
            self.layers.append(layer)
            self._make(layer, block.input, arrays)
            for index, op in enumerate(block.operations):
                ins = [self._take(layer, index, slot, name) for slot, name in enumerate(inputs(op))]
                self._make(layer, op.output, self._run(layer, index, op, ins))
            arrays = layer.arrays[block.result]
        return arrays

    def _make(self, layer: Layer, tensor: str, arrays: Arrays) -> None:
        layer.made[tensor] = arrays
        for place, boundary in enumerate(self.plan.at(layer.block.name, tensor, None)):
            layer.before[tensor, place] = arrays
            arrays = self._ahead(arrays, boundary.forward, boundary.axis)
        layer.arrays[tensor] = arrays

    def _take(self, layer: Layer, index: int, slot: int, tensor: str) -> Arrays:
        arrays = layer.arrays[tensor]
        for place, boundary in enumerate(self.plan.at(layer.block.name, tensor, (index, slot))):
            layer.crossed[index, slot, place] = arrays
            arrays = self._ahead(arrays, boundary.forward, boundary.axis)
        layer.read[index, slot] = arrays
        return arrays

    def _ahead(self, arrays: Arrays, move: Move, axis: str) -> Arrays:
        return moves.forward(arrays, move, axis, self.grid, self._factor(move), self.ragged)

    def _factor(self, move: Move) -> int:
        return 1 if move.scale is None else self.number(move.scale)

    def _run(self, layer: Layer, index: int, op: bl.Operation, ins: list[Arrays]) -> Arrays:
        match op:
            case bl.Collective():
                arrays = ins[0]
                for place, (axis, (there, _)) in enumerate(self._moves(layer, index)):
                    layer.crossed[index, -1, place] = arrays
                    arrays = self._ahead(arrays, there, axis)
                return arrays
            case bl.CrossEntropy():
                total = self._totals(layer, index, op, ins[0])
                return [
                    fn.loss(self._local(layer, index, op, x), ins[0][x], lambda _, x=x: total[x])  # type: ignore[misc]
                    for x in range(self.grid.count)
                ]
            case _:
                scores = layer.arrays[op.router] if isinstance(op, bl.Dispatch) else None
                return [
                    one_forward(
                        layer.block,
                        self._local(layer, index, op, x),
                        op,
                        [arrays[x] for arrays in ins],
                        scores and scores[x],
                    )
                    for x in range(self.grid.count)
                ]

    def _moves(self, layer: Layer, index: int) -> list[tuple[str, tuple[Move, Move]]]:
        return list(self.plan.moves.get((layer.block.name, index), {}).items())

    def _totals(self, layer: Layer, index: int, op: bl.CrossEntropy, arrays: Arrays) -> list[dict[Element, int]]:
        """The sum over a vocabulary, added up over the devices that share it out."""
        axes = tuple(axis for axis, work in self._work(layer, index).items() if work.pieces is not None)
        own = [fn._logits(self._local(layer, index, op, x), op, arrays[x]) for x in range(self.grid.count)]
        found = list(own)
        for members in self.grid.groups(axes) if axes and op.parallel else ():
            if any(own[x].keys() != own[members[0]].keys() for x in members):
                raise GroupStop("devices that share out a vocabulary have different tokens")
            total = {key: sum(own[x][key] for x in members) % PRIME for key in own[members[0]]}
            for x in members:
                found[x] = total
        return found

    # --- places -------------------------------------------------------------------------------

    def _work(self, layer: Layer, index: int) -> Mapping[str, Work]:
        return self.plan.work.get((layer.block.name, index), {})

    def _local(self, layer: Layer, index: int, op: bl.Operation, x: int) -> Local:
        cut: dict[str, list[str]] = {}
        for axis in self.grid.axes:
            work = self._work(layer, index).get(axis)
            dim = None if work is None else work.weights
            if work is not None and isinstance(op, bl.Dispatch | bl.Combine):
                dim = work.pieces
            if dim is not None:
                cut.setdefault(dim, []).append(axis)
        mine = {dim: self._piece(dim, axes, x) for dim, axes in cut.items()}
        dims = weights_dims(layer.block, op)
        factor = op.factor if isinstance(op, bl.Elementwise) else None
        if isinstance(op, bl.Bias) and not self.alone:
            factor = op.scale
        seed, position = mix(layer.number, index, 77), int
        if self.habits is not None:
            read = layer.read[index, 0]
            counted = layer.arrays[inputs(op)[0]] if isinstance(op, bl.Attention) else read
            seed = self.habits.seed(layer.block, op.output, x, seed, read)
            position = self.habits.position(layer.block, op.output, x, counted, self.sizes.get("sequence", 1))
        number = 1 if factor is None else self.number(factor)
        weights = self.weights(layer.number, index, op, dims)
        return Local(op, mine, self.sizes, weights, seed, number, int(self._top(op)), position)

    def _top(self, op: bl.Operation) -> int:
        return self.number(op.top) if isinstance(op, bl.Router) else 1

    def _piece(self, dim: str, axes: Sequence[str], x: int) -> Labels:
        labels: Labels = tuple(range(self.sizes[dim]))
        for axis in axes:
            size = len(labels) // self.grid.size[axis]
            at = self.grid.coordinate[axis][x]
            labels = labels[at * size : (at + 1) * size]
        return labels

    # --- backward -----------------------------------------------------------------------------

    def backward(self, arrived: Arrays) -> None:
        """From the gradient of what the last block leaves; fills `gradients`. Raises GroupStop."""
        for layer in reversed(self.layers):
            waiting: dict[str, list[Arrays]] = {layer.block.result: [arrived]}
            for index in reversed(range(len(layer.block.operations))):
                op = layer.block.operations[index]
                if op.output not in waiting:
                    continue
                here = self._crossed_back(layer, op.output, waiting[op.output])
                back = self._back(layer, index, op, here)
                for slot, (tensor, arrays) in enumerate(zip(inputs(op), back)):
                    chain = list(enumerate(self.plan.at(layer.block.name, tensor, (index, slot))))
                    for place, boundary in reversed(chain):
                        arrays = moves.backward(
                            arrays,
                            boundary.backward,
                            boundary.axis,
                            self.grid,
                            self._factor(boundary.backward),
                            self.ragged,
                            layer.crossed[index, slot, place],
                        )
                    waiting.setdefault(tensor, []).append(arrays)
            if layer.block.input in waiting:
                arrived = self._crossed_back(layer, layer.block.input, waiting[layer.block.input])

    def _crossed_back(self, layer: Layer, tensor: str, several: list[Arrays]) -> Arrays:
        arrays = [added([one[x] for one in several]) for x in range(self.grid.count)]
        chain = list(enumerate(self.plan.at(layer.block.name, tensor, None)))
        for place, boundary in reversed(chain):
            arrays = moves.backward(
                arrays,
                boundary.backward,
                boundary.axis,
                self.grid,
                self._factor(boundary.backward),
                self.ragged,
                layer.before[tensor, place],
            )
        return arrays

    def _back(self, layer: Layer, index: int, op: bl.Operation, here: Arrays) -> list[Arrays]:
        ins = [layer.read[index, slot] for slot in range(len(inputs(op)))]
        if isinstance(op, bl.Collective):
            arrays = here
            for place, (axis, (_, back)) in reversed(list(enumerate(self._moves(layer, index)))):
                before = layer.crossed[index, -1, place]
                arrays = moves.backward(arrays, back, axis, self.grid, self._factor(back), self.ragged, before)
            return [arrays]
        total = self._totals(layer, index, op, ins[0]) if isinstance(op, bl.CrossEntropy) else None
        out: list[Arrays] = [[] for _ in ins]
        made: list[Gradients] = []
        for x in range(self.grid.count):
            local = self._local(layer, index, op, x)
            mine = [arrays[x] for arrays in ins]
            scores = layer.arrays[op.router][x] if isinstance(op, bl.Dispatch) else None
            back, gradient = one_back(layer.block, local, op, mine, here[x], scores, total and total[x])
            for arrays, array in zip(out, back):
                arrays.append(array)
            made.append(gradient)
        if any(made):
            self.gradients[layer.number, index] = made
        return out
