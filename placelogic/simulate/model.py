"""The simulated model: an arbitrary gradient of every work item, coupled to every parameter.

The summed loss of an item has, for element e of a group, the gradient
`a + s * h` with arbitrary `a`, `s` of (item, use, part, e) and `h` an arbitrary linear function
of all parameters of all groups, each use of tied weights read on its own. So one stale
parameter anywhere changes every gradient computed with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from operator import mul

from placelogic.run.group import Group
from placelogic.run.work import Work
from placelogic.simulate.arithmetic import PRIME, inverse, mix, residue
from placelogic.simulate.elements import COUNT
from placelogic.simulate.exact import Arrays, Exact

Key = tuple[int, int, int, tuple[int, ...], int, tuple[int, ...]]
"""term, share, micro-batch, foreign coordinates, use, part of the activations."""
Pair = tuple[list[int], list[int]]


class Model:
    """Gradients of items, with what was computed before kept."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._known: dict[tuple[object, ...], Pair] = {}
        self._keys: dict[int, Pair] = {}

    def item(self, group: Group, key: Key, noise: tuple[int, ...] = ()) -> Pair:
        """The lists a and s of one item's contribution through one use and part."""
        number = group.number
        term, share, turn, foreign, use, part = key
        if number not in self._keys:
            self._keys[number] = (
                [mix(1, number, e) for e in range(COUNT)],
                [mix(2, number, e) for e in range(COUNT)],
            )
        r = mix(3, number, term, share, turn, use, len(foreign), *foreign, *part, 5, *noise)
        a, s = self._keys[number]
        # A cube of a sum: products of r and of each key, so no two items or elements cancel.
        return [(r + k) ** 3 % PRIME for k in a], [(r + k) ** 3 % PRIME for k in s]

    def contribution(self, group: Group, x: int, term: int, turn: int, uses: tuple[int, ...]) -> Pair:
        """What device x's backward pass of one micro-batch computes for all elements."""
        work, at = self.work, group.grid.coordinate
        foreign = tuple(c for _, c in work.foreign[x])
        part = tuple(at[a][x] for a in group.parts)
        noise = tuple(at[a][x] + 1 for a in group.noisy)
        key = (group.number, term, work.share[x], turn, foreign, uses, part, noise)
        known = self._known.get(key)
        if known is None:
            pairs = [self.item(group, (term, work.share[x], turn, foreign, use, part), noise) for use in uses]
            known = self._known[key] = _added(pairs)
        return known

    def single(self, group: Group) -> Pair:
        """a and s of the single device's whole step: every item, use and part, times K."""
        total: Pair = ([0] * COUNT, [0] * COUNT)
        for term in range(len(self.work.terms)):
            weight = inverse(self.work.single_counted(term))
            pairs = [self.item(group, key) for key in self.keys(group, term)]
            a, s = _added(pairs)
            total = (
                [(t + v * weight) % PRIME for t, v in zip(total[0], a)],
                [(t + v * weight) % PRIME for t, v in zip(total[1], s)],
            )
        return total

    def keys(self, group: Group, term: int) -> list[Key]:
        """Everything the single device's gradient of these weights is a sum of."""
        parts = list(product(*(range(group.grid.size[a]) for a in group.parts)))
        return [
            (term, share, turn, (), use, part)
            for share, turn in self.work.pairs()
            for use in group.members
            for part in parts
        ]


def _added(pairs: list[Pair]) -> Pair:
    if len(pairs) == 1:
        return pairs[0]
    return (
        [sum(column) % PRIME for column in zip(*(a for a, _ in pairs))],
        [sum(column) % PRIME for column in zip(*(s for _, s in pairs))],
    )


def reading(number: int, use: int, element: int) -> int:
    """How strongly a use of an element acts on every loss."""
    return mix(4, number, use, element)


def read_single(params: Mapping[int, list[int]], groups: list[Group]) -> int:
    """h of the single device."""
    return (
        sum(reading(g.number, use, e) * params[g.number][e] for g in groups for use in g.members for e in range(COUNT))
        % PRIME
    )


def read_devices(group: Group, arrays: list[list[int]]) -> list[int]:
    """The part of h that one group gives, on every device: shards from their owners along the
    cut axes, the rest from its own copy."""
    grid = group.grid
    axes = [a for a in group.params_rule if a != group.uses_axis]
    if group.uses_axis is not None:
        axes.append(group.uses_axis)
    if not axes:
        factors = [reading(group.number, use, e) for use in group.members for e in range(COUNT)]
        done: dict[int, int] = {}
        for array in arrays:
            if id(array) not in done:
                done[id(array)] = sum(map(mul, factors, array)) % PRIME
        return [done[id(array)] for array in arrays]
    plan = _plan(group)
    found = [0] * grid.count
    for members in grid.groups(tuple(axes)):
        base = members[0]
        seen = sum(factor * arrays[base + offset][rank] for offset, rank, factor in plan) % PRIME
        for x in members:
            found[x] = seen
    return found


def disturbed(group: Group) -> list[int]:
    """What other random numbers along an axis of copies add to every device's activations."""
    at = group.grid.coordinate
    return [mix(9, group.number, *(at[axis][x] + 1 for axis in group.noisy)) for x in range(group.grid.count)]


def _plan(group: Group) -> list[tuple[int, int, int]]:
    """Where each element is read, relative to the first device of the process group."""
    grid, plan = group.grid, []
    for use, stage in group.members.items():
        start = stage * grid.stride[group.uses_axis] if group.uses_axis is not None else 0
        # Sources start from coordinate 0 along every axis but the stage's.
        for e, offset in enumerate(group.sources(start, group.params_rule.values())):
            local = group.params_local[offset]
            # What nobody holds is reported where parameters are compared.
            if e in local:
                plan.append((offset, local.index(e), reading(group.number, use, e)))
    return plan


def fresh(model: Model, group: Group, turn: int, seen: list[int]) -> list[Arrays]:
    """The gradient that each device's backward pass of one micro-batch leaves, per loss term.

    `seen`: h of every device. Where experts are routed, what a device's tokens contribute
    arrives at the owner of each element and is summed there."""
    work, grid = model.work, group.grid
    uses = _uses(group)
    layers = []
    for term in range(len(work.terms)):
        counted = work.counted(term, turn)
        weights = {count: residue(1 / count) for count in set(counted)}
        arrays: list[list[int]] = [[] for _ in range(grid.count)]
        done: dict[tuple[object, ...], list[int]] = {}
        for x in group.holders:
            a, s = pair = model.contribution(group, x, term, turn, uses[x])
            h, weight, local = seen[x], weights[counted[x]], group.computed_local[x]
            key = id(pair), h, weight, local
            known = done.get(key)
            if known is None:
                known = done[key] = [(a[e] + s[e] * h) * weight % PRIME for e in local]
            arrays[x] = known
        layers.append(_route(group, arrays) if group.routed else arrays)
    return layers


def _uses(group: Group) -> list[tuple[int, ...]]:
    if group.uses_axis is None:
        return [(0,)] * group.grid.count
    at = group.grid.coordinate[group.uses_axis]
    of = {stage: tuple(u for u, s in group.members.items() if s == stage) for stage in group.members.values()}
    return [of.get(c, ()) for c in at]


def _route(group: Group, arrays: Arrays) -> Arrays:
    """Sum over the routed axes of what all devices' tokens contribute, at the owner."""
    on = Exact(group)
    total = on.sum(arrays, group.computed_local, group.routed, False, None, "")
    return on.take(total, group.computed_local, group.home_local, "")
