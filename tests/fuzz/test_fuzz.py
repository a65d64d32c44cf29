"""A short run of `scripts/fuzz.py`: mutated specs end in a verdict or in a coded error, and soon."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

COUNT = 1_000
PARTS = 4
SEED = 20_240


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("fuzz_script", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def mutator(fuzz: ModuleType) -> object:
    return fuzz.Mutator(fuzz.corpus())


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_specs(part: int, fuzz: ModuleType, mutator: object) -> None:
    kinds: Counter[str] = Counter()
    for number in range(part, COUNT, PARTS):
        outcome = fuzz.judge(mutator.input(SEED, number))  # type: ignore[attr-defined]
        assert outcome.kind != fuzz.OFFENDER, f"--seed {SEED} --only {number}\n{outcome.trace}"
        kinds[outcome.kind] += 1
    assert kinds["error in parse"] and kinds["error in elaborate"] and kinds["proved"] and kinds["refuted"]


def test_the_same_number_is_the_same_input(fuzz: ModuleType, mutator: object) -> None:
    again = fuzz.Mutator(fuzz.corpus())
    for number in range(50):
        assert mutator.input(1, number) == again.input(1, number)  # type: ignore[attr-defined]


def test_an_offender_is_noticed(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(data: bytes) -> str:
        raise KeyError("lost")

    monkeypatch.setattr(fuzz, "run", crash)
    outcome = fuzz.judge(b"")
    assert outcome.kind == fuzz.OFFENDER
    assert "KeyError: 'lost'" in outcome.trace


def test_what_takes_too_long_is_noticed(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(data: bytes) -> str:
        while True:
            pass

    monkeypatch.setattr(fuzz, "run", hang)
    outcome = fuzz.judge(b"", limit=0.2)
    assert outcome.kind == fuzz.OFFENDER
    assert "TooSlow" in outcome.trace
