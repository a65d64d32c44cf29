"""What crosses on the way back, found by differentiation.

Of the plan only what crosses forward is read here, and what a person states of the way back. The rest follows from the
numbers that come back to where something crossed: where they are the same on all devices, each has the whole gradient of
what it has; where they are not, devices did different parts of the work, and the parts are added up. Then each device
takes the places that it had of the tensor."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from placelogic.program.ops import Origin
from placelogic.program.plan import Move
from placelogic.run.grid import Grid
from placelogic.run.layers.crossing import Crossing, Step, backward
from placelogic.simulate.layers.tape import Array


class Transposes:
    """`stated`: the lines about the way back. After `settle` every crossing keeps what was found: a line that is wrong
    changes what comes back, and what an implementation does elsewhere is not adapted to it."""

    def __init__(self, stated: Collection[Origin]) -> None:
        self._stated = stated
        self._found: dict[object, Move] = {}
        self._settled = False

    def settle(self) -> None:
        self._settled = True

    def steps(self, crossing: Crossing, gradients: Sequence[Array], grid: Grid) -> list[Step]:
        """`gradients`: what came back, by device. Raises GroupStop where that is no gradient of what crossed."""
        move = crossing.moves[1]
        if move.origin not in self._stated:
            if not self._settled:
                groups = grid.groups((crossing.axis,))
                parts = any(gradients[x] != gradients[members[0]] for members in groups for x in members)
                self._found[crossing.key] = self._transpose(crossing, parts)
            # Where nothing would cross without a line, what comes back is taken to be whole.
            move = self._found.get(crossing.key) or self._transpose(crossing, False)
        return backward(crossing.after, move, crossing.before, crossing.axis, grid, crossing.ragged, False)

    def _transpose(self, crossing: Crossing, parts: bool) -> Move:
        """`parts`: what came back has to be added up. What a collective in a block does is fixed, but for a sum."""
        there = crossing.moves[0]
        if crossing.written:
            return _linear(there, parts)
        return _fitting(there, parts)


def _linear(there: Move, parts: bool) -> Move:
    """The transpose of a collective, as a linear map from what all devices have to what all get: the gradient of a
    device's input is the sum, over all devices, of what each did with it."""
    match there.kind:
        case "gather":
            return Move("scatter", there.origin, there.dim)
        case "slice":
            return Move("pad", there.origin, there.dim)
        case "scatter":
            return Move("gather", there.origin, there.dim)
        case "exchange":
            return Move("exchange", there.origin, there.into, there.dim)
        case "root":
            return Move("reduce", there.origin)
        case _:  # a sum of copies of one gradient would count it once for each device
            return Move(there.kind if parts else "none", there.origin)


def _fitting(there: Move, parts: bool) -> Move:
    match there.kind:
        case "gather":
            return Move("scatter" if parts else "slice", there.origin, there.dim)
        case "slice" | "pad" | "scatter" | "scatter_mean":
            return Move("gather", there.origin, there.dim)
        case "exchange":
            return Move("exchange", there.origin, there.into, there.dim)
        case _:
            return Move("sum" if parts else "none", there.origin)
