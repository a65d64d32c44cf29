"""What happens in PyTorch is what the verdicts say: proved specs train like one device, refuted ones differ."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from placelogic.replay.judge import Choice, Outcome, replay
from tests.property.generate import generate
from tests.replay.helpers import ROOT, cases_in, cases_of

QUICK = Choice(optimizers=("sgd",))
CASES = sorted((ROOT / "tests" / "verdicts" / "cases").glob("*.place"))
MORE = sorted(
    [
        *(ROOT / "tests" / "verdicts" / "more").glob("*.place"),
        *(ROOT / "tests" / "corpus").glob("*.place"),
        *(ROOT / "examples").glob("*.place"),
    ]
)
PARTS = 4


def told(outcome: Outcome) -> str:
    case = outcome.case
    return f"{case.name} {case.code} {case.weights} {dict(case.meeting.sizes)}: {outcome.result} {outcome.worst}"


def test_refuted_specs_differ_visibly_and_by_the_factor_that_is_named() -> None:
    every = [case for path in CASES for case in cases_in(path) if case.verdict == "refuted"]
    outcomes = list(replay(every, QUICK))
    assert [told(one) for one in outcomes if not one.agrees] == []
    assert sum(one.result == "different" for one in outcomes) >= 40
    assert sum(one.factor is not None for one in outcomes) >= 7


@pytest.mark.slow
def test_proved_specs_train_like_one_device() -> None:
    every = [case for path in CASES for case in cases_in(path) if case.verdict == "proved"]
    outcomes = list(replay(every))
    assert [told(one) for one in outcomes if not one.agrees] == []
    assert len(outcomes) >= 70


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_other_spec(part: int) -> None:
    """Many files together: cases on as many devices share processes."""
    every = [case for path in MORE[part::PARTS] for case in cases_in(path)]
    outcomes = list(replay(every, QUICK))
    assert [told(one) for one in outcomes if not one.agrees] == []


def test_random_specs() -> None:
    """scripts/replay_many.py does many more."""
    every = []
    seed = 0
    while len(every) < 20:
        found = [case for case in cases_of(generate(seed)) if 2 <= case.meeting.ranks <= 4]
        every += found[:1]
        seed += 1
    outcomes = list(replay(every, QUICK))
    assert [told(one) for one in outcomes if not one.agrees] == []
    assert {one.case.verdict for one in outcomes} == {"proved", "refuted"}
