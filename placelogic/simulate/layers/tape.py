"""Numbers of all devices, and a tape by which exact differentiation goes back: the transpose of each linear map that was
recorded, in the reverse order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from placelogic.run.layers.lay import Lay
from placelogic.simulate.arithmetic import PRIME

Array = list[int]
"""What one device has, row-major: residues."""
Local = tuple[Array, Callable[[Array], Sequence["Array | None"]]]
"""What an operation makes on one device, and from the gradient of that those of what it reads."""


class Numbers:
    """`values`, `gradients`: by device; no gradient at all before something came back."""

    __slots__ = ("gradients", "values")

    def __init__(self, values: list[Array]) -> None:
        self.values = values
        self.gradients: list[Array] | None = None

    def came(self, back: Sequence[Array]) -> None:
        """One more part of the gradient."""
        known = self.gradients
        self.gradients = list(back) if known is None else [_plus(a, b) for a, b in zip(known, back)]


class Tape:
    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._numbers: list[Numbers] = []

    def each(self, ins: Sequence[Numbers], function: Callable[..., Local]) -> Numbers:
        """`function` of the device and what it has, on every device by itself."""
        local = [function(x, *arrays) for x, arrays in enumerate(zip(*(one.values for one in ins)))]

        def back(gradients: list[Array]) -> Iterable[Sequence[Array | None]]:
            return zip(*(of(gradient) for (_, of), gradient in zip(local, gradients)))

        return self.all(ins, [values for values, _ in local], back)

    def all(
        self,
        ins: Sequence[Numbers],
        values: list[Array],
        back: Callable[[list[Array]], Iterable[Sequence[Array | None]]],
    ) -> Numbers:
        """`back`: from the gradients of all devices those of each input, by device."""
        made = Numbers(values)
        self._numbers += [*ins, made]

        def step() -> None:
            if made.gradients is not None:
                for one, arrays in zip(ins, back(made.gradients)):
                    if arrays[0] is not None:
                        one.came(arrays)  # type: ignore[arg-type]

        self._steps.append(step)
        return made

    def backward(self, left: Numbers, arrived: list[Array]) -> None:
        """The gradients of all numbers on the tape, from that of one."""
        for one in self._numbers:
            one.gradients = None
        left.came(arrived)
        for step in reversed(self._steps):
            step()


def _plus(one: Array, two: Array) -> Array:
    return [(a + b) % PRIME for a, b in zip(one, two)]


# --- where numbers stand in a flat array ------------------------------------------------------


@lru_cache(4096)
def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    found, step = [], 1
    for length in reversed(shape):
        found.append(step)
        step *= length
    return tuple(reversed(found))


@lru_cache(4096)
def offsets(shape: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    """Of every place of `shape`, in order, when one more along a dimension is so many numbers further on."""
    found = [0]
    for length, step in zip(shape, steps):
        found = [at + i * step for at in found for i in range(length)]
    return tuple(found)


@lru_cache(4096)
def within(have: Lay, dims: tuple[str, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where the numbers of a tensor stand for each place of one with these dimensions, of which it may lack some."""
    known = dict(zip(have.dims, strides(have.shape)))
    return offsets(shape, tuple(known.get(dim, 0) for dim in dims))


@lru_cache(4096)
def placed(have: Lay, want: Lay) -> tuple[int, ...]:
    """Where the numbers for each place of `want` stand, -1 where there are none."""
    found = [0]
    for step, here, there in zip(strides(have.shape), have.labels, want.labels):
        rank = {label: i * step for i, label in enumerate(here)}
        rows = [rank.get(label, -1) for label in there]
        found = [-1 if at < 0 or row < 0 else at + row for at in found for row in rows]
    return tuple(found)


def taken(values: Array, index: Sequence[int]) -> Array:
    """The numbers at these positions, zeros at -1."""
    return [values[at] if at >= 0 else 0 for at in index]


def put(gradient: Array, index: Sequence[int], count: int) -> Array:
    """The transpose of `taken`, from so many numbers."""
    found = [0] * count
    for at, value in zip(index, gradient):
        if at >= 0:
            found[at] += value
    return [value % PRIME for value in found]
