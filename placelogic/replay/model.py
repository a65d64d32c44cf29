"""A small model with the weight groups of the spec, forward and backward, on one device or on many.

The hidden rows (one per token, 8 columns) pass through the weights that the first stage uses, then layer by
layer through those of the body, then through those of the last stage; every loss term has a head of its
own. What each group adds is linear in its weights, so a device that holds a part of them computes a part of
the sum: rows, columns, layers or experts, whatever the spec cuts. Collectives inside are those of tensor,
sequence, expert and pipeline parallelism, written plainly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from placelogic.replay.comms import Comms
from placelogic.replay.data import CLASSES, WIDTH, Data, Who, normal
from placelogic.replay.functions import bounds_of, combined, copied, dispatched, gathered, split, summed
from placelogic.replay.shape import Shape
from placelogic.run.group import Group


class Model:
    """Fixed random maps around the weights of all groups."""

    def __init__(self, groups: Sequence[Group], data: Data, only: int | None = None) -> None:
        """`only`: the number of one loss term; the others are then nothing."""
        self.groups = groups
        self.data = data
        self._shapes: dict[int, Shape] = {}
        for group in groups:
            assert isinstance(group.geometry, Shape)
            self._shapes[group.number] = group.geometry
        self._weight = [1.0 if only in (None, term) else 0.0 for term in range(len(data.terms))]
        self._fixed: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}
        self.heads = [normal((data.seed, "head", term), WIDTH, CLASSES) / WIDTH**0.5 for term in range(len(data.terms))]

    def order(self) -> list[tuple[Group, int, int]]:
        """(group, use, layer) in the order of the forward pass."""
        found: list[tuple[int, int, int, Group, int]] = []
        for group in self.groups:
            for layer in range(self._shapes[group.number].matrices.shape[0]):
                if group.uses_axis is None:
                    found.append((1, layer, group.number, group, 0))
                else:
                    for use in group.members:
                        found.append((2 * use, layer, group.number, group, use))
        return [(group, use, layer) for _, layer, _, group, use in sorted(found, key=lambda row: row[:3])]

    def added(
        self, group: Group, use: int, layer: int, hidden: torch.Tensor, weights: torch.Tensor, columns: slice
    ) -> torch.Tensor:
        """What one layer of a group makes of these rows, in some of the columns. `weights`: of every element."""
        left, right = self._maps(group, use)
        matrices = weights[self._shapes[group.number].matrices[layer]]
        if group.weights.kind == "vector":
            scale = torch.einsum("trc,tcd->d", matrices, right[layer])
            norm = hidden / (hidden.pow(2).mean(1, keepdim=True) + 1e-5).sqrt()
            return (norm * scale)[:, columns]
        inner = torch.einsum("nd,tdc,trc->ntr", hidden, left[layer], matrices)
        return torch.einsum("ntr,trd->nd", inner, right[layer][:, :, columns])

    def _maps(self, group: Group, use: int) -> tuple[torch.Tensor, torch.Tensor]:
        key = group.number, use
        if key not in self._fixed:
            layers, tensors, rows, columns = self._shapes[group.number].matrices.shape
            inner = columns if group.weights.kind == "vector" else rows
            left = normal((self.data.seed, "left", *key), layers, tensors, WIDTH, columns) / WIDTH**0.5
            right = normal((self.data.seed, "right", *key), layers, tensors, inner, WIDTH)
            self._fixed[key] = left, right / (inner * tensors) ** 0.5
        return self._fixed[key]

    def noise(self, group: Group, use: int, layer: int, step: int, who: Who, noisy: tuple[int, ...]) -> torch.Tensor:
        """Dropout, as a factor close to 1 where the spec speaks of random numbers."""
        rows = self.data.rows(who)
        if not group.weights.random:
            return torch.ones(rows, WIDTH)
        drawn = normal((self.data.seed, "random", group.number, use, layer, step, who, noisy), rows, WIDTH)
        return 1 + 0.2 * torch.tanh(drawn)

    # --- one device ------------------------------------------------------------------------------

    def single(
        self, step: int, weights: Mapping[int, torch.Tensor], trained: Sequence[Group], backwards: bool = False
    ) -> dict[int, torch.Tensor]:
        """The gradient of the objective for every trained group, all items in one pass; `backwards`: in
        another order, which rounds differently."""
        items = self.data.items()[::-1] if backwards else self.data.items()
        leaves = {n: w.detach().clone().requires_grad_() for n, w in weights.items()}
        hidden = torch.cat([self.data.inputs(step, who) for who in items])
        for group, use, layer in self.order():
            made = self.added(group, use, layer, hidden, leaves[group.number], slice(None))
            noise = torch.cat([self.noise(group, use, layer, step, who, ()) for who in items])
            hidden = hidden + torch.tanh(made * noise)
        total = hidden.new_zeros(())
        for term in range(len(self.data.terms)):
            targets = torch.cat([self.data.targets(step, who, term) for who in items])
            counted = torch.cat([self.data.counted(who, term) for who in items])
            total = total + self._loss(term, hidden, targets, counted) / float(self.data.single_divisor(term))
        if not trained:
            return {}
        found = torch.autograd.grad(total, [leaves[g.number] for g in trained])
        return {group.number: gradient for group, gradient in zip(trained, found)}

    def _loss(self, term: int, hidden: torch.Tensor, targets: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
        scores = (hidden @ self.heads[term]).log_softmax(1)
        return -self._weight[term] * ((scores * targets).sum(1) * counted).sum()

    # --- many devices ----------------------------------------------------------------------------

    def device(
        self,
        comms: Comms,
        step: int,
        turn: int,
        computed: Mapping[int, torch.Tensor],
        trained: Sequence[Group],
    ) -> dict[int, list[torch.Tensor]]:
        """Per trained group and loss term, the gradient of this rank's own loss in the elements it computes
        with. `computed`: their values, after whatever is gathered on use."""
        x, data = comms.rank, self.data
        who = data.device(x, turn)
        leaves = {n: values.detach().clone().requires_grad_() for n, values in computed.items()}
        wide = {}
        for group in self.groups:
            zeros = torch.zeros(group.count)
            wide[group.number] = zeros.index_put((torch.tensor(group.home_local[x], dtype=torch.long),), leaves[group.number])
        hidden = data.inputs(step, who).requires_grad_()
        for group, use, layer in self.order():
            made = self._spread(comms, group, use, layer, turn, hidden, wide[group.number])
            noisy = tuple(group.grid.coordinate[a][x] + 1 for a in group.noisy)
            noise = self.noise(group, use, layer, step, who, noisy)
            hidden = hidden + torch.tanh(made * noise)
        found: dict[int, list[torch.Tensor]] = {group.number: [] for group in trained}
        for term in range(len(data.terms)):
            loss = self._loss(term, hidden, data.targets(step, who, term), data.counted(who, term))
            loss = loss / float(data.divisor(x, term, turn))
            gradients = torch.autograd.grad(
                loss, [leaves[g.number] for g in trained], retain_graph=True, allow_unused=True
            )
            for group, gradient in zip(trained, gradients):
                found[group.number].append(torch.zeros_like(leaves[group.number]) if gradient is None else gradient)
        return found

    def _spread(
        self, comms: Comms, group: Group, use: int, layer: int, turn: int, hidden: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """One layer of a group on all devices that work on these rows together."""
        grid, x = group.grid, comms.rank
        undo = []
        lengths = [self.data.rows(self.data.device(y, turn)) for y in range(grid.count)]
        rows, columns = _parts(group)
        for axis in rows:
            comm = comms.among(grid.groups((axis,)))
            assert comm is not None
            every = [bounds_of(length, comm.size) for length in lengths]
            lengths = [b[grid.coordinate[axis][y]][1] - b[grid.coordinate[axis][y]][0] for y, b in enumerate(every)]
            hidden = split(hidden, comm, 0, every[x])
            undo.append((comm, 0, every[x]))
        low, high = 0, WIDTH
        for axis in columns:
            comm = comms.among(grid.groups((axis,)))
            assert comm is not None
            hidden = copied(hidden, comm)
            inner = bounds_of(high - low, comm.size)
            undo.append((comm, 1, inner))
            start, end = inner[comm.index]
            low, high = low + start, low + end
        routed = comms.among(grid.groups(group.routed)) if group.routed else None
        bounds: list[tuple[int, int]] = []
        if routed is not None:
            for y in routed.members:
                start = bounds[-1][1] if bounds else 0
                bounds.append((start, start + lengths[y]))
            hidden = dispatched(hidden, routed, bounds)
        together = (*group.own_room, *((group.uses_axis,) if group.uses_axis is not None else ()))
        comm = comms.among(grid.groups(together)) if together else None
        if comm is not None:
            hidden = copied(hidden, comm)
        if group.uses_axis is not None and grid.coordinate[group.uses_axis][x] != group.members[use]:
            weights = weights * 0.0
        made = self.added(group, use, layer, hidden, weights, slice(low, high))
        if comm is not None:
            made = summed(made, comm)
        if routed is not None:
            made = combined(made, routed, bounds)
        for comm, dim, pieces in reversed(undo):
            made = gathered(made, comm, dim, pieces)
        return made


def _parts(group: Group) -> tuple[list[str], list[str]]:
    """The axes along which devices compute with pieces of the activations: rows (tokens), and columns (heads, hidden,
    vocabulary)."""
    dims = {axis: cut.dim for cut in group.weights.activations.cuts if cut.letter == "S" for axis in cut.axes}
    columns = [a for a in group.parts if dims.get(a) in ("heads", "hidden", "vocab") and a not in group.kept]
    return [axis for axis in group.parts if axis not in columns], columns
