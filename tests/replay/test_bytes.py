"""What is held and sent, in bytes: as derived, or with the difference explained to the byte."""

from __future__ import annotations

from collections.abc import Container, Iterable

import pytest
from _pytest.mark import ParameterSet

pytest.importorskip("torch")

from placelogic.replay.accounts import ONCE, accounts
from placelogic.replay.cases import Case
from placelogic.replay.judge import Choice
from placelogic.replay.judge import replay as directly
from placelogic.replay.native import formulas, large, replay
from placelogic.replay.native.recognise import recognise
from placelogic.replay.native.train import NativeRun, Setting, run
from placelogic.report.replayed import Bytes
from tests.replay.helpers import cases_of
from tests.replay.library import STRATEGIES, WEIGHTS

WIDTH = 8
COMPONENTS = ("data_parallel", "zero1", "zero3", "fsdp", "hsdp", "tensor_parallel", "sequence_parallel", "pipeline")
DIRECT = {
    "zero1": "mesh dp\nuse zero1(dp)",
    "zero2": "mesh dp\nuse zero2(dp)",
    "zero3": "mesh dp\nuse zero3(dp)",
    "fsdp": "mesh dp\nuse fsdp(dp, reshard_after_forward = false)",
    "data_parallel": "mesh dp\nuse data_parallel(dp)",
    "hsdp": STRATEGIES["hsdp"],
    "tensor_parallel": STRATEGIES["tensor_parallel"],
    "sequence_parallel": STRATEGIES["sequence_parallel"],
    "pipeline": "mesh pp\nuse pipeline(pp)",
}


def meetings(names: Iterable[str], large: Container[str]) -> list[ParameterSet]:
    """Each on 2 devices and on 4; on 8 those of which bytes depend otherwise on how many there are."""
    every = [(name, size) for name in names for size in (2, 4, 8) if size < 8 or name in large]
    return [pytest.param(name, size, marks=pytest.mark.slow if size > 2 else ()) for name, size in every]


def case_at(name: str, body: str, size: int) -> Case:
    mesh, *rest = body.split("\n")
    wanted = {"r": 2, "s": max(1, size // 2)} if name == "hsdp" else {mesh.split()[1]: size}
    if name == "hsdp" and size == 2:
        wanted = {"r": 1, "s": 2}
    weights = WEIGHTS if "pp" in mesh else WEIGHTS.replace(", used on first", "").replace(", used on last", "")
    (case,) = cases_of(mesh + weights + "\n".join(rest) + "\n", wanted=wanted)
    return case


def held(amounts: list[Bytes]) -> dict[str, tuple[int, int]]:
    return {b.what.split()[0]: (b.measured, b.derived or 0) for b in amounts if b.what.endswith("held")}


@pytest.mark.parametrize(("name", "size"), meetings(COMPONENTS, ("zero1", "hsdp", "sequence_parallel", "pipeline")))
def test_components(name: str, size: int) -> None:
    case = case_at(name, STRATEGIES[name], size)
    native = recognise(case.meeting.program, case.meeting.sizes, case.meeting.quantities)
    for one in run(native, Setting(optimizers=("sgd",))):
        ranks = [list(replay.amounts(native, one, rank)) for rank in range(size)]
        for amounts in ranks:
            sent = [amount for amount in amounts if not amount.what.endswith("held")]
            if name == "zero1":  # all-reduce and broadcast, as ZeroRedundancyOptimizer works
                assert {amount.what for amount in sent} == {"all-reduce", "broadcast"}
            assert sent
            assert [amount for amount in sent if amount.measured != amount.derived] == []
        _held(name, size, one, [held(amounts) for amounts in ranks])


def _held(name: str, size: int, one: NativeRun, ranks: list[dict[str, tuple[int, int]]]) -> None:
    """Exact, but for two habits of torch that are exact themselves."""
    embedding = one.sizes.vocab * one.sizes.hidden * WIDTH
    for states in ranks:
        assert states["params"][0] == states["params"][1]
        more = embedding - embedding // size if name in ("tensor_parallel", "sequence_parallel") else 0
        assert states["gradients"][0] == states["gradients"][1] + more
        if name != "zero1":  # the momentum of SGD starts as a copy of the gradient; moments of Adam are cut
            assert states["optimizer"][0] == states["optimizer"][1] + more
    if name == "zero1":  # whole tensors are dealt out: together they are all that there is
        assert sum(states["optimizer"][0] for states in ranks) == one.size


@pytest.mark.parametrize(("name", "size"), meetings(DIRECT, ("zero2", "hsdp", "sequence_parallel")))
def test_directly(name: str, size: int) -> None:
    """ZeRO stage 2 too, which no component does."""
    case = case_at(name, DIRECT[name], size)
    (outcome,) = directly([case], Choice(optimizers=("adam",)))
    assert outcome.result == "equal"
    amounts = accounts(case, outcome.runs[-1])
    assert all(measured == derived for measured, derived in held(list(amounts)).values()), amounts
    for amount in amounts:
        if amount.derived is not None and amount.measured != amount.derived:
            # Gathered twice by ZeRO stage 3 and FSDP: forth and back; here once.
            assert (amount.what, amount.cause) == ("all-gather of params", ONCE)
            assert amount.derived == 2 * amount.measured


@pytest.mark.parametrize(
    ("dp", "tp", "exact"),
    [(64, 1, True), (8, 8, True), (256, 1, True), (32, 8, True), (1024, 1, False), (128, 8, False)],
)
def test_large_meshes_are_counted(dp: int, tp: int, exact: bool) -> None:
    """FSDP2, and with tensor parallelism. At 1024 ranks dimension 0 of every tensor is padded: by so much."""
    text = "mesh dp, tp" + WEIGHTS.replace(", used on first", "").replace(", used on last", "")
    (case,) = cases_of(text + "use fsdp(dp) * sequence_parallel(tp)\n", wanted={"dp": dp, "tp": tp})
    native = recognise(case.meeting.program, case.meeting.sizes, case.meeting.quantities)
    large.check(native)
    found = large.counted(native)
    amounts = {one.what: one for one in large.amounts(native, found)}
    padded = large.padded(native)
    assert found.held["params"] == found.held["gradients"] == padded["held"]
    assert found.held["optimizer"] == 2 * padded["held"]
    peak = amounts.pop("peak")
    assert peak.measured > sum(found.held.values())
    wrong = [one for one in amounts.values() if one.measured != one.derived]
    assert (wrong == []) == exact
    assert all(one.cause and "pads dimension 0" in one.cause for one in wrong)
    if tp == 1:
        assert found.sent["all-gather"] == 2 * padded["gathered"]
        assert found.sent["reduce-scatter"] == padded["gathered"]


def test_causes_are_told() -> None:
    case = case_at("tensor_parallel", STRATEGIES["tensor_parallel"], 2)
    native = recognise(case.meeting.program, case.meeting.sizes, case.meeting.quantities)
    told = next(replay.replayed(case, native, Choice(optimizers=("sgd",))))
    wrong = {b.what: b.cause for b in told.bytes if b.measured != b.derived}
    assert wrong == dict.fromkeys(["gradients held", "optimizer held"], formulas.EMBEDDING)
