"""What mixes places, on exact numbers: norms, attention, the choice of experts and the loss.

A nonlinear function is arbitrary: its value and its derivatives at a point are unrelated numbers. So what is right for
these is right for every function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as every

from placelogic.program import block as bl
from placelogic.program.expr import Expr
from placelogic.program.program import Axes
from placelogic.run.grid import Grid
from placelogic.run.layers.algebra import Algebra, Attending, Site
from placelogic.run.layers.lay import Lay, Tensor
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.layers.tape import Array, Local, Numbers, Tape, offsets, strides
from placelogic.simulate.layers.transposes import Transposes

Value = Tensor[Numbers]
WeightOf = Callable[[Site[Numbers], Lay], Array]
"""The weights of an operation at these places."""


class Mixing(Algebra[Numbers]):
    """`number`: the residue of an expression over sizes. `transposes`: what crosses on the way back; none: one device.
    `used`: what operations multiplied by, for the gradients that came back to it."""

    by_position = False

    def __init__(
        self, grid: Grid, number: Callable[[Expr], int], weight: WeightOf, transposes: Transposes | None
    ) -> None:
        self.grid, self.number, self.weight, self.alone = grid, number, weight, transposes is None
        self.transposes = transposes or Transposes(())
        self.tape = Tape()
        self.used: list[tuple[Site[Numbers], Value]] = []

    def _seed(self, s: Site[Numbers], x: int) -> int:
        seed = mix(s.layer, s.index, 77)
        return mix(seed, *s.apart[x]) if s.apart[x] else seed

    def normalised(self, s: Site[Numbers], x: Value, dims: Sequence[str]) -> Numbers:
        """An arbitrary function of all numbers along some dimensions."""

        def norm(device: int, a: Array) -> Local:
            seed, lay = self._seed(s, device), x.lays[device]
            elements = list(every(*(lay.along(dim) for dim in dims)))
            rows = _rows(lay, dims)
            digests = [
                mix(seed, *(n for element, i in sorted(zip(elements, row)) for n in (*element, a[i]))) for row in rows
            ]
            values = [0] * len(a)
            for row, digest in zip(rows, digests):
                for element, i in zip(elements, row):
                    values[i] = mix(seed, 1, digest, *element)

            def back(g: Array) -> list[Array]:
                found = [0] * len(a)
                for row, digest in zip(rows, digests):
                    for other, j in zip(elements, row):
                        felt = (g[i] * mix(seed, 2, digest, *at, 0, *other) for at, i in zip(elements, row))
                        found[j] = sum(felt) % PRIME
                return [found]

            return values, back

        return self.tape.each([x.data], norm)

    def attention(self, s: Site[Numbers], query: Value, key: Value, value: Value, how: Attending) -> Numbers:
        """Arbitrary weights of every key for every query, from all keys the query sees; then a sum of values."""
        op = s.op
        assert isinstance(op, bl.Attention)

        def attend(x: int, q: Array, k: Array, v: Array) -> Local:
            seed, width, made = self._seed(s, x), query.lays[x].labels[-1], value.lays[x].shape[-1]
            met = key.lays[x].labels[-1]
            shape, among = query.lays[x].shape, key.lays[x].shape[:-1]
            *steps, to_next, to_head = strides(among)
            rows = []
            for number, at in enumerate(every(*map(range, shape[:-1]))):
                *batch, p, head = at
                first = sum(of[b] * step for of, b, step in zip(how.samples[x], batch, steps))
                first += how.heads[x][head] * to_head
                place, known = how.queries[x][p], q[number * len(width) : (number + 1) * len(width)]
                seen = {t: first + i * to_next for i, t in enumerate(how.keys[x]) if t <= place or not op.causal}
                keys = (k[row * len(met) + d] for row in seen.values() for d in range(len(met)))
                label = query.lays[x].labels[-2][head]
                rows.append((mix(seed, s.counted[x](place), label, *known, 0, *keys), seen))
            values = [
                sum(mix(digest, t) * v[row * made + d] for t, row in seen.items()) % PRIME
                for digest, seen in rows
                for d in range(made)
            ]

            def back(g: Array) -> tuple[Array, Array, Array]:
                to_q, to_k, to_v = [0] * len(q), [0] * len(k), [0] * len(v)
                for number, (digest, seen) in enumerate(rows):
                    came = g[number * made : (number + 1) * made]
                    for t, row in seen.items():
                        weight, felt = mix(digest, t), 0
                        for d in range(made):
                            to_v[row * made + d] += weight * came[d]
                            felt += came[d] * v[row * made + d]
                        for i, d in enumerate(width):
                            to_q[number * len(width) + i] += felt * mix(digest, t, d, 1)
                        for u, other in seen.items():
                            for i, d in enumerate(met):
                                to_k[other * len(met) + i] += felt * mix(digest, t, u, d, 2)
                return tuple([n % PRIME for n in one] for one in (to_q, to_k, to_v))  # type: ignore[return-value]

            return values, back

        return self.tape.each([query.data, key.data, value.data], attend)

    def best(self, s: Site[Numbers], scores: Value, dim: str, top: int) -> Numbers:
        """Arbitrary scores of the best experts of each token, from all its logits."""

        def route(device: int, a: Array) -> Local:
            seed, lay = self._seed(s, device), scores.lays[device]
            labels, rows = lay.along(dim), _rows(lay, (dim,))
            digests = [mix(seed, *(a[i] for i in row)) for row in rows]
            chosen = [sorted(labels, key=lambda e, of=of: mix(of, e, 5))[:top] for of in digests]  # type: ignore[misc]
            values = [0] * len(a)
            for row, digest, mine in zip(rows, digests, chosen):
                for i, e in zip(row, labels):
                    values[i] = mix(digest, e) if e in mine else 0

            def back(g: Array) -> list[Array]:
                found = [0] * len(a)
                for row, digest, mine in zip(rows, digests, chosen):
                    for j, other in zip(row, labels):
                        felt = (g[i] * mix(digest, e, other, 3) for i, e in zip(row, labels) if e in mine)
                        found[j] = sum(felt) % PRIME
                return [found]

            return values, back

        return self.tape.each([scores.data], route)

    def loss(self, s: Site[Numbers], logits: Value, vocabulary: str, over: Axes) -> Numbers:
        """An arbitrary function of all logits of a token, added up over the devices that share them out."""
        lays, values = logits.lays, logits.data.values
        seeds = [self._seed(s, x) for x in range(self.grid.count)]
        rows = [_rows(lay, (vocabulary,)) for lay in lays]
        seen = [
            [sum(mix(seed, 7, e, a[i]) for e, i in zip(lay.along(vocabulary), row)) % PRIME for row in mine]
            for seed, lay, a, mine in zip(seeds, lays, values, rows)
        ]
        for members in self.grid.groups(over) if over else ():
            total = [sum(column) % PRIME for column in zip(*(seen[x] for x in members))]
            for x in members:
                seen[x] = total

        def back(device: int, a: Array) -> Local:
            def felt(g: Array) -> list[Array]:
                found = [0] * len(a)
                for row, level, came in zip(rows[device], seen[device], g):
                    for e, i in zip(lays[device].along(vocabulary), row):
                        found[i] = came * mix(seeds[device], 8, level, e) % PRIME
                return [found]

            return [mix(seeds[device], 6, level) for level in seen[device]], felt

        return self.tape.each([logits.data], back)


def _rows(lay: Lay, dims: Sequence[str]) -> list[list[int]]:
    """Where the numbers along some dimensions stand, for every place along the others."""
    steps = dict(zip(lay.dims, zip(lay.shape, strides(lay.shape))))
    outside = [steps[dim] for dim in lay.dims if dim not in dims]
    inner = offsets(*(tuple(side) for side in zip(*(steps[dim] for dim in dims))))
    outer = offsets(*(tuple(side) for side in zip(*outside))) if outside else (0,)
    return [[first + at for at in inner] for first in outer]
