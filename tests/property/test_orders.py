"""The moves that follow an update, in every order of at most two and in every sixth order of three, wherever
parameters, master and optimizer state lie; `scripts/agree_orders.py` judges every order of three."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from tests.property.agree import judge

GATHER, BROADCAST = "gather params over a", "broadcast params over a from 0"
REFRESH, FETCH = "refresh params from master", "fetch params"
LAYOUTS = {
    "owners": "batch over a\nplace w over a { optimizer sharded on param }\n",
    "columns": "place w over a = (S(param), S(param), S(param))\n",
}
KEPT = {
    "without a master": "",
    "with a master": "precision { params bf16, master fp32 }\n",
    "materialized": "precision { params bf16, master fp32 }\nplace w { params materialized }\n",
}
EVERY = 6
"""Of the orders of three moves one in so many is judged."""


def specs(layout: str, kept: str, hosted: bool, every: int) -> Iterator[str]:
    head = f"mesh a\nlet P\nweights w {{ size P }}\n{LAYOUTS[layout]}{KEPT[kept]}"
    if hosted:
        head += "place w { optimizer offloaded }\n"
    for step in steps(layout, kept, hosted, every):
        yield f"{head}step w {{\n{step}}}\n"


def steps(layout: str, kept: str, hosted: bool, every: int) -> Iterator[str]:
    moves = [GATHER, BROADCAST]
    moves += [REFRESH] if kept != "without a master" else []
    moves += [FETCH] if hosted else []
    ahead = ["each microbatch { accumulate }"]
    ahead += ["reduce over a by mean"] if layout == "owners" else []
    ahead += ["offload gradients"] if hosted else []
    for before in ([], *([move] for move in moves if move in (BROADCAST, REFRESH))):
        for count in range(4):
            for index, after in enumerate(product(moves, repeat=count)):
                if count < 3 or index % every == 2 % every:  # of these one is right in each layout
                    yield "".join(f"  {op}\n" for op in (*ahead, *before, "update", *after))


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_proof_and_simulation_agree_on_every_order(layout: str, kept: str, hosted: bool) -> None:
    verdicts = set()
    for spec in specs(layout, kept, hosted, EVERY):
        judged = judge(spec, max_devices=3, seed=1)
        assert judged.disagreement is None, spec
        verdicts.add(judged.verdict)
    assert verdicts == {"proved", "refuted"}
