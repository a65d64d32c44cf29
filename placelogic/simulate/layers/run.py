"""A training step with the operations of its layers, on a small mesh and on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod

from msgspec.structs import replace

from placelogic.program import block as bl
from placelogic.program.expr import Expr
from placelogic.program.plan import Plan
from placelogic.program.program import Program, Weights
from placelogic.run.grid import Grid
from placelogic.run.layers.algebra import Site
from placelogic.run.layers.chain import Chain
from placelogic.run.layers.habits import Habits
from placelogic.run.layers.lay import Lay, Tensor
from placelogic.run.layers.setting import Setting, Share
from placelogic.run.layers.uses import key_of
from placelogic.run.stop import GroupStop, SimulationTooLarge
from placelogic.run.work import Work
from placelogic.simulate.arithmetic import PRIME, mix, residue
from placelogic.simulate.compare import spared
from placelogic.simulate.layers.exact import Exact
from placelogic.simulate.layers.step import Fresh, LayerStep
from placelogic.simulate.layers.tape import Numbers, placed, taken
from placelogic.simulate.layers.transposes import Transposes
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
        self._known: dict[object, dict[tuple[int, ...], int]] = {}
        self._matrices: dict[object, int] = {}
        self.transposes: Transposes | None = None

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
            holders, fresh = self.setting.holders(weights), [fresh[weights.name] for fresh in mesh_grads]
            runner = LayerStep(self.program, self.grid, weights, step, fresh, expected, holders, self._number)
            try:
                wrong = runner.decided()
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

    def _single(self, turn: int) -> tuple[Tensor[Numbers], Fresh]:
        grid = Grid(("one",), {"one": 1})
        return self._pass(turn, grid, Plan(), [self.setting.alone], None, None)

    def _mesh(self, turn: int) -> tuple[Tensor[Numbers], Fresh]:
        if self.transposes is None:
            self.transposes = self._transposes()
        return self._on_mesh(turn, self.setting.plan, self.layers, self.transposes)

    def _on_mesh(
        self, turn: int, plan: Plan, layers: bl.Layers, transposes: Transposes
    ) -> tuple[Tensor[Numbers], Fresh]:
        habits = Habits(layers, self.grid, self.setting.stages)
        shares = [self.setting.share(x) for x in range(self.grid.count)]
        return self._pass(turn, self.grid, plan, shares, habits, transposes)

    def _transposes(self) -> Transposes:
        """As they are where nothing is said of boundaries, random numbers and positions."""
        layers, layering = self.layers, self.program.layering
        assert layering is not None
        found = Transposes({line.origin for line in layers.overrides if line.direction == "backward"})
        if layers.overrides or layers.drawn or layers.counted:
            usual = replace(layers, overrides=(), drawn=(), counted=())
            try:
                self._on_mesh(1, layering.usual or layering.plan, usual, found)
            except GroupStop:
                return found  # wrong whatever is said: found while it runs
            found.settle()
        return found

    def _pass(
        self, turn: int, grid: Grid, plan: Plan, shares: Sequence[Share], habits: Habits | None,
        transposes: Transposes | None,
    ) -> tuple[Tensor[Numbers], Fresh]:  # fmt: skip
        """Forward, and back from every loss term of every place."""
        exact = Exact(grid, self._number, self._weights, transposes)
        chain = Chain(grid, plan, self.blocks, self.dims, exact, habits)
        lays = tuple(self.setting.lies(share) for share in shares)
        fed = [self._tokens(turn, self.setting.lies(share, 1)) for share in shares]
        left = chain.forward(Tensor(lays, Numbers(fed)))
        found: Fresh = {}
        for term in range(len(self.work.terms)):
            seeds, divisors = [], [Fraction(self.work.single_counted(term))]
            if habits is not None:
                divisors = self.setting.counted(term, turn, left.lays)
            for lay, share, divisor in zip(left.lays, shares, divisors):
                by, places = residue(1 / divisor), product(*self.setting.fed(lay, share).labels)
                seeds.append([mix(13, term, *place) * by % PRIME for place in places])
            exact.tape.backward(left.data, seeds)
            self._keep(found, exact, term, grid.count)
        return left, found

    def _tokens(self, turn: int, lay: Lay) -> list[int]:
        """Tokens are unlike each other, as far as a table has rows; other inputs are arbitrary numbers."""
        if not isinstance(self.layers.blocks[0].operations[0], bl.Embedding):
            return [mix(turn, 99, *place) for place in product(*lay.labels)]
        whole = Lay(lay.dims, tuple(tuple(range(self.dims[dim])) for dim in lay.dims))
        return [number + turn for number in placed(whole, lay)]

    def _number(self, expr: Expr, term: int = 0) -> int:
        try:
            return residue(self.work.value(expr, term))
        except ZeroDivisionError:
            raise GroupStop("a factor divides by zero") from None

    # --- weights ------------------------------------------------------------------------------

    def _weights(self, s: Site[Numbers], lay: Lay) -> list[int]:
        group = [weights.name for weights in self.program.weights].index(s.op.weights)  # type: ignore[union-attr]
        matrix, names = self._matrix(s), [i for _, i in sorted((dim, i) for i, dim in enumerate(lay.dims))]
        known = self._known.setdefault((group, matrix, lay.dims), {})
        found = []
        for element in product(*lay.labels):
            value = known.get(element)
            if value is None:
                value = known[element] = mix(11, group, matrix, *(element[i] for i in names))
            found.append(value)
        return found

    def _matrix(self, s: Site[Numbers]) -> int:
        """The number of the matrix that an operation uses."""
        weights = self.program.group(s.op.weights)  # type: ignore[union-attr]
        key = weights.name, key_of(self.setting, weights, s.layer, s.index, s.op)
        return self._matrices.setdefault(key, len(self._matrices))

    def _keep(self, found: Fresh, exact: Exact, term: int, count: int) -> None:
        """Adds the gradients that came back of a loss term."""
        for s, used in exact.used:
            weights = self.program.group(s.op.weights)  # type: ignore[union-attr]
            mine = found.setdefault(weights.name, [{} for _ in range(count)])
            times = self._copies(s.layer, s.index) if count > 1 else 1
            for x, lay in enumerate(used.lays):
                uses = weights.uses
                if count > 1 and uses and not self.setting.computes(uses, x, self.setting.begins(s.layer)):
                    continue
                gradients = used.data.gradients
                for i, place in enumerate(product(*lay.labels)):
                    key = (term, self._matrix(s), *sorted(zip(lay.dims, place)))
                    value = gradients[x][i] if gradients is not None else 0
                    mine[x][key] = (mine[x].get(key, 0) + times * value) % PRIME

    def _copies(self, layer: int, index: int) -> int:
        """How often an expert meets each token: once from every device that has the same tokens and sends them."""
        block = self.blocks[layer]
        weights = self.program.group(block.operations[index].weights)  # type: ignore[union-attr]
        work = self.setting.plan.work.get((block.name, index), {})
        cut = [axis for cut in weights.params.cuts if cut.letter == "S" for axis in cut.axes if axis in weights.routed]
        apart = {axis for axis in cut if axis in self.program.work.split_axes or (axis in work and work[axis].weights)}
        return prod(self.grid.size[axis] for axis in cut if axis not in apart)

    def _expected(self, weights: Weights, turns: Sequence[Fresh]) -> dict[object, int]:
        total: dict[object, int] = {}
        for fresh in turns:
            for key, value in fresh[weights.name][0].items():
                total[key] = (total.get(key, 0) + value) % PRIME
        return total

    # --- comparison ---------------------------------------------------------------------------

    def _compare(self, single: Tensor[Numbers], mesh: Tensor[Numbers]) -> list[Difference]:
        for x, (lay, values) in enumerate(zip(mesh.lays, mesh.data.values)):
            if values != taken(single.data.values[0], placed(single.lays[0], lay)):
                text = f"({self.grid.name(x)}) computes another value of `{self.blocks[-1].result}`"
                return [Difference(None, 1, "forward", self.grid.device(x), None, text)]
        return []
