"""What comes back through a written collective is its transpose: both have the same inner products, on exact numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placelogic.layers.crossing import written
from placelogic.program.block import Collective
from placelogic.program.expr import Expr
from placelogic.program.ops import Origin
from placelogic.run.grid import Grid
from placelogic.run.layers.crossing import Ragged, backward, forward
from placelogic.run.layers.lay import Lay, piece
from placelogic.simulate.arithmetic import PRIME, inverse
from placelogic.simulate.layers.carried import carried
from placelogic.simulate.layers.transposes import _linear
from placelogic.source import Span

ORIGIN = Origin(Span("x.place", 1, 1, 1, 1), stated=True)
KINDS = [
    ("reduce", "sum"), ("reduce", "mean"), ("gather", None), ("slice", None), ("reduce_scatter", "sum"),
    ("all_to_all", None), ("broadcast", None),
]  # fmt: skip


def collective(kind: str, op: str | None) -> Collective:
    return Collective(
        input="x", output="y", kind=kind, axes=("tp",), op=op, dim="a", into="b", origin=ORIGIN
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "op"), KINDS)
@settings(max_examples=20, deadline=None)
@given(tp=st.integers(1, 3), dp=st.integers(1, 2), numbers=st.randoms(use_true_random=False))
def test_inner_products_are_the_same(kind: str, op: str | None, tp: int, dp: int, numbers) -> None:  # type: ignore[no-untyped-def]
    grid = Grid(("dp", "tp"), {"dp": dp, "tp": tp})
    (there, planned), _ = written(collective(kind, op))
    whole = Lay(("a", "b"), (tuple(range(6)), tuple(range(6))))
    cut = kind in ("gather", "all_to_all")
    lays = [piece(whole, "a", tp, grid.coordinate["tp"][x]) if cut else whole for x in range(grid.count)]
    after, steps = forward(lays, there, "tp", grid, Ragged())
    returned = backward(after, _linear(there, True), lays, "tp", grid, Ragged(), False)

    def drawn(some: list[Lay] | tuple[Lay, ...]) -> list[list[int]]:
        return [[numbers.randrange(PRIME) for _ in range(lay.shape[0] * lay.shape[1])] for lay in some]

    def number(expr: Expr) -> int:
        return inverse(tp)

    x, g = drawn(lays), drawn(after)
    y = carried(x, lays, steps, "tp", grid, number)
    back = carried(g, after, returned, "tp", grid, number)
    assert product(y, g) == product(x, back)
    if kind != "reduce":  # a sum hands a whole gradient on, and readers add up shares
        assert backward(after, planned, lays, "tp", grid, Ragged(), False) == returned


def product(one: list[list[int]], other: list[list[int]]) -> int:
    return sum(a * b for p, q in zip(one, other, strict=True) for a, b in zip(p, q, strict=True)) % PRIME
