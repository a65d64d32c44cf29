"""Operations of layers on exact numbers. A nonlinear function is arbitrary: its value and its derivatives at a point are
unrelated numbers. So what is right for these is right for every function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as every

from placelogic.program import block as bl
from placelogic.program.expr import Expr
from placelogic.program.program import Axes
from placelogic.run.layers.algebra import Algebra, Attending, Rows, Site
from placelogic.run.layers.crossing import Crossing
from placelogic.run.layers.lay import Lay, Tensor
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.layers.carried import carried
from placelogic.simulate.layers.tape import Array, Local, Numbers, Tape, offsets, put, strides, taken, within
from placelogic.simulate.mesh import Grid

Value = Tensor[Numbers]
WeightOf = Callable[[Site[Numbers], Lay], Array]
"""The weights of an operation at these places."""


class Exact(Algebra[Numbers]):
    """`number`: the residue of an expression over sizes. `alone`: one device. `used`: what operations multiplied by, for
    the gradients after `backward`."""

    by_position = False

    def __init__(self, grid: Grid, number: Callable[[Expr], int], weight: WeightOf, alone: bool) -> None:
        self.grid, self.number, self.weight, self.alone = grid, number, weight, alone
        self.tape = Tape()
        self.used: list[tuple[Site[Numbers], Value]] = []

    def _seed(self, s: Site[Numbers], x: int) -> int:
        seed = mix(s.layer, s.index, 77)
        return mix(seed, *s.apart[x]) if s.apart[x] else seed

    def made(self, s: Site[Numbers], value: Value) -> Value:
        return value

    def crossed(self, name: str, value: Value, crossing: Crossing) -> Numbers:
        def back(gradients: list[Array]) -> list[list[Array]]:
            return [carried(gradients, crossing.after, crossing.back, crossing.axis, self.grid, self.number)]

        there = carried(value.data.values, crossing.before, crossing.there, crossing.axis, self.grid, self.number)
        return self.tape.all([value.data], there, back)

    def weights(self, s: Site[Numbers], lays: Sequence[Lay]) -> Value:
        found = Tensor(tuple(lays), Numbers([self.weight(s, lay) for lay in lays]))
        self.used.append((s, found))
        return found

    def whole_number(self, expr: Expr) -> int:
        return self.number(expr)

    # --- arithmetic ---------------------------------------------------------------------------

    def added(self, several: Sequence[Value]) -> Numbers:
        first, *others = several

        def add(x: int, *arrays: Array) -> Local:
            lay = first.lays[x]
            index = [within(one.lays[x], lay.dims, lay.shape) for one in several]
            values = [sum(column) % PRIME for column in zip(*map(taken, arrays, index))]
            return values, lambda g: [put(g, at, len(one)) for at, one in zip(index, arrays)]

        return self.tape.each([one.data for one in several], add)

    def multiplied(self, one: Value, two: Value) -> Numbers:
        def times(x: int, a: Array, b: Array) -> Local:
            index = within(two.lays[x], one.lays[x].dims, one.lays[x].shape)
            wide = taken(b, index)
            values = [p * q % PRIME for p, q in zip(a, wide)]
            return values, lambda g: (
                [p * q % PRIME for p, q in zip(g, wide)],
                put([p * q for p, q in zip(g, a)], index, len(b)),
            )

        return self.tape.each([one.data, two.data], times)

    def scaled(self, value: Value, factor: Expr, everywhere: bool) -> Numbers:
        number = 1 if self.alone and not everywhere else self.number(factor)
        return self._mapped(value, lambda x: [number] * len(value.data.values[x]))

    def _mapped(self, value: Value, factors: Callable[[int], Array]) -> Numbers:
        def times(x: int, a: Array) -> Local:
            by = factors(x)
            return [p * q % PRIME for p, q in zip(a, by)], lambda g: [[p * q % PRIME for p, q in zip(g, by)]]

        return self.tape.each([value.data], times)

    def product(self, x: Value, w: Value, start: int, experts: int, contracted: int) -> Numbers:
        def times(device: int, a: Array, b: Array) -> Local:
            read, matrix = x.lays[device].shape, w.lays[device].shape
            from_a, from_b = strides(read), strides(matrix)
            end, made = start + contracted, experts + contracted
            shape = (*read[:start], *matrix[made:], *read[end:])
            zeros = (0,) * len(shape)
            in_a = offsets(shape, (*from_a[:start], *zeros[: len(matrix) - made], *from_a[end:]))
            in_b = offsets(shape, (*from_b[:experts], *zeros[: start - experts], *from_b[made:], *zeros[: len(read) - end]))
            inner = tuple(zip(offsets(read[start:end], from_a[start:end]), offsets(matrix[experts:made], from_b[experts:made])))
            values = [sum(a[p + i] * b[q + j] for i, j in inner) % PRIME for p, q in zip(in_a, in_b)]

            def back(g: Array) -> tuple[Array, Array]:
                to_a, to_b = [0] * len(a), [0] * len(b)
                for value, p, q in zip(g, in_a, in_b):
                    for i, j in inner:
                        to_a[p + i] += value * b[q + j]
                        to_b[q + j] += value * a[p + i]
                return [v % PRIME for v in to_a], [v % PRIME for v in to_b]

            return values, back

        return self.tape.each([x.data, w.data], times)

    def summed(self, x: Value) -> Numbers:
        def add(device: int, a: Array) -> Local:
            count = x.lays[device].shape[0]
            size = len(a) // count
            return [sum(a[i::size]) % PRIME for i in range(size)], lambda g: [g * count]

        return self.tape.each([x.data], add)

    def function(self, s: Site[Numbers], x: Value, name: str) -> Numbers:
        def arbitrary(device: int, a: Array) -> Local:
            seed = self._seed(s, device)
            return [mix(seed, 3, v) for v in a], lambda g: [[p * mix(seed, 4, v) % PRIME for p, v in zip(g, a)]]

        return self.tape.each([x.data], arbitrary)

    def noise(self, s: Site[Numbers], lays: Sequence[Lay]) -> Numbers:
        return Numbers([[mix(self._seed(s, x), 5, *at) for at in every(*lay.labels)] for x, lay in enumerate(lays)])

    # --- places -------------------------------------------------------------------------------

    def _taken(self, x: Value, index: Callable[[int], Sequence[int]]) -> Numbers:
        def take(device: int, a: Array) -> Local:
            at = index(device)
            return taken(a, at), lambda g: [put(g, at, len(a))]

        return self.tape.each([x.data], take)

    def aligned(self, x: Value, dims: Sequence[str]) -> Numbers:
        return self.ordered(x, sorted(x.dims, key=list(dims).index))

    def ordered(self, x: Value, dims: Sequence[str]) -> Numbers:
        if x.dims == tuple(dims):
            return x.data
        return self._taken(x, lambda at: within(x.lays[at], tuple(dims), x.lays[at].of(dims).shape))

    def picked(self, x: Value, dim: str, rows: Rows) -> Numbers:
        axis = x.dims.index(dim)

        def index(at: int) -> list[int]:
            shape = x.lays[at].shape
            inner = strides(shape)[axis]
            return [
                first + row * inner + i if row >= 0 else -1
                for first in range(0, len(x.data.values[at]), shape[axis] * inner)
                for row in rows[at]
                for i in range(inner)
            ]

        return self._taken(x, index)

    def looked_up(self, table: Value, vocabulary: str, words: Value, size: int) -> Numbers:
        def index(at: int) -> list[int]:
            rank = {label: i for i, label in enumerate(table.lays[at].along(vocabulary))}
            width = strides(table.lays[at].shape)[0]
            rows = [rank.get(word % size, -1) for word in words.data.values[at]]
            return [row * width + i if row >= 0 else -1 for row in rows for i in range(width)]

        return self._taken(table, index)

    def concatenated(self, several: Sequence[Value]) -> Numbers:
        outer = several[0].dims[:-1]

        def together(x: int, *arrays: Array) -> Local:
            shape = several[0].lays[x].shape[:-1]
            rows = [
                [range(first, first + one.lays[x].shape[-1]) for first in within(one.lays[x], outer, shape)] for one in several
            ]
            values = [array[at] for row in zip(*rows) for array, places in zip(arrays, row) for at in places]

            def back(g: Array) -> list[Array]:
                found, came = [[0] * len(array) for array in arrays], iter(g)
                for row in zip(*rows):
                    for array, places in zip(found, row):
                        for at in places:
                            array[at] = (array[at] + next(came)) % PRIME
                return found

            return values, back

        return self.tape.each([one.data for one in several], together)

    def spread(self, x: Value, scores: Value) -> Numbers:
        count = [lay.shape[0] for lay in scores.lays]
        lays = tuple(
            Lay((scores.dims[0], *lay.dims), (met.labels[0], *lay.labels)) for lay, met in zip(x.lays, scores.lays)
        )
        wide = Tensor(lays, self._taken(x, lambda at: [*range(len(x.data.values[at]))] * count[at]))

        def chosen(at: int) -> Array:
            met = scores.data.values[at]
            return [1 if met[i] else 0 for i in within(scores.lays[at], lays[at].dims, lays[at].shape)]

        return self._mapped(wide, chosen)

    # --- what mixes places --------------------------------------------------------------------

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
            seed, width, made = self._seed(s, x), query.lays[x].labels[-1], len(value.lays[x].labels[-1])
            shape, among = query.lays[x].shape, key.lays[x].shape[:-1]
            *steps, to_next, to_head = strides(among)
            rows = []
            for number, at in enumerate(every(*map(range, shape[:-1]))):
                *batch, p, head = at
                first = sum(of[b] * step for of, b, step in zip(how.samples[x], batch, steps))
                first += how.heads[x][head] * to_head
                place, known = how.queries[x][p], q[number * len(width) : (number + 1) * len(width)]
                seen = {t: first + i * to_next for i, t in enumerate(how.keys[x]) if t <= place or not op.causal}
                keys = (k[row * len(width) + d] for row in seen.values() for d in range(len(width)))
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
                            for i, d in enumerate(width):
                                to_k[other * len(width) + i] += felt * mix(digest, t, u, d, 2)
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
