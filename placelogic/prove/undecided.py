"""Reports and findings where nothing was decided, or there was nothing to decide."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from placelogic.program.program import Program
from placelogic.prove.confirm import Confirmation
from placelogic.prove.obligations import Obligation
from placelogic.report.diagnostic import Finding, SpecReport, finding
from placelogic.report.sentences import Sentence


def vacuous(program: Program, printed: tuple[str, ...], why: Sentence) -> SpecReport:
    return SpecReport(program.name, "vacuous", printed, findings=(finding(why, program.span),))


def gave_up(program: Program, printed: tuple[str, ...], reason: str) -> SpecReport:
    why = finding(Sentence("UN01", "spec", words={"reason": reason}), program.span)
    return SpecReport(program.name, "undecided", printed, findings=(why,))


def unknown(one: Obligation, reason: str) -> Finding:
    return _open("UN01", "obligation", one, reason=reason)


def unconfirmed(one: Obligation, env: Mapping[str, int], confirmation: Confirmation) -> Finding:
    if confirmation.at is not None:
        return _open("UN03", "too large", one)
    shown = ", ".join(f"{name} = {value}" for name, value in env.items() if "." not in name)
    return _open("UN02", "not simulated", one, sizes=shown)


def _open(code: str, variant: str, one: Obligation, **words: str) -> Finding:
    sentence = Sentence(code, variant, one.weights, one.axes, {"obligation": one.name, **words})
    return replace(finding(sentence, one.span), sentence=sentence)
