"""Operations of layers on exact numbers, with the transpose of each on the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as every

from placelogic.program.expr import Expr
from placelogic.run.layers.algebra import Rows, Site
from placelogic.run.layers.crossing import Crossing
from placelogic.run.layers.lay import Lay, Tensor
from placelogic.simulate.arithmetic import PRIME, mix
from placelogic.simulate.layers.carried import carried
from placelogic.simulate.layers.mixing import Mixing, Value
from placelogic.simulate.layers.tape import Array, Local, Numbers, offsets, put, strides, taken, within


class Exact(Mixing):
    """All operations of one pass."""

    def made(self, s: Site[Numbers], value: Value) -> Value:
        return value

    def crossed(self, name: str, value: Value, crossing: Crossing) -> Numbers:
        def back(gradients: list[Array]) -> list[list[Array]]:
            steps = self.transposes.steps(crossing, gradients, self.grid)
            return [carried(gradients, crossing.after, steps, crossing.axis, self.grid, self.number)]

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
            in_b = offsets(
                shape, (*from_b[:experts], *zeros[: start - experts], *from_b[made:], *zeros[: len(read) - end])
            )
            inner = tuple(
                zip(offsets(read[start:end], from_a[start:end]), offsets(matrix[experts:made], from_b[experts:made]))
            )
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

    def picked(self, x: Value, dim: str, rows: Rows, alone: Sequence[int] | None = None) -> Numbers:
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

        def look(at: int, rows: Array, known: Array) -> Local:
            where = index(at)
            return taken(rows, where), lambda g: (put(g, where, len(rows)), [0] * len(known))

        return self.tape.each([table.data, words.data], look)

    def concatenated(self, several: Sequence[Value]) -> Numbers:
        outer = several[0].dims[:-1]

        def together(x: int, *arrays: Array) -> Local:
            shape = several[0].lays[x].shape[:-1]
            rows = [
                [range(first, first + one.lays[x].shape[-1]) for first in within(one.lays[x], outer, shape)]
                for one in several
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
