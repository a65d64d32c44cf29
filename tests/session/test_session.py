"""One file of specs: everything is worked out when it is asked for, and once."""

from __future__ import annotations

from collections import Counter
from importlib import import_module

import pytest

from placelogic.problem import SpecError
from placelogic.session.check import check_session
from placelogic.session.session import Session
from placelogic.session.settings import Settings

TEXT = """let P = 1000
weights w { size P }
spec cut { mesh d = 2
  use zero3(d)
  claim memory(cut) < memory(whole)
}
spec whole { mesh d = 2
  use data_parallel(d)
  budget 1 GiB
}
spec wrong { mesh d
  use zero9(d)
}
"""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a file or a spec was gone through, by what was done."""
    found: Counter[str] = Counter()
    for place in (
        "elaborate.elaborate_file", "elaborate.complete.complete", "prove.prove", "cost.derive.derive",
    ):  # fmt: skip
        path, _, name = f"placelogic.{place}".rpartition(".")
        module = import_module(path)
        function = getattr(module, name)

        def counted(*arguments: object, function=function, name=name):  # type: ignore[no-untyped-def]
            found[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, counted)
    return found


def test_a_check_does_everything_once(calls: Counter[str]) -> None:
    session = Session(TEXT, "a.place", Settings(fixes=None))
    assert not calls
    report = check_session(session)
    assert [spec.verdict for spec in report.specs] == ["proved", "proved", "error"]
    assert calls == {"elaborate_file": 1, "complete": 3, "prove": 2, "derive": 2}
    assert session.specs[0].cost.name == "cut" and session.specs[1].verdict.verdict == "proved"
    assert check_session(session) == report
    assert calls == {"elaborate_file": 1, "complete": 3, "prove": 2, "derive": 2}


def test_only_what_is_asked_for(calls: Counter[str]) -> None:
    (whole,) = Session(TEXT, "a.place").named("whole")
    assert whole.program.name == "whole"
    assert calls == {"elaborate_file": 1, "complete": 1}


def test_what_is_wrong_is_raised_whenever_it_is_asked_for(calls: Counter[str]) -> None:
    wrong = Session(TEXT, "a.place").specs[2]
    assert not wrong.has_program
    for _ in range(2):
        with pytest.raises(SpecError, match="PL203"):
            wrong.program  # noqa: B018
    assert calls["complete"] == 1


def test_each_tells_what_cannot_be_made() -> None:
    made, problems = Session(TEXT, "a.place").each(None, lambda spec: spec.program.name)
    assert made == ("cut", "whole")
    assert [(spec.name, spec.findings[0].code) for spec in problems.specs] == [("wrong", "PL203")]
    with pytest.raises(SpecError, match=r"PL014: .*did you mean `whole`"):
        Session(TEXT, "a.place").named("whale")
