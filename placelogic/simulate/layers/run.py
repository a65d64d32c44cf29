"""A training step with the operations of its layers, on a small mesh and on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from placelogic.program import block as bl
from placelogic.program.block import Block, Layers
from placelogic.program.expr import Expr, evaluate
from placelogic.program.plan import Plan
from placelogic.program.program import Program, Weights
from placelogic.simulate.arithmetic import PRIME, mix, residue
from placelogic.simulate.layers.arrays import Array, filled
from placelogic.simulate.layers.chain import Chain
from placelogic.simulate.layers.fit import sizes_of
from placelogic.simulate.layers.functions import Element
from placelogic.simulate.layers.habits import Habits
from placelogic.simulate.layers.step import Fresh, run_step
from placelogic.simulate.mesh import Grid
from placelogic.simulate.outcome import Difference, GroupStop, Outcome, SimulationTooLarge, Stop
from placelogic.simulate.work import Work

MAX_LAYERS = 4
MAX_PASSES = 128
"""Devices times micro-batches: some seconds of work."""


def simulate_layers(
    program: Program, sizes: Mapping[str, int], quantities: Mapping[str, int], per_item: int = 1
) -> Outcome:
    """One step: what the layers leave, and what every device feeds the optimizer, against one device.

    `sizes`: devices along each axis. `quantities`: open lets and the name of the micro-batches; layers are cut
    to a few, and micro-batches too. Raises SimulationTooLarge."""
    return _Job(program, sizes, quantities, per_item).run()


class _Job:
    def __init__(
        self, program: Program, sizes: Mapping[str, int], quantities: Mapping[str, int], per_item: int
    ) -> None:
        assert program.layers is not None and program.layering is not None
        self.program, self.layers, self.plan = program, program.layers, program.layering.plan
        self.grid = Grid(program.mesh.axes, sizes)
        self.work = Work(program, self.grid, quantities, None, per_item)
        if self.grid.count * self.work.microbatches > MAX_PASSES:
            raise SimulationTooLarge(f"{self.grid.count} devices, {self.work.microbatches} micro-batches")
        self.dims = sizes_of(program, self.layers, self.plan, sizes)
        self.blocks = self._blocks()
        first = self.layers.blocks[0]
        self._arrives = self.plan.shapes.get((first.name, first.input), {})
        self._known: dict[object, dict[Element, int]] = {}

    def _blocks(self) -> list[Block]:
        found = []
        for block in self.layers.blocks:
            times = 1 if block.repeat is None else int(evaluate(block.repeat, self.work.env))
            found += [block] * max(1, min(times, MAX_LAYERS))
        return found

    def run(self) -> Outcome:
        differences: list[Difference] = []
        single_grads: list[Fresh] = []
        mesh_grads: list[Fresh] = []
        try:
            for turn in range(1, self.work.microbatches + 1):
                left, fresh = self._single(turn)
                single_grads.append(fresh)
                there, gradients = self._mesh(turn)
                mesh_grads.append(gradients)
                differences += self._compare(left, there)
        except GroupStop as stop:
            return Outcome(tuple(differences), (Stop(None, str(stop)),))
        stops: list[Stop] = []
        for weights in self.program.weights:
            step = self.program.step(weights.name)
            if step is None or weights.name not in single_grads[0]:
                continue
            expected = self._expected(weights, single_grads)
            try:
                wrong = run_step(self, weights, step, [fresh[weights.name] for fresh in mesh_grads], expected)
            except GroupStop as stop:
                stops.append(Stop(weights.name, str(stop)))
                continue
            for what, x in wrong:
                where = self.grid.name(x)
                text = f"({where}) feeds another gradient of `{weights.name}` to the optimizer"
                if what == "skip":
                    text = f"({where}) sees other gradients of `{weights.name}` and may decide otherwise"
                differences.append(Difference(weights.name, 1, what, self.grid.device(x), None, text))
        return Outcome(tuple(differences), tuple(stops))

    # --- one micro-batch ----------------------------------------------------------------------

    def _single(self, turn: int) -> tuple[Array, Fresh]:
        grid = Grid(("one",), {"one": 1})
        chain = Chain(grid, Plan(), self.blocks, self.dims, self._number, self._weights, alone=True)
        (left,) = chain.forward([self._tokens(turn, {})])
        chain.backward([filled(left.dims, left.labels, lambda place: _seed(place) * self.work.single_weight(0))])
        return left, self._named(chain, 1)

    def _mesh(self, turn: int) -> tuple[list[Array], Fresh]:
        habits = Habits(self.layers, self.grid)
        chain = Chain(self.grid, self.plan, self.blocks, self.dims, self._number, self._weights, habits=habits)
        left = chain.forward([self._tokens(turn, self._share(x)) for x in range(self.grid.count)])
        weights = self.work.weights(0, turn)
        seeds = [
            filled(array.dims, array.labels, lambda place, w=w: _seed(place) * w) for array, w in zip(left, weights)
        ]  # type: ignore[misc]
        chain.backward(seeds)
        return left, self._named(chain, self.grid.count)

    def _share(self, x: int) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
        """dimension -> the places of this device's share of the work, and those of the data it is fed."""
        found = {}
        for dim in self.layers.blocks[0].tensors[self.layers.blocks[0].input]:
            labels: tuple[int, ...] = tuple(range(self.dims[dim]))
            data = labels
            for split in self.program.work.splits:
                if split.dim != dim and not (split.dim == "tokens" and dim == "batch"):
                    continue
                size = len(labels) // self.grid.size[split.axis]
                at = self.grid.coordinate[split.axis][x]
                feed = self.program.work.feed(split.axis)
                fed = 0 if feed is not None and feed.kind == "same" else at
                labels, data = labels[at * size : (at + 1) * size], data[fed * size : (fed + 1) * size]
            for axis, cut in self._arrives.items():
                if cut == dim and axis not in self.program.work.split_axes:
                    labels, data = (_piece(p, self.grid, axis, x) for p in (labels, data))
            found[dim] = labels, data
        return found

    def _tokens(self, turn: int, share: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]) -> Array:
        block = self.layers.blocks[0]
        dims = block.tensors[block.input]
        labels = [share[dim][0] if dim in share else tuple(range(self.dims[dim])) for dim in dims]
        data = [share[dim][1] if dim in share else tuple(range(self.dims[dim])) for dim in dims]
        numbers = [self._token(turn, dims, place) for place in product(*data)]
        return Array(dims, tuple(labels), [n % PRIME for n in numbers])

    def _token(self, turn: int, dims: tuple[str, ...], place: Element) -> int:
        """Tokens are unlike each other, as far as a table has rows; other inputs are arbitrary numbers."""
        if not isinstance(self.layers.blocks[0].operations[0], bl.Embedding):
            return mix(turn, 99, *place)
        number = 0
        for dim, label in zip(dims, place):
            number = number * self.dims[dim] + label
        return number + turn

    def _number(self, expr: Expr) -> int:
        try:
            return residue(self.work.value(expr))
        except ZeroDivisionError:
            raise GroupStop("a factor divides by zero") from None

    # --- weights ------------------------------------------------------------------------------

    def _weights(self, layer: int, index: int, op: bl.Operation, dims: tuple[str, ...]):  # type: ignore[no-untyped-def]
        name = getattr(op, "weights", None)
        if name is None:
            return lambda element: 1
        group = [weights.name for weights in self.program.weights].index(name)
        at = (0, 0) if self._tied(name) else (layer, index)
        names = [number for _, number in sorted((dim, i) for i, dim in enumerate(dims))]
        known = self._known.setdefault((name, *at, dims), {})

        def value(element: Element) -> int:
            found = known.get(element)
            if found is None:
                found = known[element] = mix(11, group, *at, *(element[i] for i in names))
            return found

        return value

    def _tied(self, name: str) -> bool:
        uses = self.program.group(name).uses
        return uses is not None and uses.first and uses.last

    def _named(self, chain: Chain, count: int) -> Fresh:
        """weights -> per device: named elements -> gradient. Tied weights have one per use."""
        found: Fresh = {}
        for (layer, index), made in chain.gradients.items():
            op = self.blocks[layer].operations[index]
            name = op.weights
            uses = self.program.group(name).uses
            for x in range(count):
                mine = found.setdefault(name, [{} for _ in range(count)])[x]
                if count > 1 and uses is not None and not self._computes(uses, x, self._begins(layer)):
                    continue
                at = (0, 0) if self._tied(name) else (layer, index)
                for element, value in made[x].items():
                    key = (*at, *sorted(element))
                    mine[key] = (mine.get(key, 0) + value) % PRIME
        return found

    def _begins(self, layer: int) -> bool:
        """Whether it lies before the layers that are shared out over stages."""
        repeated = [number for number, block in enumerate(self.blocks) if block.repeat is not None]
        return layer < repeated[0] if repeated else layer == 0

    def _computes(self, uses, x: int, first: bool) -> bool:  # type: ignore[no-untyped-def]
        """Whether the device is the stage of this use."""
        last = 0 if uses.vee else self.grid.size[uses.axis] - 1
        if uses.first and uses.last:
            return self.grid.coordinate[uses.axis][x] == (0 if first else last)
        return self.grid.coordinate[uses.axis][x] == (0 if uses.first else last)

    def holders(self, weights: Weights) -> list[int]:
        uses = weights.uses
        if uses is None:
            return list(range(self.grid.count))
        last = 0 if uses.vee else self.grid.size[uses.axis] - 1
        stages = [stage for stage, used in ((0, uses.first), (last, uses.last)) if used]
        return [x for x in range(self.grid.count) if self.grid.coordinate[uses.axis][x] in stages]

    def _expected(self, weights: Weights, turns: Sequence[Fresh]) -> dict[object, int]:
        total: dict[object, int] = {}
        for fresh in turns:
            for key, value in fresh[weights.name][0].items():
                total[key] = (total.get(key, 0) + value) % PRIME
        return total

    # --- comparison ---------------------------------------------------------------------------

    def _compare(self, single: Array, mesh: list[Array]) -> list[Difference]:
        known = single.lookup()
        for x, array in enumerate(mesh):
            for place, value in zip(array.places(), array.data):
                if known.get(place) != value:
                    text = f"({self.grid.name(x)}) computes another value of `{self.blocks[-1].result}`"
                    return [Difference(None, 1, "forward", self.grid.device(x), None, text)]
        return []


def _piece(places: tuple[int, ...], grid: Grid, axis: str, x: int) -> tuple[int, ...]:
    size = len(places) // grid.size[axis]
    at = grid.coordinate[axis][x]
    return places[at * size : (at + 1) * size]


def _seed(place: Element) -> int:
    """How the loss of a place counts: an arbitrary number."""
    return mix(13, *place)


__all__ = ["Layers", "simulate_layers"]
