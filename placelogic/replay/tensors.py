"""The algebra of tensors: the array of this rank, and real collectives among those that hold the weights."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import torch

from placelogic.program.catalog import Needs
from placelogic.program.program import Axes
from placelogic.replay import optimizers
from placelogic.replay.comms import Comm, Comms, padded
from placelogic.replay.data import normal
from placelogic.replay.optimizers import Moments
from placelogic.run.group import NOWHERE, Group, Held, Local, Table


class Tensors:
    """Arrays of one weight group on this rank. Where they lie on others is known here too; numbers are not."""

    def __init__(self, group: Group, comms: Comms, seed: int, optimizer: str) -> None:
        self.group = group
        self.comms = comms
        self.x = comms.rank
        self.optimizer = optimizer
        self.calm = 1.0  # what gradients are divided by before a step is taken
        self._seed = seed
        self._routes: dict[int, tuple[Table, _Route]] = {}
        self._indices: dict[int, tuple[Local, torch.Tensor]] = {}

    def index(self, row: Local) -> torch.Tensor:
        """As a tensor."""
        if id(row) not in self._indices:
            self._indices[id(row)] = row, torch.tensor(row, dtype=torch.long)
        return self._indices[id(row)][1]

    def left(self, elements: Local) -> torch.Tensor:
        """What lies in memory that holds no value."""
        return normal(("left over", self.x), 1 + max(elements))[self.index(elements)] if elements else torch.zeros(0)

    def _places(self, wanted: Held, held: Held) -> torch.Tensor:
        return self.index(self.group.places(wanted, held)[self.x])

    # --- one device --------------------------------------------------------------------------

    def take(self, array: torch.Tensor, held: Held, wanted: Held, why: str) -> torch.Tensor:
        at = self._places(wanted, held)
        if bool((at != NOWHERE).all()):
            return array[at]
        left = self.left(wanted[self.x])
        return torch.where(at != NOWHERE, array[at.clamp(min=0)], left) if len(array) else left

    def rubbish(self, array: torch.Tensor, held: Held, usable: Held, why: str) -> torch.Tensor:
        return torch.where(self._places(held, usable) != NOWHERE, array, self.left(held[self.x]))

    def put(
        self, array: torch.Tensor, held: Held, source: torch.Tensor, there: Held, only: Held, why: str
    ) -> torch.Tensor:
        at = self._places(held, there)
        here = (at != NOWHERE) & (self._places(held, only) != NOWHERE)
        found = array.clone()
        found[here] = source[at[here]]
        return found

    def add(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return one + other

    def scale(self, array: torch.Tensor, factor: Fraction, why: str) -> torch.Tensor:
        return array * float(factor)

    def draw(self, line: int, axes: Axes, held: Held) -> torch.Tensor:
        return self._drawn(line, tuple(self.group.grid.coordinate[a][self.x] for a in axes))[self.index(held[self.x])]

    def _drawn(self, line: int, key: tuple[int, ...]) -> torch.Tensor:
        """Of every element."""
        return 0.7 * normal((self._seed, "init", self.group.number, line, key), self.group.count)

    def step(
        self, target: torch.Tensor, there: Held, gradient: torch.Tensor, held: Held, moments: Moments, mine: Held,
        seen: Held | None, over: Axes,
    ) -> tuple[torch.Tensor, Moments]:  # fmt: skip
        comm = self.comms.among(self.group.groups(over)) if over else None
        if not mine[self.x] and comm is None:
            return target, moments
        column, row = self._places(mine, there), self._places(mine, self.group.optimizer_local)
        old = {name: moment[row] for name, moment in moments.items()}
        theta, new = self._stepped(self.index(mine[self.x]), gradient[self._places(mine, held)] / self.calm, target[column], old, comm)
        target, moments = target.clone(), {name: moment.clone() for name, moment in moments.items()}
        target[column] = theta
        for name, values in new.items():
            moments[name][row] = values
        return target, moments

    def _stepped(
        self, elements: torch.Tensor, gradient: torch.Tensor, theta: torch.Tensor, old: Moments, comm: Comm | None = None
    ) -> tuple[torch.Tensor, Moments]:
        """New parameters and moments of elements that one device updates together."""
        trusted = self.group.weights.optimizer.needs in (Needs.TENSOR, Needs.MATRIX)
        return optimizers.stepped(self.optimizer, self.group.units, trusted, elements, gradient, theta, old, comm)

    def stepped_single(
        self, gradient: torch.Tensor, theta: torch.Tensor, old: Moments
    ) -> tuple[torch.Tensor, Moments]:
        """Those of the single device."""
        return self._stepped(torch.arange(self.group.count), gradient, theta, old)

    # --- several devices ---------------------------------------------------------------------

    def sum(
        self, array: torch.Tensor, held: Held, axes: Axes, mean: bool, needed: Held | None, why: str
    ) -> torch.Tensor:
        """A reduce-scatter where only shards are read afterwards, else an all-reduce."""
        comm = self.comms.among(self.group.groups(axes))
        if comm is None or comm.size == 1:
            return array
        if needed is not None and all(held[y] == held[comm.members[0]] for y in comm.members):
            found = self.left(held[self.x])
            at = self._places(needed, held)
            total = self._reduce_scatter(array, held, needed, comm)
            found[at] = total / comm.size if mean else total
            return found
        length = max(len(held[y]) for y in comm.members)
        total = comm.all_reduce(padded(array, length))[: len(array)]
        return total / comm.size if mean else total

    def _reduce_scatter(self, array: torch.Tensor, held: Held, needed: Held, comm: Comm) -> torch.Tensor:
        places = self.group.places(needed, held)  # the same elements are held by all
        length = max(len(needed[y]) for y in comm.members)
        pieces = [padded(array[self.index(places[y])], length) for y in comm.members]
        return comm.reduce_scatter(pieces)[: len(needed[self.x])]

    def pick(
        self, array: torch.Tensor, held: Held, wanted: Held, axes: Axes, table: Table, why: str
    ) -> torch.Tensor:
        """Each member sends only what another one asks for."""
        comm = self.comms.among(self.group.groups(axes))
        found = self.left(wanted[self.x])
        if comm is None:
            return found
        if id(table) not in self._routes:
            self._routes[id(table)] = table, _Route(table, comm, self.x)
        route = self._routes[id(table)][1]
        arrays = comm.all_gather_uneven(array[route.sent], route.lengths)
        for values, (came, place) in zip(arrays, route.came):
            found[place] = values[came]
        here, place = route.own
        found[place] = array[here]
        return found

    def copies(self, array: torch.Tensor, held: Held, axis: str) -> torch.Tensor:
        comm = self.comms.among(self.group.groups((axis,)))
        if comm is None:
            return array
        others = comm.all_gather(padded(array, max(len(held[y]) for y in comm.members)))
        same = all(torch.allclose(others[0], other, rtol=1e-9, atol=1e-12) for other in others)
        return array if same else self.left(held[self.x])

    def broadcast(self, array: torch.Tensor, held: Held, axes: Axes, root: int, why: str) -> torch.Tensor:
        comm = self.comms.among(self.group.groups(axes))
        if comm is None or comm.size == 1:
            return array
        source = comm.broadcast(padded(array, max(len(held[y]) for y in comm.members)), root)
        size = len(held[comm.members[root]])
        return torch.cat([source[: min(size, len(array))], array[size:]])

    # --- the whole job -----------------------------------------------------------------------

    def squares(
        self, array: torch.Tensor, held: Held, usable: Held, copies: Sequence[int] | None, axes: Axes | None
    ) -> torch.Tensor:
        values = array[self._places(usable, held)].square()
        if copies is not None:
            values = values / torch.tensor([copies[e] for e in usable[self.x]])
        own = values.sum()
        if axes is None:
            return self.comms.everyone().all_reduce(own)
        comm = self.comms.among(self.group.grid.groups(axes)) if axes else None
        return own if comm is None else comm.all_reduce(own)

    # --- from one device -----------------------------------------------------------------------

    def started_single(self) -> torch.Tensor:
        """What the single device starts from."""
        found = torch.zeros(self.group.count)
        drawn = self.group.draws()
        for draws in {tuple(draws) for draws in drawn}:
            here = torch.tensor([tuple(one) == draws for one in drawn])
            found[here] = torch.stack([self._drawn(line, key) for line, key in draws]).sum(0)[here]
        return found

    def spread(self, single: torch.Tensor, held: Held) -> torch.Tensor:
        """What this rank holds of the single device's values."""
        return single[self.index(held[self.x])]


class _Route:
    """Who sends what in an all-gather: `sent`, the places of this rank's array that others ask for, `lengths` of
    what each member sends; `came`: per member, which of its values this rank takes, and their places; `own`: places of
    its own array, and where they go."""

    def __init__(self, table: Table, comm: Comm, x: int) -> None:
        asked = [
            sorted({place for z in comm.members if z != y for owner, place in table[z] if owner == y and place >= 0})
            for y in comm.members
        ]
        self.sent = torch.tensor(asked[comm.index], dtype=torch.long)
        self.lengths = [len(places) for places in asked]
        self.came = []
        for y, places in zip(comm.members, asked):
            rank = {place: number for number, place in enumerate(places)}
            pairs = [(rank[i], at) for at, (owner, i) in enumerate(table[x]) if owner == y != x and i >= 0]
            self.came.append(_columns(pairs))
        self.own = _columns([(i, at) for at, (owner, i) in enumerate(table[x]) if owner == x and i >= 0])


def _columns(pairs: Sequence[tuple[int, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    found = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2)
    return found[:, 0], found[:, 1]
