"""What is seen of each of the eight models, in one run of its ranks for all tests."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec import Struct

from placelogic.frontends.live import Comparison, LiveSpec, from_torch, trace
from tests.frontends.live.fork import run
from tests.frontends.live.models import MODELS

WARM = 2
"""Steps before the one that is traced: DDP rebuilds its buckets after the first."""

SLOW = {"hsdp", "fsdp_tp"}
ALL = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in MODELS]


class Observed(Struct, frozen=True):
    """On one rank: the spec, its text with open sizes, and a step held against it."""

    spec: LiveSpec
    open_text: str
    comparison: Comparison


@cache
def observed(name: str) -> list[Observed]:
    ranks, _ = MODELS[name]
    return run(ranks, _observe, name)


def _observe(name: str) -> Observed:
    setup = MODELS[name][1]()
    for _ in range(WARM):
        setup.step()
    with trace(setup.mesh) as t:
        setup.step()
    spec = from_torch(setup.model, setup.optimizer, setup.mesh)
    text = from_torch(setup.model, setup.optimizer, setup.mesh, open_sizes=True).text
    return Observed(spec, text, t.compare(spec))
