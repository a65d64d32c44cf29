"""What sums of bytes do not show: reductions of another kind, transfers, norms, divisors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from placelogic.frontends.live.events import Event, Fed
from placelogic.frontends.live.expected import Plan
from placelogic.frontends.live.keys import Axes, Difference, Key, Keys, in_bytes, in_calls, over, said


def operations(counted: Sequence[tuple[Key, Event]]) -> list[Difference]:
    """Reductions that neither sum nor average."""
    found: dict[tuple[Key, str], int] = defaultdict(int)
    for key, event in counted:
        if event.op is not None and event.op not in ("sum", "avg", "premul_sum"):
            found[key, event.op] += event.bytes
    return [
        Difference("other operation", f"{said(key)}: {in_bytes(size)} reduced by {op}, no sum or mean", ())
        for (key, op), size in found.items()
    ]


def transfers(plan: Plan, events: Sequence[Event], placed: Keys) -> list[Difference]:
    """Between stages something must be sent; how much, the spec says only where it has layers."""
    sent = [event for event in events if event.operation in ("send", "receive") and event.purpose != "control"]
    axes = {placed.key(event).axes for event in sent}
    result = []
    if plan.stages is not None and frozenset({plan.stages}) not in axes:
        result.append(Difference("missing", f"transfers between the stages over {plan.stages}", ()))
    for along in axes:
        if not along or not along <= plan.carriers:
            count = sum(placed.key(event).axes == along for event in sent)
            result.append(Difference("extra", f"{in_calls(count)} from rank to rank over {over(along)}", ()))
    return result


def norm(plan: Plan, events: Sequence[Event], placed: Keys) -> list[Difference]:
    """A norm for clipping is summed over every axis that cuts parameters."""
    if not plan.clips:
        return []
    seen: set[str] = set()
    for event in events:
        if event.purpose == "scalar" and event.phase != "forward" and event.operation in ("all-reduce", "all-gather"):
            seen |= placed.key(event).axes
    return [
        Difference("missing", f"the sum of squares for clipping over {axis}", ()) for axis in sorted(plan.norm - seen)
    ]


def factors(plan: Plan, events: Sequence[Event], fed: Sequence[Fed], placed: Keys) -> list[Difference]:
    """Whether gradients are divided as often as the spec says, between the backward pass and the update."""
    late = any(event.phase == "optimizer" and event.op is not None for event in events)
    wrong: dict[tuple[Axes, Fraction, Fraction, tuple[str, ...]], int] = defaultdict(int)
    for one in fed:
        axes, factor = _history(one, events, placed)
        candidates = [scaling for scaling in plan.scalings if scaling.axes == axes]
        if late and not candidates:  # DTensor sums what is in parts when the optimizer is already running
            candidates = [scaling for scaling in plan.scalings if scaling.axes > axes]
        # Who divides by tokens may do so with a plain number.
        if factor is None or not candidates or any(scaling.tokens for scaling in candidates):
            continue
        if factor not in {value for scaling in candidates for value in (scaling.factor, scaling.means)}:
            who = tuple(scaling.weights for scaling in candidates)
            wrong[axes, factor, candidates[0].factor, who] += one.elements
    result = []
    for (axes, factor, wanted, who), count in wrong.items():
        what = f"the sum over {over(axes)}" if axes else "what this rank computed"
        message = f"gradients of {count:,} elements reach the optimizer as {factor} x {what}"
        result.append(Difference("other operation", f"{message}, where the spec has {wanted} x", who))
    return result


def unknown(events: Sequence[Event], fed: Sequence[Fed], placed: Keys) -> list[str]:
    """A note on gradients that could not be followed."""
    lost = [one for one in fed if _history(one, events, placed)[1] is None]
    if not lost:
        return []
    return [f"not compared: what gradients of {sum(one.elements for one in lost):,} elements are multiplied by"]


def _history(one: Fed, events: Sequence[Event], placed: Keys) -> tuple[Axes, Fraction | None]:
    """The axes it was reduced over, and what it was multiplied by all in all; None where that is unknown."""
    chain: list[Event] = []
    parent = one.parent
    while parent is not None:
        chain.insert(0, events[parent])
        parent = events[parent].parent
    axes: set[str] = set()
    factor = one.factor
    for event in chain:
        if event.op is None:
            continue
        along = placed.key(event).axes
        if factor is None or event.factor is None or event.op not in ("sum", "avg"):
            factor = None
        else:
            factor *= event.factor / (len(event.ranks) if event.op == "avg" else 1)
            if along and along <= axes:  # copies are added: as often as there are members
                factor *= len(event.ranks)
        axes |= along
    return frozenset(axes), factor
