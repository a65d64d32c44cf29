"""The report of a replay, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from placelogic import __version__
from placelogic.io.quoting import visible
from placelogic.report.layout import Line, Style
from placelogic.report.replayed import UNDECIDING, Bytes, NotReplayed, Replayed, ReplayReport

SCHEMA = "placelogic/replay/1"


def as_json(report: ReplayReport) -> str:
    """The report as JSON text, in ASCII."""
    found: dict[str, Any] = {"schema": SCHEMA, "version": __version__, "exit_code": report.exit_code}
    found |= {"path": report.path, "device": report.device, "dtype": report.dtype, "steps": report.steps}
    found["replayed"] = [_entry(one) for one in report.replayed]
    found["not_replayed"] = [asdict(one) for one in report.left]
    return json.dumps(found, indent=2)


def _entry(one: Replayed) -> dict[str, Any]:
    entry = to_builtins(one)
    factor = entry.pop("factor")
    entry["factor"] = None if factor is None else {"named": factor[0], "measured": factor[1]}
    # JSON has no infinity: such a difference is one that no number can tell.
    finite = {what: None if value == float("inf") else value for what, value in one.differences.items()}
    return entry | {"differences": finite}


def lines(report: ReplayReport) -> list[Line]:
    """One block per replay, and a summary."""
    found: list[Line] = []
    for one in report.replayed:
        found += [*_replayed(report, one), ()]
    for left in report.left:
        found += _left(report, left)
    return [*found, (), *_summary(report)]


def _replayed(report: ReplayReport, one: Replayed) -> list[Line]:
    what = f"{one.verdict}"
    if one.code:
        what += f" {one.code}" + (f" `{one.weights}`" if one.weights else "")
    sizes = {**one.mesh, **{name: value for name, value in one.quantities.items() if value != 1}}
    start = f"{visible(report.path)}: {one.spec}: "
    style: Style = "good" if one.agrees else "bad" if one.agrees is False else "doubt"
    said = {True: "as the verdict says", False: "which the verdict denies", None: "which decides nothing"}[one.agrees]
    if one.result in UNDECIDING:
        style, said = "", {"counted": "not run", "alone": "on one device, which decides nothing"}[one.result]
    head = (f"{what} at {_sizes(sizes)}: ", "")
    found: list[Line] = [
        ((start, "strong"), head, (f"{one.result if one.result != 'alone' else 'equal'}, {said}", style))
    ]
    ranks = 1
    for size in one.mesh.values():
        ranks *= size
    count = f"{ranks} process" + ("es" if ranks > 1 else "")
    optimizers = " and ".join(one.optimizers)
    if one.result == "counted":
        count = "one process"
    found.append(_indented(f"{one.way} on {count}, {report.steps} steps of {optimizers}, {report.dtype}"))
    if one.reason:
        found.append(_indented(one.reason))
    if one.smaller:
        found.append(_indented(f"the spec has {_sizes(one.smaller)}; the verdict is that of the sizes replayed"))
    if one.stopped:
        found.append(_indented(f"the step cannot be carried out: {one.stopped}"))
    elif one.differences:
        parts = ", ".join(f"{name} {_number(value)}" for name, value in one.differences.items())
        found.append(_indented(f"largest difference to one device: {parts}"))
    if one.factor is not None:
        named, measured = one.factor
        shown = "no number" if measured is None else f"{measured:.6g}"
        found.append(_indented(f"factor of the gradient: {named:g} by the counterexample, {shown} measured"))
    found += [_indented(_bytes(amount)) for amount in one.bytes]
    if one.agrees is False:
        found.append(((f"  {_BUG}", "bad"),))
    return found


_BUG = "this is a bug in placelogic: please report it with the spec and this output"


def _indented(text: str) -> Line:
    return ((f"  {text}", ""),)


def _bytes(one: Bytes) -> str:
    text = f"{one.what}: {one.measured} B"
    if one.derived is not None:
        difference = one.measured - one.derived
        text += f", derived {one.derived} B" + (f", difference {difference:+d} B" if difference else "")
    return text + (f" ({one.cause})" if one.cause else "")


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "one device"


def _number(value: float) -> str:
    return "without bound" if value == float("inf") else f"{value:.1e}"


def _left(report: ReplayReport, left: NotReplayed) -> list[Line]:
    """A reason may have lines of its own, such as those of a traceback."""
    style: Style = "bad" if left.failed else "doubt"
    head = f"{visible(report.path)}: {left.spec}: "
    first, *rest = left.reason.strip().splitlines() or [""]
    why = f"{left.verdict}, not replayed: {visible(first)}"
    return [((head, "strong"), (why, style)), *(_indented(visible(line)) for line in rest)]


def _summary(report: ReplayReport) -> list[Line]:
    agree = sum(one.agrees is True for one in report.replayed)
    text = f"{len(report.replayed)} replayed: {agree} as the verdict says"
    wrong = sum(one.agrees is False for one in report.replayed)
    unclear = sum(one.agrees is None and one.result not in UNDECIDING for one in report.replayed)
    alone = sum(one.result == "alone" for one in report.replayed)
    counted = sum(one.result == "counted" for one in report.replayed)
    text += f", {wrong} not" if wrong else ""
    text += f", {unclear} inconclusive" if unclear else ""
    text += f", {alone} on one device" if alone else ""
    text += f", {counted} counted only" if counted else ""
    text += f"; {len(report.left)} not replayed" if report.left else ""
    return [((text, "good" if report.exit_code == 0 else "bad"),)]
