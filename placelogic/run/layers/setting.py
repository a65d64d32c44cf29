"""Blocks on one mesh: which layers there are, how large dimensions are made, and what each device is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.expr import evaluate
from placelogic.program.program import Program, Uses, Weights
from placelogic.run.grid import Grid
from placelogic.run.layers.fit import sizes_of
from placelogic.run.layers.lay import Labels, Lay, part
from placelogic.run.work import Work

MAX_LAYERS = 4
"""Layers of one block; more show nothing new."""

Share = Mapping[str, tuple[Labels, Labels]]
"""dimension -> the places of a device's share of the work, and those of the data that it is fed."""


class Setting:
    """`dims`: dimension -> how many places it has. `blocks`: every layer. `dims_in`: of what the first block reads,
    `alone`: the share of it that a single device has."""

    def __init__(self, program: Program, grid: Grid, work: Work, many: int = MAX_LAYERS, each: int = 1) -> None:
        """`many`: layers that stand for more than MAX_LAYERS; `each`: places of a piece of a dimension."""
        assert program.layers is not None and program.layering is not None
        self.program, self.layers, self.plan = program, program.layers, program.layering.plan
        self.grid, self.work = grid, work
        self.stages = program.stages.axis if program.stages is not None else None
        self.dims = sizes_of(program, self.layers, self.plan, grid.size, each)
        self.blocks: list[Block] = []
        for block in self.layers.blocks:
            times = 1 if block.repeat is None else int(evaluate(block.repeat, work.env))
            self.blocks += [block] * max(1, times if times <= MAX_LAYERS else many)
        first = self.layers.blocks[0]
        self.dims_in = first.tensors[first.input]
        self.alone: Share = {dim: (tuple(range(self.dims[dim])),) * 2 for dim in self.dims_in}
        self._arrives = self.plan.shapes.get((first.name, first.input), {})

    def share(self, x: int) -> Share:
        """Of the tensor that the first block reads."""
        found = {}
        work = self.program.work
        for dim in self.dims_in:
            labels: Labels = tuple(range(self.dims[dim]))
            data = labels
            for split in work.splits:
                if split.dim != dim and not (split.dim == "tokens" and dim == "batch"):
                    continue
                size, at = self.grid.size[split.axis], self.grid.coordinate[split.axis][x]
                feed = work.feed(split.axis)
                labels, data = part(labels, size, at), part(data, size, 0 if feed and feed.kind == "same" else at)
            for axis, cut in self._arrives.items():
                if cut == dim and axis not in work.split_axes:
                    size, at = self.grid.size[axis], self.grid.coordinate[axis][x]
                    labels, data = part(labels, size, at), part(data, size, at)
            found[dim] = labels, data
        return found

    def lies(self, share: Share, which: int = 0) -> Lay:
        """What the first block reads: the places that a device computes (0), or those of the data that it is fed (1)."""
        return Lay(self.dims_in, tuple(share[dim][which] for dim in self.dims_in))

    def fed(self, lay: Lay, share: Share) -> Lay:
        """The places of the data that what lies so was computed from."""
        known = [dict(zip(*share[dim])) if dim in share else {} for dim in lay.dims]
        return Lay(lay.dims, tuple(tuple(of.get(at, at) for at in places) for of, places in zip(known, lay.labels)))

    def counted(self, term: int, turn: int, left: Sequence[Lay]) -> list[Fraction]:
        """By device, what it divides a loss by. `left`: what the last block leaves; where that is the loss of tokens,
        and they are even, those of which it has the loss count, with those that are counted together with them."""
        work, loss = self.work, self.work.terms[term]
        if not loss.mean or not work.even or not isinstance(self.blocks[-1].operations[-1], bl.CrossEntropy):
            return work.counted(term, turn)
        places = prod(self.dims[dim] for dim in left[0].dims)
        each = Fraction(work.total[term], places * work.microbatches)
        own = [each * prod(lay.shape) for lay in left]
        turns = work.microbatches if loss.microbatches else 1
        found = list(own)
        for group in self.grid.groups(loss.over):
            for x in group:
                found[x] = turns * sum((own[y] for y in group), Fraction(0))
        return found

    def tied(self, name: str) -> bool:
        """Whether all operations of these weights use the same ones, at either end."""
        uses = self.program.group(name).uses
        return uses is not None and uses.first and uses.last

    def begins(self, layer: int) -> bool:
        """Whether it lies before the layers that are shared out over stages."""
        repeated = [number for number, block in enumerate(self.blocks) if block.repeat is not None]
        return layer < repeated[0] if repeated else layer == 0

    def computes(self, uses: Uses, x: int, first: bool) -> bool:
        """Whether the device is the stage of this use; `first`: that before the layers."""
        last = uses.last_stage(self.grid.size)
        if uses.first and uses.last:
            return self.grid.coordinate[uses.axis][x] == (0 if first else last)
        return self.grid.coordinate[uses.axis][x] == (0 if uses.first else last)

    def holders(self, weights: Weights) -> list[int]:
        uses = weights.uses
        if uses is None:
            return list(range(self.grid.count))
        last = uses.last_stage(self.grid.size)
        stages = [stage for stage, used in ((0, uses.first), (last, uses.last)) if used]
        return [x for x in range(self.grid.count) if self.grid.coordinate[uses.axis][x] in stages]
