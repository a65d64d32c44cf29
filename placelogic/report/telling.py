"""What the reports for services have in common: which findings count, and their text in one piece."""

from __future__ import annotations

from collections.abc import Iterator

from placelogic.report.blocks import Look, counterexample_lines
from placelogic.report.diagnostic import (
    NOT_REACHED,
    NOTHING_STATED,
    UNMET,
    FileReport,
    Finding,
    Severity,
    SpecReport,
    beside,
)
from placelogic.report.fingerprint import fingerprints
from placelogic.report.layout import plain


def telling(file: FileReport) -> Iterator[tuple[SpecReport | None, Finding, str]]:
    """The findings worth a mark in the file, each with its spec and fingerprint. The errors of a spec that
    came out as its `expect` lines say are what was wanted, and no marks. Notes are none either, unless a policy
    denies them: a pull request that costs as much as before has no use for being told so."""
    for spec, finding, fingerprint in fingerprints(file):
        if finding.severity == "note" and finding.accepted is None and not finding.denied:
            continue
        if spec is None or not as_expected(spec, finding):
            yield spec, finding, fingerprint


def as_expected(spec: SpecReport, finding: Finding) -> bool:
    """Whether this is an error that the `expect` lines of the spec ask for: no fault, and nothing to mark."""
    kept = finding.denied or finding.code in (UNMET, NOTHING_STATED, NOT_REACHED) or beside(spec, finding)
    return bool(spec.expected) and finding.severity == "error" and not kept


def expected(spec: SpecReport) -> str:
    """What follows the verdict on a spec that says which one it expects."""
    return {True: ", as expected", False: ", not as expected", None: ""}[spec.expected]


def level(finding: Finding) -> Severity:
    """How loud: what is accepted is only told."""
    return "note" if finding.accepted is not None else finding.severity


def story(spec: SpecReport | None, finding: Finding, several: bool) -> str:
    """The finding in one piece of plain text: what, where it shows, the smallest counterexample, the way forward."""
    lines = [finding.message]
    if several and spec is not None:
        lines[0] = f"{spec.name}: {lines[0]}"
    if finding.label:
        lines.append(finding.label)
    if finding.counterexample is not None and not finding.consequence:
        lines += [plain(line).strip() for line in counterexample_lines(0, finding.counterexample, Look())]
    if finding.fix:
        lines.append(f"fix (verified): {finding.fix}")
    elif finding.help:
        lines.append(f"help: {finding.help}")
    if finding.accepted is not None:
        lines.append(accepted_by(finding))
    return "\n".join(line.removeprefix("= ") for line in lines)


def accepted_by(finding: Finding) -> str:
    accepted = finding.accepted
    assert accepted is not None
    where = "a comment in the file" if accepted.kind == "comment" else "the baseline"
    return f"accepted by {where}: {accepted.reason}"
