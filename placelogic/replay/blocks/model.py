"""The blocks of a spec as the model that is trained, on one device and on many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from placelogic.program import block as bl
from placelogic.program.plan import Plan
from placelogic.program.program import Program
from placelogic.replay.blocks.chain import Numbers, Real
from placelogic.replay.blocks.held import Held, at_places
from placelogic.replay.blocks.lay import Lay
from placelogic.replay.blocks.matrices import Matrices
from placelogic.replay.comms import Comms
from placelogic.replay.data import Data, apart, normal
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.simulate.layers.arrays import Labels
from placelogic.simulate.layers.habits import Habits
from placelogic.simulate.layers.setting import Setting, Share

Foreign = tuple[tuple[str, int], ...]


def used(program: Program) -> frozenset[str]:
    """The weights that operations use."""
    if program.layers is None or program.layering is None:
        return frozenset()
    every = [op for block in program.layers.blocks for op in block.operations]
    return frozenset(name for op in every if (name := getattr(op, "weights", None)) is not None)


class BlockModel:
    """`groups`: those that operations use. `only`: the number of one loss term; the others are then nothing.
    `forward`: the largest difference of what the last block leaves, since it was last asked for."""

    def __init__(
        self, setting: Setting, groups: Sequence[Group], data: Data, comms: Comms, only: int | None = None
    ) -> None:
        self.setting = setting
        self.groups = groups
        self.data = data
        self.comms = comms
        self.forward = 0.0
        self._weight = [1.0 if only in (None, term) else 0.0 for term in range(len(data.terms))]
        self._matrices: dict[str, Matrices] = {}
        for group in groups:
            matrices = group.geometry
            assert isinstance(matrices, Matrices)
            matrices.group = group
            self._matrices[group.name] = matrices
        self._habits = Habits(setting.layers, setting.grid, setting.stages)
        self._left: dict[int, Held] = {}

    # --- one device ------------------------------------------------------------------------------

    def single(
        self, step: int, weights: Mapping[int, torch.Tensor], trained: Sequence[Group], backwards: bool = False
    ) -> dict[int, torch.Tensor]:
        """The gradient of the objective for every trained group; `backwards`: micro-batches in another order."""
        total = {group.number: torch.zeros(group.count) for group in trained}
        turns = range(1, self.data.microbatches + 1)
        for turn in reversed(turns) if backwards else turns:
            chain = self._chain(Grid(("one",), {"one": 1}), Plan(), step, turn, weights, None)
            left = chain.forward(self._tokens(step, turn, [{}], 0, ()))
            if not backwards:
                self._left[turn] = left
            for term in range(len(self.data.terms)):
                share = 1 / float(self.data.single_divisor(term))
                chain.backward(self._seeds(step, turn, term, left, 0, {}, (), share))
            for group in trained:
                if group.name in chain.gradients:
                    total[group.number] = total[group.number] + chain.gradients[group.name]
        return total

    # --- many devices ----------------------------------------------------------------------------

    def device(
        self, step: int, turn: int, computed: Mapping[int, torch.Tensor], trained: Sequence[Group]
    ) -> dict[int, list[torch.Tensor]]:
        """Per trained group and loss term, the gradient of this rank's own loss in the elements it computes
        with. Raises GroupStop, on all ranks alike, where a device cannot go on."""
        x, data, grid = self.comms.rank, self.data, self.setting.grid
        wide = {}
        for group in self.groups:
            place = (torch.tensor(group.home_local[x], dtype=torch.long),)
            wide[group.number] = torch.zeros(group.count).index_put(place, computed[group.number])
        shares = [self.setting.share(y) for y in range(grid.count)]
        chain = self._chain(grid, self.setting.plan, step, turn, wide, self._habits)
        foreign = data.work.foreign[x]
        left = chain.forward(self._tokens(step, turn, shares, x, foreign))
        self._compare(left, self._left[turn])
        found: dict[int, list[torch.Tensor]] = {group.number: [] for group in trained}
        for term in range(len(data.terms)):
            chain.gradients = {}
            share = 1 / float(data.divisor(x, term, turn))
            chain.backward(self._seeds(step, turn, term, left, x, shares[x], foreign, share))
            for group in trained:
                gradient = chain.gradients.get(group.name, torch.zeros(group.count))
                found[group.number].append(gradient[torch.tensor(group.home_local[x], dtype=torch.long)])
        return found

    def _chain(
        self, grid: Grid, plan: Plan, step: int, turn: int, weights: Mapping[int, torch.Tensor], habits: Habits | None
    ) -> Real:
        values = {group.name: weights[group.number].detach() for group in self.groups}
        stream = (self.data.seed, step, turn)
        numbers = Numbers(values, self._matrices, stream, lambda expr: float(self.data.work.value(expr)))
        return Real(grid, plan, self.setting.blocks, self.setting.dims, self.comms, numbers, habits)

    def _compare(self, left: Held, single: Held) -> None:
        lay = left.lays[self.comms.rank]
        expected = at_places(single.data, lay.labels)
        self.forward = max(self.forward, apart(left.data, expected))

    # --- samples ---------------------------------------------------------------------------------

    def _tokens(self, step: int, turn: int, shares: Sequence[Share], x: int, foreign: Foreign) -> Held:
        """Tokens are unlike each other, as far as a table has rows; other inputs are any numbers."""
        block, sizes = self.setting.blocks[0], self.setting.dims
        dims = block.tensors[block.input]
        lays = tuple(Lay(dims, tuple(_places(sizes, share, dim, 0) for dim in dims)) for share in shares)
        data = [_places(sizes, shares[x], dim, 1) for dim in dims]
        shape = tuple(sizes[dim] for dim in dims)
        if isinstance(block.operations[0], bl.Embedding):
            first = turn + step + sum(coordinate + 1 for _, coordinate in foreign)
            whole = torch.arange(first, first + torch.Size(shape).numel()).reshape(shape)
        else:
            whole = normal((self.data.seed, "inputs", step, turn, foreign), *shape)
        return Held(lays, at_places(whole, data))

    def _seeds(
        self, step: int, turn: int, term: int, left: Held, x: int, share: Share, foreign: Foreign, factor: float
    ) -> Held:
        """What flows back: how each place counts in the objective, divided as this device divides."""
        lay = left.lays[x]
        key = (self.data.seed, "counts", step, turn, term, foreign)
        whole = normal(key, *(self.setting.dims[dim] for dim in lay.dims))
        if isinstance(self.setting.blocks[-1].operations[-1], bl.CrossEntropy):
            whole = 1 + 0.5 * torch.tanh(whole)
        places = []
        for dim, labels in zip(lay.dims, lay.labels):
            known = dict(zip(*share[dim])) if dim in share else {}
            places.append(tuple(known.get(label, label) for label in labels))
        return Held(left.lays, at_places(whole, places) * (factor * self._weight[term]))


def _places(sizes: Mapping[str, int], share: Share, dim: str, which: int) -> Labels:
    return share[dim][which] if dim in share else tuple(range(sizes[dim]))
