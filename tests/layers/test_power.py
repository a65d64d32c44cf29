"""Looser rules of the layers' calculus must be noticed by the random specs: each disagrees with the simulation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from placelogic.layers import backward, flows, moving, values, walk
from tests.layers.agree import judge
from tests.layers.draw import draw

SEEDS = range(60)
SLICED = """
mesh tp
weights norm { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use sequence_parallel(tp)
dims batch, sequence, hidden, ffn
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
}
backward n over tp by slice
"""
"""Drawn specs seldom have this one fault alone."""

FOLDED = """
mesh dp
batch over dp
weights b { kind vector }
weights norm { kind vector }
dims batch, sequence, hidden
block layer {
  input x(batch, sequence, hidden)
  y = bias x with b over hidden
  n = norm y with norm over hidden
}
backward n over dp by sum
"""

FORWARD = """
mesh tp
weights b { kind vector }
dims batch, sequence, hidden
block layer {
  input x(batch, sequence, hidden)
  y = bias x with b over hidden
  g = gelu y
}
forward y over tp by sum
backward y over tp by none scale 1
"""
"""Wrong in what it computes, and in nothing else."""


def _free_sum(axis: str, count: object, mean: bool) -> Callable[[values.Term], values.Term]:
    """Summing copies counts them once."""
    return lambda term: moving.replace(term, partial=term.partial - {axis})


def _keep(axis: str) -> Callable[[values.Term], values.Term]:
    """Cutting a share keeps it."""
    return lambda term: moving.replace(term, partial=term.partial - {axis})


LOOSER = {
    "sums of copies are free": (moving, "_summed", _free_sum),
    "a share that is cut is complete": (moving, "tied", _keep),
    "nothing has to be right": (walk, "needs_right", lambda op: ()),
    "gradients of a part are whole": (
        backward,
        "share",
        lambda value, axis, shape: values.replace(value, shape=dict(shape)),
    ),
    "pieces added up place by place are gradients": (
        backward,
        "_lose_folded",
        lambda axes: lambda term: values.replace(term, folded=term.folded - axes),
    ),
    "every path is plain": (flows, "_is_plain", lambda path: True),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", LOOSER)
def test_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, looser = LOOSER[rule]
    texts = [SLICED, FOLDED, FORWARD, *map(draw, SEEDS)]
    monkeypatch.setattr(module, name, looser)
    for seed, text in enumerate(texts):
        try:
            if judge(text, seed, meshes=9).disagreement is not None:
                return
        except (AssertionError, LookupError, values.Misfit):
            return  # a rule so loose that it contradicts itself
    pytest.fail(f"{len(texts)} specs do not notice that {rule}")
