"""Reports and findings where nothing was decided, or there was nothing to decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from placelogic.program.program import Program
from placelogic.prove.confirm import Confirmation
from placelogic.prove.obligations import Obligation
from placelogic.prove.recheck import Checked
from placelogic.report.diagnostic import Finding, Settled, SpecReport, finding
from placelogic.report.sentences import Sentence
from placelogic.source import Span


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


def as_it_stands(report: SpecReport, place: Span, checked: Iterable[Checked]) -> SpecReport:
    """The report, where the questions as they stand come out as it says; else nothing is proved (UN04)."""
    checked = tuple(checked)
    settled = ((one.question, one.confirmed_by) for one in checked if one.question.counts)
    report = replace(report, settled=tuple(Settled(one.name, one.settled, by) for one, by in settled))
    doubted = [one for one in checked if not one.confirmed]
    if report.verdict != "proved":  # a refutation was simulated
        doubted = [one for one in doubted if one.contradicted]
    if not doubted:
        return report
    told = [finding(_otherwise(one), place) for one in doubted[:3]]
    count = min(sum(one.question.counts for one in doubted), report.obligations.proved)
    obligations = replace(
        report.obligations,
        proved=report.obligations.proved - count,
        undecided=report.obligations.undecided + count,
    )
    return replace(report, verdict="undecided", obligations=obligations, findings=(*told, *report.findings))


def _otherwise(one: Checked) -> Sentence:
    reason = "; ".join(dict.fromkeys(answer.reason for answer in one.answers if answer.reason))
    words = {"obligation": one.question.name, "said": one.z3.status, "wanted": one.question.status, "reason": reason}
    return Sentence("UN04", "otherwise" if one.contradicted else "unknown", one.question.weights, words=words)


def _open(code: str, variant: str, one: Obligation, **words: str) -> Finding:
    sentence = Sentence(code, variant, one.weights, one.axes, {"obligation": one.name, **words})
    return replace(finding(sentence, one.span), sentence=sentence)
