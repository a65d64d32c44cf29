"""The chain of layers on every device at once, on small arrays of integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.expr import Expr
from placelogic.program.plan import Move, Plan
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.layers import functions as fn
from placelogic.simulate.layers import moves
from placelogic.simulate.layers.arrays import added
from placelogic.simulate.layers.chain import Chain, Layer
from placelogic.simulate.layers.functions import Element, Gradients, Local
from placelogic.simulate.layers.habits import Habits
from placelogic.simulate.layers.moves import Arrays
from placelogic.simulate.layers.one import inputs, one_back, one_forward, weights_dims

WeightsOf = Callable[[int, int, bl.Operation, tuple[str, ...]], fn.Weights]
"""layer, operation and its number, and the dimensions of its weights -> its weights."""


class Exact(Chain[Arrays]):
    """`number`: the residue of an expression over sizes. `weights`: as above. `gradients`: (layer, operation) ->
    one mapping per device. `habits` None: one device, which does what the model says."""

    def __init__(
        self,
        grid: Grid,
        plan: Plan,
        blocks: Sequence[Block],
        sizes: Mapping[str, int],
        number: Callable[[Expr], int],
        weights: WeightsOf,
        habits: Habits | None = None,
    ) -> None:
        super().__init__(grid, plan, blocks, sizes)
        self.number = number
        self.weights = weights
        self.habits = habits
        self.gradients: dict[tuple[int, int], list[Gradients]] = {}

    def moved(self, value: Arrays, move: Move, axis: str) -> Arrays:
        return moves.forward(value, move, axis, self.grid, self._factor(move), self.ragged)

    def moved_back(self, value: Arrays, move: Move, axis: str, before: Arrays) -> Arrays:
        return moves.backward(value, move, axis, self.grid, self._factor(move), self.ragged, before)

    def added(self, several: Sequence[Arrays]) -> Arrays:
        return [added([one[x] for one in several]) for x in range(self.grid.count)]

    def _factor(self, move: Move) -> int:
        return 1 if move.scale is None else self.number(move.scale)

    def operate(self, layer: Layer[Arrays], index: int, op: bl.Operation, ins: list[Arrays]) -> Arrays:
        locals_ = [self._local(layer, index, op, x) for x in range(self.grid.count)]
        if isinstance(op, bl.CrossEntropy):
            total = self._totals(layer, index, op, ins[0])
            return [fn.loss(local, ins[0][x], lambda _, x=x: total[x]) for x, local in enumerate(locals_)]  # type: ignore[misc]
        scores = layer.arrays[op.router] if isinstance(op, bl.Dispatch) else None
        return [
            one_forward(layer.block, local, op, [arrays[x] for arrays in ins], scores and scores[x])
            for x, local in enumerate(locals_)
        ]

    def operate_back(
        self, layer: Layer[Arrays], index: int, op: bl.Operation, ins: list[Arrays], here: Arrays
    ) -> list[Arrays]:
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

    def _totals(
        self, layer: Layer[Arrays], index: int, op: bl.CrossEntropy, arrays: Arrays
    ) -> list[dict[Element, int]]:
        """The sum over a vocabulary, added up over the devices that share it out."""
        axes = self.shared_out(layer, index)
        own = [fn._logits(self._local(layer, index, op, x), op, arrays[x]) for x in range(self.grid.count)]
        found = list(own)
        for members in self.grid.groups(axes) if axes and op.parallel else ():
            if any(own[x].keys() != own[members[0]].keys() for x in members):
                raise GroupStop("devices that share out a vocabulary have different tokens")
            total = {key: sum(own[x][key] for x in members) % PRIME for key in own[members[0]]}
            for x in members:
                found[x] = total
        return found

    def _local(self, layer: Layer[Arrays], index: int, op: bl.Operation, x: int) -> Local:
        dims = weights_dims(layer.block, op)
        factor = op.factor if isinstance(op, bl.Elementwise) else None
        if isinstance(op, bl.Bias) and self.habits is not None:
            factor = op.scale
        seed, position = mix(layer.number, index, 77), int
        if self.habits is not None:
            read = layer.read[index, 0]
            counted = layer.arrays[inputs(op)[0]] if isinstance(op, bl.Attention) else read
            if apart := self.habits.apart(layer.block, op.output, x, read):
                seed = mix(seed, *apart)
            position = self.habits.position(layer.block, op.output, x, counted, self.sizes.get("sequence", 1))
        number = 1 if factor is None else self.number(factor)
        weights = self.weights(layer.number, index, op, dims)
        top = self.number(op.top) if isinstance(op, bl.Router) else 1
        return Local(op, self.mine(layer, index, op, x), self.sizes, weights, seed, number, int(top), position)
