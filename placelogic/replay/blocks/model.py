"""The blocks of a spec as the model that is trained, on one device and on many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import torch

from placelogic.program import block as bl
from placelogic.program.plan import Plan
from placelogic.program.program import Program
from placelogic.replay.blocks.held import at_places
from placelogic.replay.blocks.matrices import Matrices
from placelogic.replay.blocks.real import Numbers, Real, Value
from placelogic.replay.comms import Comms
from placelogic.replay.data import Data, apart, normal
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.run.layers.chain import Chain
from placelogic.run.layers.habits import Habits
from placelogic.run.layers.lay import Lay, Tensor
from placelogic.run.layers.setting import Setting

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
        self._left: dict[int, Value] = {}

    # --- one device ------------------------------------------------------------------------------

    def single(
        self, step: int, weights: Mapping[int, torch.Tensor], trained: Sequence[Group], backwards: bool = False
    ) -> dict[int, torch.Tensor]:
        """The gradient of the objective for every trained group; `backwards`: micro-batches in another order."""
        total = {group.number: torch.zeros(group.count) for group in trained}
        turns = range(1, self.data.microbatches + 1)
        for turn in reversed(turns) if backwards else turns:
            left, terms = self._pass(step, turn, weights, alone=True)
            if not backwards:
                self._left[turn] = left
            for gradients in terms:
                for group in trained:
                    total[group.number] = total[group.number] + gradients[group.name]
        return total

    # --- many devices ----------------------------------------------------------------------------

    def device(
        self, step: int, turn: int, computed: Mapping[int, torch.Tensor], trained: Sequence[Group]
    ) -> dict[int, list[torch.Tensor]]:
        """Per trained group and loss term, the gradient of this rank's own loss in the elements it computes
        with. Raises GroupStop, on all ranks alike, where a device cannot go on."""
        x, wide = self.comms.rank, {}
        for group in self.groups:
            place = (torch.tensor(group.home_local[x], dtype=torch.long),)
            wide[group.number] = torch.zeros(group.count).index_put(place, computed[group.number])
        left, terms = self._pass(step, turn, wide, alone=False)
        expected = at_places(self._left[turn].data, left.lays[x].labels)
        self.forward = max(self.forward, apart(left.data.detach(), expected.detach()))
        found: dict[int, list[torch.Tensor]] = {group.number: [] for group in trained}
        for gradients in terms:
            for group in trained:
                found[group.number].append(gradients[group.name][torch.tensor(group.home_local[x], dtype=torch.long)])
        return found

    # --- one micro-batch -------------------------------------------------------------------------

    def _pass(
        self, step: int, turn: int, weights: Mapping[int, torch.Tensor], alone: bool
    ) -> tuple[Value, Iterator[dict[str, torch.Tensor]]]:
        """What the last block leaves, and by loss term what comes back to all elements of every group."""
        setting, data, x = self.setting, self.data, 0 if alone else self.comms.rank
        grid = Grid(("one",), {"one": 1}) if alone else setting.grid
        shares = [setting.alone] if alone else [setting.share(y) for y in range(grid.count)]
        foreign: Foreign = () if alone else data.work.foreign[x]
        values = {group.name: weights[group.number] for group in self.groups}
        stream = (data.seed, step, turn)
        numbers = Numbers(values, self._matrices, stream, lambda expr: float(data.work.value(expr)))
        real = Real(grid, self.comms, numbers, alone)
        plan, habits = (Plan(), None) if alone else (setting.plan, self._habits)
        fed = self._tokens(step, turn, setting.lies(shares[x], 1), foreign)
        entered = Tensor(tuple(setting.lies(share) for share in shares), fed)
        chain = Chain(grid, plan, setting.blocks, setting.dims, real, habits)
        with torch.enable_grad():
            left = chain.forward(entered)

        def back() -> Iterator[dict[str, torch.Tensor]]:
            chain.turn()
            lay = setting.fed(left.lays[x], shares[x])
            for term, weight in enumerate(self._weight):
                divisor = data.single_divisor(term) if alone else setting.counted(term, turn, left.lays)[x]
                seeds = self._seeds((data.seed, "counts", step, turn, term, foreign), lay)
                yield real.gradients(left, entered, seeds * (weight / float(divisor)))

        return left, back()

    def _tokens(self, step: int, turn: int, lay: Lay, foreign: Foreign) -> torch.Tensor:
        """Tokens are unlike each other, as far as a table has rows; other inputs are any numbers."""
        shape = tuple(self.setting.dims[dim] for dim in lay.dims)
        if isinstance(self.setting.blocks[0].operations[0], bl.Embedding):
            first = turn + step + sum(coordinate + 1 for _, coordinate in foreign)
            return at_places(torch.arange(first, first + prod(shape)).reshape(shape), lay.labels)
        whole = normal((self.data.seed, "inputs", step, turn, foreign), *shape)
        return at_places(whole, lay.labels).requires_grad_()

    def _seeds(self, key: tuple[object, ...], lay: Lay) -> torch.Tensor:
        """What flows back: how each place counts in the objective."""
        whole = normal(key, *(self.setting.dims[dim] for dim in lay.dims))
        if isinstance(self.setting.blocks[-1].operations[-1], bl.CrossEntropy):
            whole = 1 + 0.5 * torch.tanh(whole)
        return at_places(whole, lay.labels)
