"""Runs in the background, and what ends them."""

from __future__ import annotations

import threading
import time

import pytest

from placelogic.editor.memory import Memory
from placelogic.editor.runs import Runs
from placelogic.interruption import Interrupted, Token, checkpoint, under
from placelogic.prove.solver import Solver
from placelogic.session.check import check_text
from placelogic.session.settings import Settings

RIGHT = "mesh dp\nlet P\nweights w { size P }\nuse zero1(dp)\n"
HARD = "mesh a, b, c\nlet x\nweights w { size x }\nassume a*a*a + b*b*b == c*c*c, a > 1, b > 1, c > 1\n"


def checked(text: str) -> str:
    return check_text(text, "t", Settings(fixes=None)).specs[0].verdict


def test_a_run_is_ended_inside_a_query() -> None:
    runs = Runs()
    try:
        slow = runs.start("f", lambda: checked(HARD))
        time.sleep(0.5)
        assert not slow.future.done()
        begun = time.monotonic()
        quick = runs.start("f", lambda: checked(RIGHT))
        assert slow.future.result(10) is None
        assert quick.future.result(10) == "proved"
        assert time.monotonic() - begun < 10
    finally:
        runs.close()


def test_runs_of_other_files_wait_and_are_not_ended() -> None:
    runs = Runs()
    try:
        results = [runs.start(f"f{i}", lambda: checked(RIGHT)) for i in range(3)]
        assert [run.future.result(30) for run in results] == ["proved"] * 3
        results[0].end()  # done: nothing happens, nor to what comes after
        assert runs.start("g", lambda: checked(RIGHT)).future.result(30) == "proved"
    finally:
        runs.close()


def test_ending_a_waiting_run_leaves_the_running_one_alone() -> None:
    runs = Runs()
    try:
        gate = threading.Event()
        first = runs.start("a", lambda: (gate.wait(10), checked(RIGHT))[1])
        second = runs.start("b", lambda: checked(RIGHT))
        second.end()
        gate.set()
        assert first.future.result(30) == "proved"
        assert second.future.result(30) is None
    finally:
        runs.close()


def test_closing_ends_everything() -> None:
    runs = Runs()
    slow = runs.start("f", lambda: checked(HARD))
    time.sleep(0.3)
    runs.close()
    assert slow.future.result(10) is None


def test_errors_come_out_where_one_waits() -> None:
    def fails() -> None:
        raise KeyError("lost")

    runs = Runs()
    try:
        with pytest.raises(KeyError):
            runs.start("f", fails).future.result(10)
    finally:
        runs.close()


def test_nothing_is_ended_without_a_token() -> None:
    checkpoint()
    token = Token(lambda: None)
    with under(token):
        checkpoint()
        token.cancel()
        with pytest.raises(Interrupted):
            checkpoint()
        with pytest.raises(Interrupted):
            Solver((), (), __import__("placelogic.prove.solver", fromlist=["Limits"]).Limits()).check()
    checkpoint()
    with pytest.raises(Interrupted), under(token):
        pass


def test_verdicts_of_specs_that_stay_are_given_again() -> None:
    text = "let P\nweights w { size P }\nspec a {\n  mesh d\n  use zero1(d)\n}\nspec b {\n  mesh d\n  use zero2(d)\n}\n"
    memory = Memory()
    settings = Settings(fixes=None, prover=memory.prove)
    first = check_text(text, "t", settings)
    assert memory.reused == 0
    again = check_text(text.replace("zero2", "zero3"), "t", settings)
    assert memory.reused == 1
    assert again.specs[0] == first.specs[0]
    assert again == check_text(text.replace("zero2", "zero3"), "t", Settings(fixes=None))
    moved = check_text("\n" + text, "t", settings)  # other lines: told anew
    assert memory.reused == 1
    assert moved == check_text("\n" + text, "t", Settings(fixes=None))
