"""How much of each work item reaches the optimizer: the step run with one item at a time."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from msgspec.structs import replace

from placelogic.program.program import Program
from placelogic.run.buffers import Buffer
from placelogic.run.group import Group
from placelogic.run.state import State
from placelogic.run.stop import SimulationTooLarge
from placelogic.run.work import Counts, Item
from placelogic.simulate.arithmetic import PRIME, inverse, mix, rational
from placelogic.simulate.elements import COUNT
from placelogic.simulate.exact import Arrays
from placelogic.simulate.machine import Machine
from placelogic.simulate.model import Key, Model, Pair, read_devices

MAX_RUNS = 2_000
"""Items, times devices over a hundred: a table longer than this nobody reads."""

_ZERO: Pair = ([0] * COUNT, [0] * COUNT)
Fed = dict[int, dict[int, int]]
"""device -> element -> what it feeds the optimizer."""


class _OneItem(Model):
    """A model in which one item has a gradient and all others have none."""

    def __init__(self, machine: Machine, key: Key, element: int | None) -> None:
        super().__init__(machine.work)
        self._key = key
        self._ones: Pair = (
            [_number(e) if element is None or e == element else 0 for e in range(COUNT)],
            [0] * COUNT,
        )

    def item(self, group: Group, key: Key, noise: tuple[int, ...] = ()) -> Pair:
        return self._ones if key == self._key else _ZERO


def _number(element: int) -> int:
    """The item's gradient of this element: arbitrary, so that other elements show."""
    return mix(9, element)


class _Recorder(Machine):
    """Runs one group's step and keeps what is fed to the optimizer."""

    fed: Fed

    def feed(self, state: State[Arrays, Arrays], step: int, buffer: Buffer[Arrays]) -> None:
        mine = state.group.updates(buffer.usable)
        rows = state.group.places(mine, buffer.local)
        for x, (elements, row) in enumerate(zip(mine, rows)):
            if elements:
                self.fed[x] = {e: buffer.layers[0][x][place] for e, place in zip(elements, row)}

    def only(self, group: Group, model: Model) -> Fed:
        self.fed = {}
        self.model = model
        self.reads = {group.number: read_devices(group, self.states[group.number].theta)}
        self.drive(1, [self.runner(group, 1)])
        return self.fed


def coefficients_of(
    program: Program,
    sizes: Mapping[str, int],
    quantities: Mapping[str, int],
    weights: str,
    counts: Counts,
    per_item: int,
) -> dict[tuple[int, ...], dict[Item, Fraction]]:
    """See `placelogic.simulate.coefficients`."""
    machine = _Recorder(replace(program, clip=None), sizes, quantities, counts, per_item)
    group = next(g for g in machine.groups if g.name == weights)
    if group.stop is not None or program.step(weights) is None:
        return {}
    keys = _keys(machine, group)
    if len(keys) * max(1, machine.grid.count // 100) > MAX_RUNS:
        raise SimulationTooLarge(f"{len(keys)} work items on {machine.grid.count} devices")
    runs = [(key, machine.only(group, _OneItem(machine, key, None))) for key in keys]
    if group.stop is not None:
        return {}
    table: dict[tuple[int, ...], dict[Item, Fraction]] = {}
    for x in sorted(runs[0][1] if runs else ()):
        best: dict[Item, Fraction] | None = None
        for element in sorted(runs[0][1][x]):
            row = {_label(machine, group, key): _factor(machine, group, key, fed, x, element) for key, fed in runs}
            if best is None or any(value != 1 for value in row.values()):
                best = row
                if any(value != 1 for value in row.values()):
                    break
        if best is not None:
            table[machine.grid.device(x)] = best
    return table


def _factor(machine: _Recorder, group: Group, key: Key, fed: Fed, x: int, element: int) -> Fraction:
    unit = inverse(_number(element)) * machine.work.single_counted(key[0])
    own = rational(fed[x][element] * unit % PRIME)
    if own is None:
        # Other elements were added in: count only what is of this element.
        alone = machine.only(group, _OneItem(machine, key, element))
        own = rational(alone[x][element] * unit % PRIME)
    if own is None:
        raise ArithmeticError("a coefficient has a numerator or denominator beyond 2**30")
    return own


def _keys(machine: Machine, group: Group) -> list[Key]:
    """What the single device adds up, then what only other devices see (data fed by mistake)."""
    keys = [key for term in range(len(machine.work.terms)) for key in machine.model.keys(group, term)]
    strange = dict.fromkeys(tuple(c for _, c in foreign) for foreign in machine.work.foreign if foreign)
    return keys + [(t, s, m, foreign, u, p) for foreign in strange for t, s, m, _, u, p in keys]


def _label(machine: Machine, group: Group, key: Key) -> Item:
    term, share, turn, foreign, use, part = key
    item = machine.work.item(machine.work.terms[term], share, turn)
    tied = len(group.members) > 1
    strange = next((f for f in machine.work.foreign if tuple(c for _, c in f) == foreign and f), ())
    return replace(
        item,
        use=("first", "last")[use] if tied else None,
        part=tuple(zip(group.parts, part)),
        foreign=strange if foreign else (),
    )
