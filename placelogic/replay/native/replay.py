"""One case replayed by a component: the outcome as the report has it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from math import prod

from placelogic.replay.cases import Case
from placelogic.replay.judge import Choice, bounds
from placelogic.replay.launch import Place, shared
from placelogic.replay.native import formulas
from placelogic.replay.native.parallel import needed_microbatches
from placelogic.replay.native.recognise import Native, NoComponent
from placelogic.replay.native.train import LOSS, NORM, SAMPLES, NativeRun, Setting, run
from placelogic.replay.rounding import ORDER
from placelogic.report.replayed import Bytes, Replayed, Result


def check(native: Native, place: Place) -> None:
    """Raises NoComponent where ranks share GPUs and the component needs more than gloo does with them."""
    if "stages" in native.roles.values() and shared(prod(native.sizes.values()), place):
        raise NoComponent("pipelines need a GPU for every rank: gloo sends nothing from a GPU point to point")


def replayed(case: Case, native: Native, choice: Choice) -> Iterator[Replayed]:
    """One entry per component; its optimizers together. Raises ReplayFailed."""
    start = time.monotonic()
    names = tuple(name for name in choice.optimizers if name is not None) or ("adam",)
    runs = run(native, Setting(choice.steps, choice.seed, names, choice.place, choice.limit))
    seconds = time.monotonic() - start
    for component in dict.fromkeys(one.name for one in runs):
        yield _told(case, native, [one for one in runs if one.name == component], seconds, choice)


def _told(case: Case, native: Native, runs: list[NativeRun], seconds: float, choice: Choice) -> Replayed:
    worst: dict[str, float] = {}
    for gap in (gap for one in runs for rank in one.gaps for gap in rank):
        worst[gap.what] = max(worst.get(gap.what, 0.0), gap.difference)
    equal, different = bounds(worst.pop(ORDER, 0.0))
    most = max(worst.values(), default=0.0)
    result: Result = "equal" if most <= equal else "different" if most > different else "inconclusive"
    reasons = []
    if needed_microbatches(native) != native.microbatches:
        reasons.append(f"its schedule needs {needed_microbatches(native)} micro-batches")
    if native.master:
        reasons.append("computed in float32, and compared with what another order of the same sums does")
    if native.offload and choice.place.device == "cpu":
        reasons.append("on the CPU everything is on the host, and nothing moves")
    return Replayed(
        spec=case.name,
        verdict=case.verdict,
        mesh=dict(case.meeting.sizes),
        quantities=dict(case.meeting.quantities),
        way=runs[0].name,
        reason="; ".join(reasons),
        result=result,
        agrees=None if result == "inconclusive" else result == case.expected,
        smaller=dict(case.meeting.smaller),
        differences=worst,
        optimizers=tuple(one.optimizer for one in runs),
        bytes=tuple(amounts(native, runs[-1], width=8 if choice.place.dtype == "float64" else 4)),
        seconds=seconds,
    )


def amounts(native: Native, one: NativeRun, rank: int = 0, width: int = 8) -> Iterator[Bytes]:
    """Held and sent by one rank, measured and derived."""
    stage = stage_of(native, rank)
    mine = formulas.part(native, one.sizes, stage)
    moments = 1 if one.optimizer == "sgd" else 2
    for state, derived in formulas.held(native, one.sizes, mine, moments, width).items():
        measured = one.held[rank][state]
        yield Bytes(f"{state} held", measured, derived, _cause(native, state, measured, derived))
    if all(size == 1 for size in native.sizes.values()):
        return  # nobody to send to
    turns = needed_microbatches(native)
    if "context" in native.roles.values():
        kind = one.name.split("(")[1].rstrip(")")
        sent = formulas.context(kind, native, one.sizes, mine, SAMPLES, turns, width)
    else:
        loss = one.name.endswith(LOSS)
        narrow = width // 2 if native.master and width == 8 else width
        sent = formulas.sent(native, one.sizes, mine, SAMPLES, turns, stage, narrow, loss)
    for kind in sorted({*sent, *one.sent[rank]}):
        measured, expected = one.sent[rank].get(kind, 0), sent.get(kind)
        if kind == NORM:
            if measured:
                yield Bytes(kind, measured, None, "shares of its square, summed")
        elif kind == "all-to-all" and expected is None:
            yield Bytes(kind, measured, None, "what tokens the router sends where")
        else:
            yield Bytes(kind, measured, expected or 0, _cause(native, kind, measured, expected or 0))


def stage_of(native: Native, rank: int) -> int:
    """The coordinate of a rank along the pipeline."""
    sizes = [(role, native.sizes[axis]) for axis, role in native.roles.items() if role != "idle"]
    coordinates: Mapping[str, int] = {}
    for role, size in reversed(sizes):
        rank, coordinate = divmod(rank, size)
        coordinates = {**coordinates, role: coordinate}
    return coordinates.get("stages", 0)


def _cause(native: Native, what: str, measured: int, derived: int) -> str | None:
    if measured == derived:
        return None
    roles = set(native.roles.values())
    if native.tied and native.vee and what in ("params", "gradients", "optimizer", "all-reduce", "reduce-scatter"):
        return formulas.TWICE
    if what in ("gradients", "optimizer") and "tensor" in roles and "shard" not in roles:
        return formulas.EMBEDDING
    if what == "optimizer" and "zero1" in roles:
        return formulas.WHOLE
    if what == "all-gather" and "stages" in roles:
        return formulas.ONE_MORE
    if what == "all-reduce" and native.sequence and "shard" not in roles:
        return formulas.THRICE
    if what == "broadcast":
        return formulas.REBUILD
    return None
