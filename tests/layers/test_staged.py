"""Blocks on the stages of a pipeline: proof and exact simulation agree on random ones, and stages have what they use."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.layers.staged import draw, judge

COUNT = 144
PARTS = 3


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_proof_and_simulation_agree(part: int) -> None:
    judged = {seed: judge(draw(seed), seed) for seed in range(part, COUNT, PARTS)}
    wrong = {seed: one for seed, one in judged.items() if one.disagreement is not None}
    told = "\n".join(f"seed {seed}: {one.disagreement}\n{draw(seed)}" for seed, one in list(wrong.items())[:2])
    assert not wrong, told
    share = {verdict: count / len(judged) for verdict, count in Counter(one.verdict for one in judged.values()).items()}
    assert share["proved"] >= 0.1 and share["refuted"] >= 0.1 and share.get("error", 0) < 0.4, share
