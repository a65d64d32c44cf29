"""What `combine` prints: one answer in full, or the matrix of all pairs; as lines, as JSON, as a page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placelogic import __version__
from placelogic.report.diagnostic import Report
from placelogic.report.json import as_dict
from placelogic.report.layout import Line, Style, wrap
from placelogic.report.text import Look, finding_lines

if TYPE_CHECKING:
    from placelogic.combine.answer import Combination
    from placelogic.cost.repeated import Repeated

SCHEMA = "placelogic/combine/1"

_LINE = re.compile(r" \(line \d+\)")

_SAYS: dict[str, tuple[str, Style]] = {
    "sound": ("sound", "good"),
    "costly": ("sound, but costly", "good"),
    "unsound": ("unsound", "bad"),
    "meaningless": ("no meaning: the strategies contradict each other, or say what is not modelled", "bad"),
    "undecided": ("undecided", "doubt"),
}


def combination_lines(one: Combination, look: Look) -> list[Line]:
    """One combination: the answer, the findings or what it rests on, the costs, and the same on one axis."""
    word, style = _SAYS[one.answer]
    sizes = (
        f", for every {', '.join(one.spec.open_sizes)}" if one.spec.verdict == "proved" and one.spec.open_sizes else ""
    )
    lines: list[Line] = [((f"{one.composition.name}: ", "strong"), (word, style), (sizes, ""))]
    for finding in one.spec.findings:
        if finding.severity != "note" and one.spec.verdict != "proved":
            lines += [(), *finding_lines(one.report, finding, look), ()]
    for name in one.overridden:
        lines += _block(overridden_text(name), look, "  note: ")
    for cost in one.costs:
        lines += _block(cost_text(one, cost), look, "  costs: " if one.staged else "  note: ")
    for rule in one.refused:
        lines += _block(f"{rule.message}; {rule.help}", look, f"  note[{rule.code}]: ")
    if one.uncosted:
        lines += _block(f"what it costs is not known: {one.uncosted}", look, "  note: ")
    if one.conditions:
        lines.append((("  provided that", "strong"),))
        for condition in one.conditions:
            where = f" at {condition.at}" if condition.at else ""
            lines += _block(f"{condition.text} (else {condition.code}{where})", look, "    - ")
    if one.spec.assumptions and one.spec.verdict == "proved":
        lines += _block(f"assuming {', '.join(one.spec.assumptions)}", look, "  ")
    if one.together is not None:
        other = one.together
        lines += _block(f"on one axis: {other.composition.name}: {brief(other)}", look, "  ")
    return lines


def brief(one: Combination) -> str:
    """The answer in one line, with the first thing that is wrong."""
    word = _SAYS[one.answer][0]
    wrong = next((finding for finding in one.spec.findings if finding.severity == "error"), None)
    if one.spec.verdict == "proved":
        costs = (
            ", ".join(dict.fromkeys(f"{cost.factor} times over {cost.label}" for cost in one.costs))
            if one.staged
            else ""
        )
        left = "; ".join(map(overridden_text, one.overridden))
        return f"{word}{f': {costs}' if costs else ''}{f'; {left}' if left else ''}"
    if one.answer == "meaningless":
        word = "no meaning"
    # There is no excerpt here that a line number could lead to.
    return f"{word}: {wrong.code}, {_LINE.sub('', wrong.message)}" if wrong is not None else word


def overridden_text(name: str) -> str:
    """A combination in which one strategy has no effect on where anything lies."""
    return f"nothing of {name} is left: the others say more specifically where everything lies"


def cost_text(one: Combination, cost: Repeated) -> str:
    """What is sent more, how often, and why."""
    messages = [f"{sent.operation} of {sent.what} {_times(sent.times)}" for sent in cost.sent]
    again = [sent for sent in cost.sent if sent.times != "1"]
    text = (
        f"over {cost.label}, {', '.join(f'`{name}`' for name in cost.weights)}: {'; '.join(messages)}. That is "
        f"{cost.factor} times the traffic of a step with one micro-batch"
    )
    if one.staged is None:
        return f"{text}; with one micro-batch it costs nothing more"
    text += f", and the stages over {one.staged} need micro-batches"
    if all(sent.operation == "reduce-scatter" for sent in again):
        return f"{text}. Kept whole, the gradients would be reduced once, and take {cost.label} times the room"
    return text


def _times(times: str) -> str:
    return {"1": "once", "2": "twice"}.get(times, f"{times} times")


def _block(text: str, look: Look, lead: str) -> list[Line]:
    room = None if look.width is None else max(look.width - len(lead), 20)
    first, *rest = wrap(text, room)
    return [((lead + first, ""),), *(((" " * len(lead) + part, ""),) for part in rest)]


# --- JSON -------------------------------------------------------------------------------------


def combination_dict(one: Combination) -> dict[str, Any]:
    """One combination as plain dictionaries and lists; `spec` as in `placelogic/check/1`."""
    report = as_dict(Report((one.report,)))
    return {
        "strategies": [part.call for part in one.composition.parts],
        "same_axis": one.composition.same_axis,
        "answer": one.answer,
        "text": one.composition.text,
        "spec": report["files"][0]["specs"][0],
        "costs": [
            {
                "axes": list(cost.axes),
                "weights": list(cost.weights),
                "sent": [{"operation": m.operation, "what": m.what, "times": m.times} for m in cost.sent],
                "factor": cost.factor,
                "needs_microbatches": one.staged is not None,
            }
            for cost in one.costs
        ],
        "costs_unknown": one.uncosted,
        "overridden": list(one.overridden),
        "refused": [{"code": rule.code, "message": rule.message, "source": rule.help} for rule in one.refused],
        "conditions": [
            {"text": c.text, "broken_by": c.broken, "code": c.code, "at": c.at, "finding": c.fault}
            for c in one.conditions
        ],
        "on_one_axis": None if one.together is None else combination_dict(one.together),
    }


def render(combinations: Sequence[Combination], exit_code: int) -> str:
    """The JSON text, in ASCII."""
    found = {
        "schema": SCHEMA,
        "version": __version__,
        "exit_code": exit_code,
        "combinations": [combination_dict(one) for one in combinations],
    }
    return json.dumps(found, indent=2)
