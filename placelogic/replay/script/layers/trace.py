"""The forward pass of a plan as straight lines of PyTorch, one for each operation and one for each move.

The backward pass is that of autograd: a move carries its own."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.expr import Expr
from placelogic.program.plan import Boundary, Move, Plan
from placelogic.replay.blocks.lay import Lay
from placelogic.replay.blocks.lying import made
from placelogic.replay.script.layers.matrices import Matrices
from placelogic.replay.script.layers.operations import Operation, expression
from placelogic.replay.script.layers.pieces import Pieces
from placelogic.replay.script.layers.words import crossed
from placelogic.replay.script.lines import NotShown
from placelogic.run.algebra import line_of
from placelogic.run.grid import Grid
from placelogic.simulate.layers.chain import Chain, Layer
from placelogic.simulate.layers.habits import Habits

GLOBAL = {
    "F", "Move", "Loss", "WEIGHTS", "AXES", "DEVICES", "TURNS", "axes", "carried", "dist", "drawn", "gradients", "held",
    "move", "mp", "number", "rank", "seed", "share", "single", "step", "sys", "tempfile", "torch", "turn", "worker",
    "norm", "curve", "attention", "route", "embed", "cross_entropy", "spread", "words", "range", "zip", "sum", "dict",
    "len", "str", "bool", "print", "float",
}  # fmt: skip
"""Names of a script that no tensor can have."""


class Value(Struct, frozen=True):
    """A tensor: its name in the script, and what each device has of it."""

    name: str
    lays: tuple[Lay, ...]


class Body(Struct):
    """The function of one layer. `argument`: the name of what it reads; `left`: of what it leaves."""

    block: str
    argument: str
    lines: list[str] = field(default_factory=list)
    left: str = ""
    seeded: bool = False
    crossed: dict[tuple[str, tuple[int, ...]], Value] = field(default_factory=dict)


class Trace(Chain[Value]):
    """`bodies`: one for each layer, after `forward`."""

    def __init__(
        self,
        grid: Grid,
        plan: Plan,
        blocks: Sequence[Block],
        sizes: Mapping[str, int],
        pieces: Pieces,
        matrices: Matrices,
        number: Callable[[Expr], float],
        habits: Habits,
    ) -> None:
        super().__init__(grid, plan, blocks, sizes)
        self.pieces = pieces
        self.matrices = matrices
        self.number = number
        self.habits = habits
        self.bodies: list[Body] = []

    # --- between devices ----------------------------------------------------------------------

    def _make(self, layer: Layer[Value], tensor: str, arrays: Value) -> None:
        if tensor == layer.block.input and not layer.arrays:
            arrays = Value(named(tensor), arrays.lays)
            self.bodies.append(Body(layer.block.name, arrays.name))
        for boundary in self.plan.at(layer.block.name, tensor, None):
            arrays = self._moved(arrays, arrays.name, boundary)
        layer.arrays[tensor] = arrays
        self.bodies[-1].left = arrays.name

    def _take(self, layer: Layer[Value], index: int, slot: int, tensor: str) -> Value:
        arrays, body = layer.arrays[tensor], self.bodies[-1]
        boundaries = self.plan.at(layer.block.name, tensor, (index, slot))
        key = arrays.name, tuple(map(id, boundaries))
        if key not in body.crossed:
            name = named(f"{tensor}_{layer.block.operations[index].output}")
            for boundary in boundaries:
                arrays = self._moved(arrays, name, boundary)
            body.crossed[key] = arrays
        layer.read[index, slot] = body.crossed[key]
        return layer.read[index, slot]

    def _run(self, layer: Layer[Value], index: int, op: bl.Operation, ins: list[Value]) -> Value:
        if not isinstance(op, bl.Collective):
            return self.operate(layer, index, op, ins)
        arrays = Value(named(op.output), ins[0].lays)
        self.bodies[-1].lines.append(f"{arrays.name} = {ins[0].name}")
        for axis, (there, back) in self._moves(layer, index):
            arrays = self._crossed(arrays, arrays.name, axis, there, back)
        return arrays

    def _moved(self, arrays: Value, name: str, boundary: Boundary) -> Value:
        return self._crossed(arrays, name, boundary.axis, boundary.forward, boundary.backward)

    def _crossed(self, arrays: Value, name: str, axis: str, there: Move, back: Move) -> Value:
        """A line, unless nothing happens either way."""
        lays, forward, backward = crossed(arrays.lays, there, back, axis, self.grid, self.ragged, self.number)
        if not forward and not backward:
            return Value(arrays.name, lays)
        self.pieces.axes.add(axis)
        self.pieces.helpers |= {word.split()[0] for word in (*forward, *backward)} | {"move"}
        told = ", ".join(f'"{", ".join(words) or "none"}"' for words in (forward, backward))
        lines, said = self.bodies[-1].lines, self._said(there, back)
        source = arrays.name
        if (
            lines
            and lines[-1].startswith(f"{name} = ")
            and source == name
            and lines[-1].split(" = ", 1)[1].isidentifier()
        ):
            source = lines.pop().split(" = ", 1)[1]  # nothing has happened to it yet
        lines.append(f'{name} = move({source}, rank, "{axis}", {told}){said}')
        return Value(name, lays)

    @staticmethod
    def _said(there: Move, back: Move) -> str:
        """Where a person said so."""
        found = {"forward": line_of(there.origin), "backward": line_of(back.origin)}
        if found["forward"] == found["backward"]:
            return f"  # {found['forward'][2:]}" if found["forward"] else ""
        told = [f"{which}{where}" for which, where in found.items() if where]
        return f"  # {'; '.join(told)}" if told else ""

    # --- one operation ------------------------------------------------------------------------

    def operate(self, layer: Layer[Value], index: int, op: bl.Operation, ins: list[Value]) -> Value:
        scores = layer.arrays[op.router] if isinstance(op, bl.Dispatch) else None
        lays, every = [], range(self.grid.count)
        mine = [self.mine(layer, index, op, x) for x in every]
        for x in every:
            score = scores.lays[x] if scores is not None else None
            lays.append(made(layer.block, op, [one.lays[x] for one in ins], mine[x], self.sizes, score))
        self._agree(layer, index, op, ins)
        one = Operation(
            op, index, self.grid, self.sizes, self.pieces, mine, [value.name for value in ins], [value.lays for value in ins],
            self.matrices.used(self.grid, layer.number, index, op, mine), self.number,
            scores.name if scores is not None else "", scores.lays if scores is not None else (),
            [self._apart(layer, index, op, x) for x in every], *self._counted(layer, index, op),
            self.shared_out(layer, index),
        )  # fmt: skip
        name, body = named(op.output), self.bodies[-1]
        text = expression(one)
        body.seeded |= "seed" in text
        body.lines.append(f"{name} = {text}")
        return Value(name, tuple(lays))

    def _agree(self, layer: Layer[Value], index: int, op: bl.Operation, ins: list[Value]) -> None:
        """Devices that share out a vocabulary have the same tokens. Raises NotShown."""
        if not isinstance(op, bl.CrossEntropy) or not op.parallel:
            return
        for members in self.grid.groups(self.shared_out(layer, index)):
            rest = {
                tuple(places for dim, places in zip(lay.dims, lay.labels) if dim != op.vocabulary)
                for lay in (ins[0].lays[x] for x in members)
            }
            if len(rest) > 1:
                raise NotShown("devices that share out a vocabulary have different tokens")

    def _apart(self, layer: Layer[Value], index: int, op: bl.Operation, x: int) -> tuple[int, ...]:
        return self.habits.apart(layer.block, op.output, x, layer.read[index, 0].lays)

    def _counted(
        self, layer: Layer[Value], index: int, op: bl.Operation
    ) -> tuple[list[Callable[[int], int]], list[dict[int, int]]]:
        """Per device: where a place is taken to stand, and where places of keys are, which are counted where
        they are made, before they are brought together."""
        block, whole, every = layer.block, self.sizes.get("sequence", 1), range(self.grid.count)
        counted = layer.arrays[op.query] if isinstance(op, bl.Attention) else layer.read[index, 0]
        positions = [self.habits.position(block, op.output, x, counted.lays, whole) for x in every]
        keys: list[dict[int, int]] = [{} for _ in every]
        if isinstance(op, bl.Attention) and op.positions:
            lays = layer.arrays[op.key].lays
            for x in every:
                for y in every:
                    of = self.habits.position(block, op.output, y, lays, whole)
                    keys[x].update({place: of(place) for place in lays[y].along(op.sequence)})
        return positions, keys

    # --- not needed: autograd goes back --------------------------------------------------------

    def moved(self, value: Value, move: Move, axis: str) -> Value:
        raise AssertionError("a script moves forward and backward in one")

    def moved_back(self, value: Value, move: Move, axis: str, before: Value) -> Value:
        raise AssertionError("a script moves forward and backward in one")

    def added(self, several: Sequence[Value]) -> Value:
        raise AssertionError("autograd adds")

    def operate_back(
        self, layer: Layer[Value], index: int, op: bl.Operation, ins: list[Value], here: Value
    ) -> list[Value]:
        raise AssertionError("autograd goes back")


def named(name: str) -> str:
    """As a variable of a script."""
    name = re.sub(r"\W", "_", name)
    return f"{name}_" if keyword.iskeyword(name) or name in GLOBAL else name
