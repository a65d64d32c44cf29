"""Proof and exact simulation agree on random specs with blocks; `scripts/agree_layers.py` asks for many more."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.layers.agree import Judged, judge
from tests.layers.draw import draw

COUNT = 120
PARTS = 4
"""The specs are judged in parts, so that what fails is found early."""


@pytest.fixture(scope="module")
def judged() -> dict[int, Judged]:
    return {}


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_proof_and_simulation_agree(part: int, judged: dict[int, Judged]) -> None:
    for seed in range(part, COUNT, PARTS):
        judged[seed] = judge(draw(seed), seed, meshes=2)
    wrong = {seed: one for seed, one in judged.items() if one.disagreement is not None}
    told = "\n".join(f"seed {seed}: {one.disagreement}\n{draw(seed)}" for seed, one in list(wrong.items())[:2])
    assert not wrong, told


def test_the_mix_is_healthy(judged: dict[int, Judged]) -> None:
    """Agreement on specs that are all wrong, or all errors, would say little."""
    if len(judged) < COUNT // PARTS:
        pytest.skip("judged elsewhere")
    share = {verdict: count / len(judged) for verdict, count in Counter(one.verdict for one in judged.values()).items()}
    assert share["proved"] >= 0.2, share
    assert share["refuted"] >= 0.3, share
    assert share.get("error", 0) < 0.15, share
    met = {code for one in judged.values() for code in one.codes}
    assert len(judged) < COUNT or {"FW04", "FW05", "FW06"} <= met, met
