"""One pass forward and one backward through a chain of layers, with everything that has to hold on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.layers.backward import backward
from placelogic.layers.forward import forward
from placelogic.layers.moving import after, alone, moved_backward, moved_forward
from placelogic.layers.order import check_order, disorder
from placelogic.layers.record import Gradient, Layer, Need
from placelogic.layers.values import (
    Disorder,
    Misfit,
    Shape,
    Value,
    added,
    fresh,
    signature,
    without,
)
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import inputs, name_of, needs_right
from placelogic.program.ops import Axes, Origin
from placelogic.program.plan import Boundary, Move, Plan, Work


class Walk(Struct):
    """`chain`: the blocks, repeated ones as often as they are followed. `axes`: of the mesh; `split`: those that split the work. `nominal`: the layers of the walk
    through the plan without overrides, by block: how things lie there."""

    plan: Plan
    chain: Sequence[Block]
    axes: Axes
    split: frozenset[str]
    nominal: Mapping[str, Layer] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    gradients: list[Gradient] = field(default_factory=list)
    entered: list[Value] = field(default_factory=list)
    left: list[Value] = field(default_factory=list)
    arrives: Shape = field(default_factory=dict)

    def run(self, arrives: Shape) -> None:
        self.arrives = arrives
        value = fresh(arrives)
        for number, block in enumerate(self.chain):
            value = self._forward(Layer(block, number), value)
        back = fresh(value.shape, (-1,))
        self._right(self.layers[-1], len(self.chain[-1].operations) - 1, self.chain[-1].result, value, False)
        self.entered.append(back)
        for layer in reversed(self.layers):
            back = self._backward(layer, back)
            self.left.append(back)

    def stands_still(self, block: str) -> bool:
        """Whether the values and gradients that enter a repeated block are worth what leaves it."""
        for position, layer in enumerate(self.layers):
            if layer.block.name != block:
                continue
            came, made = layer.made[layer.block.input], layer.made[layer.block.result]
            if (dict(came.shape), signature(came)) != (dict(made.shape), signature(made)):
                return False
            place = len(self.layers) - 1 - position
            before = self.entered[0] if place == 0 else self.left[place - 1]
            after = self.left[place]
            if signature(before) != signature(after):
                return False
        return True

    def after_one(self, block: str) -> tuple[Value, Value]:
        """What one layer of a block leaves of what enters it: forward the first, backward the last."""
        mine = [layer for layer in self.layers if layer.block.name == block]
        return mine[0].made[mine[0].block.result], self.left[len(self.layers) - 1 - mine[-1].number]

    def settled(self, block: str) -> tuple[bool, bool]:
        """Whether the last layer of a block that is followed changes nothing any more: forward, backward."""
        mine = [layer for layer in self.layers if layer.block.name == block]
        first, last = mine[0], mine[-1]
        came, made = last.made[last.block.input], last.made[last.block.result]
        place = len(self.layers) - 1 - first.number
        before = self.entered[0] if place == 0 else self.left[place - 1]
        return signature(came) == signature(made), signature(before) == signature(self.left[place])

    # --- forward ------------------------------------------------------------------------------

    def _forward(self, layer: Layer, value: Value) -> Value:
        block = layer.block
        self.layers.append(layer)
        self._make(layer, block.input, value, None)
        for index, op in enumerate(block.operations):
            ins = [self._read(layer, (index, slot)) for slot in range(len(inputs(op)))]
            for slot in needs_right(op):
                if self._right(layer, index, inputs(op)[slot], ins[slot], True):
                    ins[slot] = layer.read[index, slot] = fresh(ins[slot].shape, (layer.name(index), slot))
                    self._mended(layer, inputs(op)[slot], (index, slot))
            self._make(layer, op.output, self._made(layer, index, op, ins), index)
        return layer.made[block.result]

    def _made(self, layer: Layer, index: int, op: bl.Operation, ins: list[Value]) -> Value:
        """What an operation leaves. Along an axis on which its inputs do not fit, that is told, and the rest is
        followed as on one device."""
        absent: set[str] = set()
        while True:
            try:
                out = self._done(layer, index, op, ins, absent)
                break
            except Misfit as misfit:
                self._misfit(layer, index, self._odd(layer.block, index, op, misfit), misfit)
                absent.add(misfit.axis)
                ins = [alone(value, misfit.axis) for value in ins]
        if not absent:
            return out
        known = self.nominal.get(layer.block.name)
        lies = known.bare[op.output] if known is not None else self._planned(layer, op.output)
        for slot, value in enumerate(ins):
            read = known.read[index, slot].shape if known is not None else {}
            layer.read[index, slot] = self._along(value, read, absent)
        return self._along(out, lies, absent)

    def _odd(self, block: Block, index: int, op: bl.Operation, misfit: Misfit) -> str:
        """The input that does not fit: one of which a person stated how it gets here, where there is one."""
        tensors = inputs(op)
        for slot, tensor in enumerate(tensors):
            ways = (*self.plan.at(block.name, tensor, None), *self.plan.at(block.name, tensor, (index, slot)))
            if any(way.axis == misfit.axis and way.forward.origin.stated for way in ways):
                return tensor
        return tensors[misfit.slot]

    def _done(self, layer: Layer, index: int, op: bl.Operation, ins: list[Value], absent: set[str]) -> Value:
        if isinstance(op, bl.Collective):
            out = ins[0]
            for axis, (there, _) in self._collective(layer.block, index):
                out = moved_forward(out, there, axis) if axis not in absent else alone(out, axis, there)
            return out
        work = {axis: work for axis, work in self._work(layer.block, index).items() if axis not in absent}
        lay, scores = self._lay(layer, index, op), self._scores(layer, op)
        lay = None if lay is None else [without(shape, *absent) for shape in lay]
        scores = None if scores is None else without(scores, *absent)
        return forward(layer.block, index, layer.name(index), ins, work, lay, scores)

    def _along(self, value: Value, lies: Shape, absent: set[str]) -> Value:
        """The value, lying along these axes as it should."""
        shape = {axis: lies.get(axis) if axis in absent else value.shape.get(axis) for axis in self.axes}
        return replace(value, shape={axis: dim for axis, dim in shape.items() if dim is not None})

    def _collective(self, block: Block, index: int) -> list[tuple[str, tuple[Move, Move]]]:
        return list(self.plan.moves.get((block.name, index), {}).items())

    def _work(self, block: Block, index: int) -> Mapping[str, Work]:
        return self.plan.work.get((block.name, index), {})

    def _lay(self, layer: Layer, index: int, op: bl.Operation) -> list[Shape] | None:
        known = self.nominal.get(layer.block.name)
        return [known.read[index, slot].shape for slot in range(len(inputs(op)))] if known else None

    def _scores(self, layer: Layer, op: bl.Operation) -> Shape | None:
        return layer.made[op.router].shape if isinstance(op, bl.Dispatch) else None

    def _make(self, layer: Layer, tensor: str, value: Value, index: int | None) -> None:
        layer.bare[tensor] = value.shape
        layer.before[tensor] = []
        for boundary in self.plan.at(layer.block.name, tensor, None):
            layer.before[tensor].append(value.shape)
            try:
                value = moved_forward(value, boundary.forward, boundary.axis)
            except Misfit as misfit:
                self._misfit(layer, index, tensor, misfit, boundary)
                known = self.nominal.get(layer.block.name)
                lies = known.made[tensor].shape if known is not None else self._planned(layer, tensor)
                value = self._along(alone(value, misfit.axis, boundary.forward), lies, {misfit.axis})
        layer.made[tensor] = value
        self._ordered(layer, index, tensor, value.shape)

    def _ordered(self, layer: Layer, index: int | None, tensor: str, shape: Shape) -> None:
        op = layer.block.operations[index] if index is not None else None
        check_order(tensor, shape, self.axes, self.split, op.origin.span if op is not None else layer.block.span)

    def _planned(self, layer: Layer, tensor: str) -> Shape:
        lay = self.plan.shapes.get((layer.block.name, tensor), {})
        return {axis: dim for axis, dim in lay.items() if dim in layer.block.tensors[tensor]}

    def _read(self, layer: Layer, reader: tuple[int, int]) -> Value:
        index, slot = reader
        tensor = inputs(layer.block.operations[index])[slot]
        value = layer.made[tensor]
        layer.crossed[reader] = []
        for boundary in self.plan.at(layer.block.name, tensor, reader):
            layer.crossed[reader].append(value.shape)
            try:
                value = moved_forward(value, boundary.forward, boundary.axis)
            except Misfit as misfit:
                self._misfit(layer, index, tensor, misfit, boundary)
                known = self.nominal.get(layer.block.name)
                lies = (
                    known.read[reader].shape
                    if known is not None
                    else after(value.shape, boundary.forward, boundary.axis)
                )
                value = self._along(alone(value, misfit.axis, boundary.forward), lies, {misfit.axis})
        layer.read[reader] = value
        self._ordered(layer, index, tensor, value.shape)
        return value

    def _misfit(
        self, layer: Layer, index: int | None, tensor: str, misfit: Misfit, boundary: Boundary | None = None
    ) -> None:
        op = layer.block.operations[index] if index is not None else None
        if isinstance(misfit, Disorder):
            raise disorder(tensor, misfit.reason, op.origin.span if op is not None else layer.block.span)
        origin = boundary.forward.origin if boundary is not None and boundary.forward.origin.stated else None
        if origin is None:
            origin = op.origin if op is not None else Origin(layer.block.span, stated=False)
        what = name_of(op) if op is not None and boundary is None else f"the boundary of `{tensor}`"
        self.needs.append(
            Need(
                layer.number, layer.block.name, tensor, what, origin, misfit.axis, reason=misfit.reason,
                words=misfit.words, boundary=op is None or boundary is not None,
            )
        )

    def _right(self, layer: Layer, index: int, tensor: str, value: Value, nonlinear: bool) -> bool:
        """Notes it where a value has to be proved right; the rest goes on as if it were."""
        wrong = tuple(part for part in value.parts.values() if not part.right)
        if wrong:
            op = layer.block.operations[index]
            what = name_of(op) if nonlinear else "the loss"
            self.needs.append(Need(layer.number, layer.block.name, tensor, what, op.origin, None, wrong, nonlinear))
        return bool(wrong)

    def _mended(self, layer: Layer, tensor: str, reader: tuple[int, int]) -> None:
        """A tensor that was found wrong is told once; who reads it later finds it right."""
        if not layer.crossed[reader]:
            layer.made[tensor] = fresh(layer.made[tensor].shape, (layer.name(reader[0]), reader[1]))

    # --- backward -----------------------------------------------------------------------------

    def _backward(self, layer: Layer, arrives: Value) -> Value:
        block = layer.block
        waiting: dict[str, list[Value]] = {block.result: [arrives]}
        for index in reversed(range(len(block.operations))):
            op = block.operations[index]
            here = self._made_backward(layer, op.output, waiting.get(op.output, []))
            if here is None:
                continue
            ins = [layer.read[index, slot] for slot in range(len(inputs(op)))]
            if isinstance(op, bl.Collective):
                gradients: Sequence[Value] = [self._collective_backward(block, index, ins[0], here)]
            else:
                back = backward(
                    block, index, layer.name(index), here, ins, layer.bare[op.output], self._work(block, index)
                )
                gradients = back.ins
                if back.weights is not None:
                    self.gradients.append(Gradient(layer.number, block.name, index, back.weights, back.own))
            for slot, gradient in enumerate(gradients):
                tensor = inputs(op)[slot]
                reader = (index, slot)
                chain = list(zip(self.plan.at(block.name, tensor, reader), layer.crossed[reader]))
                for boundary, shape in reversed(chain):
                    gradient = moved_backward(
                        gradient, boundary.backward, boundary.axis, _like(gradient.shape, boundary.axis, shape)
                    )
                waiting.setdefault(tensor, []).append(gradient)
        found = self._made_backward(layer, block.input, waiting.get(block.input, []))
        return found if found is not None else Value(layer.bare[block.input])

    def _collective_backward(self, block: Block, index: int, read: Value, arrived: Value) -> Value:
        shapes = []
        value = read
        moves = self._collective(block, index)
        for axis, (there, _) in moves:
            shapes.append(value.shape)
            try:
                value = moved_forward(value, there, axis)
            except Misfit:
                break
        for (axis, (_, back)), shape in reversed(list(zip(moves, shapes))):
            arrived = moved_backward(arrived, back, axis, _like(arrived.shape, axis, shape))
        return replace(arrived, shape=read.shape)

    def _made_backward(self, layer: Layer, tensor: str, arrived: list[Value]) -> Value | None:
        if not arrived:
            return None
        value = added([replace(one, shape=layer.made[tensor].shape) for one in arrived])
        chain = list(zip(self.plan.at(layer.block.name, tensor, None), layer.before[tensor]))
        for boundary, shape in reversed(chain):
            value = moved_backward(value, boundary.backward, boundary.axis, _like(value.shape, boundary.axis, shape))
        return value


def _like(shape: Shape, axis: str, before: Shape) -> Shape:
    """The shape upstream of a move: it differs along the axis of the move only."""
    return {**shape, axis: before[axis]} if axis in before else without(shape, axis)
