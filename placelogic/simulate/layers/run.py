"""A training step with the operations of its layers, on a small mesh and on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from placelogic.program import block as bl
from placelogic.program.block import Layers
from placelogic.program.expr import Expr
from placelogic.program.plan import Plan
from placelogic.program.program import Program, Weights
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop, SimulationTooLarge
from placelogic.run.work import Work
from placelogic.simulate.arithmetic import PRIME, inverse, mix, residue
from placelogic.simulate.compare import spared
from placelogic.simulate.layers.arrays import Array, filled
from placelogic.simulate.layers.exact import Exact
from placelogic.simulate.layers.functions import Element
from placelogic.simulate.layers.habits import Habits
from placelogic.simulate.layers.setting import Setting, Share
from placelogic.simulate.layers.step import Fresh, run_step
from placelogic.simulate.outcome import Difference, Outcome, Stop

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
        self.program = program
        self.grid = Grid(program.mesh.axes, sizes)
        self.work = Work(program, self.grid, quantities, None, per_item)
        if self.grid.count * self.work.microbatches > MAX_PASSES:
            raise SimulationTooLarge(f"{self.grid.count} devices, {self.work.microbatches} micro-batches")
        self.setting = Setting(program, self.grid, self.work)
        self.dims, self.blocks, self.layers = self.setting.dims, self.setting.blocks, self.setting.layers
        self._known: dict[object, dict[Element, int]] = {}

    def run(self) -> Outcome:
        differences = spared(self.program, self.work.microbatches)
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
        chain = Exact(grid, Plan(), self.blocks, self.dims, self._number, self._weights)
        (left,) = chain.forward([self._tokens(turn, {})])
        chain.backward([filled(left.dims, left.labels, lambda place: _seed(place) * inverse(self.work.single_counted(0)))])
        return left, self._named(chain, 1)

    def _mesh(self, turn: int) -> tuple[list[Array], Fresh]:
        habits = Habits(self.layers, self.grid, self.setting.stages)
        chain = Exact(self.grid, self.setting.plan, self.blocks, self.dims, self._number, self._weights, habits)
        left = chain.forward([self._tokens(turn, self.setting.share(x)) for x in range(self.grid.count)])
        weights = [inverse(count) for count in self.work.counted(0, turn)]
        seeds = [
            filled(array.dims, array.labels, lambda place, w=w: _seed(place) * w) for array, w in zip(left, weights)
        ]  # type: ignore[misc]
        chain.backward(seeds)
        return left, self._named(chain, self.grid.count)

    def _tokens(self, turn: int, share: Share) -> Array:
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
        at = (0, 0) if self.setting.tied(name) else (layer, index)
        names = [number for _, number in sorted((dim, i) for i, dim in enumerate(dims))]
        known = self._known.setdefault((name, *at, dims), {})

        def value(element: Element) -> int:
            found = known.get(element)
            if found is None:
                found = known[element] = mix(11, group, *at, *(element[i] for i in names))
            return found

        return value

    def _named(self, chain: Exact, count: int) -> Fresh:
        """weights -> per device: named elements -> gradient. Tied weights have one per use."""
        found: Fresh = {}
        for (layer, index), made in chain.gradients.items():
            op = self.blocks[layer].operations[index]
            name = op.weights
            uses = self.program.group(name).uses
            for x in range(count):
                mine = found.setdefault(name, [{} for _ in range(count)])[x]
                if count > 1 and uses is not None and not self.setting.computes(uses, x, self.setting.begins(layer)):
                    continue
                at = (0, 0) if self.setting.tied(name) else (layer, index)
                times = self._copies(layer, index) if count > 1 else 1
                for element, value in made[x].items():
                    key = (*at, *sorted(element))
                    mine[key] = (mine.get(key, 0) + times * value) % PRIME
        return found

    def _copies(self, layer: int, index: int) -> int:
        """How often an expert meets each token: once from every device that has the same tokens and sends them."""
        block = self.blocks[layer]
        weights = self.program.group(block.operations[index].weights)
        work = self.setting.plan.work.get((block.name, index), {})
        cut = [axis for cut in weights.params.cuts if cut.letter == "S" for axis in cut.axes if axis in weights.routed]
        apart = {axis for axis in cut if axis in self.program.work.split_axes or (axis in work and work[axis].weights)}
        return prod(self.grid.size[axis] for axis in cut if axis not in apart)

    def holders(self, weights: Weights) -> list[int]:
        return self.setting.holders(weights)

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


def _seed(place: Element) -> int:
    """How the loss of a place counts: an arbitrary number."""
    return mix(13, *place)


__all__ = ["Layers", "simulate_layers"]
