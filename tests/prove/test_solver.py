"""What reaches the solver is what was meant."""

from __future__ import annotations

import pytest

import placelogic
from placelogic.prove.formula import symbol, unquoted


@pytest.mark.parametrize("name", ["and", "or", "not", "ite", "distinct", "div", "mod", "abs", "xor", "Int", "select"])
def test_a_size_may_be_called_like_an_operator_of_the_solver(name: str) -> None:
    text = f"mesh {name}, tp\nlet div_{name}\nweights w {{ size 4 }}\nbatch over {name}\nassume {name} % tp == 0\n"
    assert placelogic.check(text).specs[0].verdict == "proved"


@pytest.mark.parametrize("name", ["dp", "and", "size", "x.dp", "tokens.per.item", "microbatches.", "rem.0"])
def test_symbols_stand_for_their_variable(name: str) -> None:
    assert unquoted(symbol(name).strip("|")) == name
