"""Puts verified fixes into a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from placelogic.mend.mend import mend
from placelogic.program.program import Program
from placelogic.report.diagnostic import SpecReport, TextEdit
from placelogic.syntax.ast import File


def with_fixes(report: SpecReport, file: File, text: str, at: Mapping[str, int]) -> SpecReport:
    """The report of a refuted spec, each finding with an edit that mends the spec, where one was found."""
    fixes = mend(file, text, report.name, report.findings, lambda edited, name: _proved(edited, file.path, name, at))
    findings = list(report.findings)
    for index, edit in fixes.items():
        findings[index] = replace(findings[index], fix=edit.says, edit=TextEdit(edit.span, edit.text))
    return replace(report, findings=tuple(findings))


def _proved(text: str, path: str, name: str, at: Mapping[str, int]) -> bool:
    """Whether the named spec of this text is proved. Raises SpecError when it cannot be read."""
    from placelogic.elaborate import elaborate_file
    from placelogic.elaborate.derive import derive
    from placelogic.prove import Options, prove
    from placelogic.syntax.parse import parse

    specs = elaborate_file(parse(text, path), at)
    spec = next((spec for spec in specs if spec.name == name), None)
    if spec is None or spec.program is None or spec.stated is None:
        return False
    program: Program = derive(spec.program, spec.stated)
    return prove(program, Options(explain=False)).verdict == "proved"
