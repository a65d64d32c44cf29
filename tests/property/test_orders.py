"""Every order of the moves that follow an update, wherever parameters, master and optimizer state lie."""

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


def steps(layout: str, kept: str, hosted: bool, most: int) -> Iterator[str]:
    moves = [GATHER, BROADCAST]
    moves += [REFRESH] if kept != "without a master" else []
    moves += [FETCH] if hosted else []
    ahead = ["each microbatch { accumulate }"]
    ahead += ["reduce over a by mean"] if layout == "owners" else []
    ahead += ["offload gradients"] if hosted else []
    for before in ([], *([move] for move in moves if move in (BROADCAST, REFRESH))):
        for count in range(most + 1):
            for after in product(moves, repeat=count):
                yield "".join(f"  {op}\n" for op in (*ahead, *before, "update", *after))


@pytest.mark.slow
@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_proof_and_simulation_agree_on_every_order(layout: str, kept: str, hosted: bool) -> None:
    head = f"mesh a\nlet P\nweights w {{ size P }}\n{LAYOUTS[layout]}{KEPT[kept]}"
    if hosted:
        head += "place w { optimizer offloaded }\n"
    verdicts = set()
    for step in steps(layout, kept, hosted, 3):
        judged = judge(f"{head}step w {{\n{step}}}\n", 3, None, 1)
        assert judged.disagreement is None, step
        verdicts.add(judged.verdict)
    assert verdicts == {"proved", "refuted"}
