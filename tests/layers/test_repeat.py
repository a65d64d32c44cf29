"""Repeated layers: what one layer stands for, and what depends on how many there are."""

from __future__ import annotations

import pytest

import placelogic
from placelogic.report.diagnostic import SpecReport
from tests.layers.texts import gpt


def checked(lines: str, overrides: str = "", at: dict[str, int] | None = None) -> SpecReport:
    (spec,) = placelogic.check(gpt(lines) + overrides, at=at).specs
    return spec


def test_a_factor_in_every_layer_is_wrong_before_them() -> None:
    spec = checked("mesh tp\nuse tensor_parallel(tp)\n", "backward x of decoder over tp by none scale 2\n")
    assert spec.verdict == "refuted"
    first = spec.findings[0]
    assert (first.code, first.weights) == ("FW06", "embed, attn, mlp, norm")
    assert "is multiplied by 2" in first.message


@pytest.mark.parametrize("layers", [1, 2, 3, 4, 32])
def test_for_every_number_of_layers(layers: int) -> None:
    spec = checked("mesh tp\nuse tensor_parallel(tp)\n", "backward x of decoder over tp by none scale 2\n", {"L": layers})
    assert spec.verdict == "refuted"
    weights = spec.findings[0].weights or ""
    assert ("attn" in weights) == (layers > 1)


def test_a_factor_that_is_one_where_it_matters() -> None:
    """Not 1 as it is written, and 1 on every mesh that is allowed: right for any number of layers."""
    lines = "mesh tp\nassume tp == 2\nuse tensor_parallel(tp)\n"
    spec = checked(lines, "backward x of decoder over tp by none scale 2/tp\n")
    assert spec.verdict == "proved", spec
    assert checked(lines.replace("== 2", "== 4"), "backward x of decoder over tp by none scale 2/tp\n").verdict == "refuted"


def test_values_that_grow_with_every_layer() -> None:
    """Found at the first norm that reads them."""
    spec = checked("mesh tp\nuse tensor_parallel(tp)\n", "forward p over tp by mean\n")
    assert spec.verdict == "refuted"
    first = spec.findings[0]
    assert first.code == "FW04"
    assert first.counterexample is not None
    assert first.counterexample.mesh == {"tp": 2}
    assert first.counterexample.quantities["L"] == 1


def test_only_what_comes_after_is_wrong() -> None:
    """A boundary in the last block: its own norm gets shares, and so does everything before."""
    spec = checked("mesh tp\nuse tensor_parallel(tp)\n", "backward n of last over tp by none\n")
    first = spec.findings[0]
    assert first.code == "FW06" and first.weights is not None
    assert set(first.weights.split(", ")) == {"embed", "attn", "mlp", "norm", "final_norm"}
    assert "head" not in first.weights.split(", ")
