"""Proof and exact simulation agree on random specs; `scripts/agree_many.py` asks for many more."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.property.agree import judge
from tests.property.generate import generate, program_of
from tests.property.many import Result, results
from tests.property.shrink import shrink

COUNT = 300
MESHES = 8
"""Small meshes simulated per spec, drawn by its seed."""


@pytest.fixture(scope="module")
def judged() -> list[Result]:
    return list(results(range(COUNT), min(4, os.cpu_count() or 1), max_devices=9, max_meshes=MESHES))


def test_proof_and_simulation_agree(judged: list[Result]) -> None:
    wrong = [result for result in judged if result.disagreement is not None]
    told = "\n".join(f"seed {one.seed}: {one.disagreement}\n{generate(one.seed)}" for one in wrong[:3])
    assert not wrong, f"{len(wrong)} of {COUNT} specs\n{told}"


def test_they_agree_on_lines_about_weights() -> None:
    """`backward` lines without blocks: what is proved is right whatever comes before what."""
    seeds = range(700_000, 700_080)
    judged = list(results(seeds, min(4, os.cpu_count() or 1), max_devices=8, max_meshes=4, backward=1.0))
    wrong = [result for result in judged if result.disagreement is not None]
    told = "\n".join(f"seed {one.seed}: {one.disagreement}\n{generate(one.seed, 1.0)}" for one in wrong[:3])
    assert not wrong, told
    count = Counter(one.verdict for one in judged)
    assert count["proved"] >= 5 and count["refuted"] >= 20, count
    assert {"FW06", "PL389"} <= {code for one in judged for code in one.codes}


def test_the_mix_is_healthy(judged: list[Result]) -> None:
    """Agreement on specs that are all wrong, or all errors, would say little."""
    share = {verdict: count / COUNT for verdict, count in Counter(one.verdict for one in judged).items()}
    assert 0.3 <= share["proved"] <= 0.5, share
    assert 0.4 <= share["refuted"] <= 0.7, share
    assert share.get("error", 0) < 0.1, share
    assert share.get("vacuous", 0) + share.get("undecided", 0) < 0.03, share


def test_every_family_of_faults_is_met(judged: list[Result]) -> None:
    met = {code for one in judged for code in one.codes}
    wanted = {
        "GI01",
        "GI02",
        "GI03",
        "GI04",
        "GI05",
        "GI06",
        "GI07",
        "SC02",
        "SC03",
        "SC04",
        "SC05",
        "SC06",
        "FW01",
        "CC01",
    }
    assert wanted <= met, sorted(wanted - met)


def test_the_same_seed_draws_the_same_spec() -> None:
    assert [generate(seed) for seed in range(20)] == [generate(seed) for seed in range(20)]


def test_a_spec_that_is_no_spec_is_an_error() -> None:
    assert program_of("mesh\n") is None
    assert judge("mesh\n").verdict == "error"


def test_shrinking_keeps_what_matters() -> None:
    text = generate(1)
    assert shrink(text, lambda smaller: "weights" in smaller).count("\n") == 1
