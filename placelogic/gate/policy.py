"""What a repository lets pass: comments, the baseline, and which warnings it does not let pass."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.gate.allow import Allowed, acceptable, allowances
from placelogic.gate.baseline import Baseline, Entry, fault_of
from placelogic.report.diagnostic import ANY_FACTOR, UNUSED, Acceptance, FileReport, Finding, SpecReport
from placelogic.report.fingerprint import fingerprints
from placelogic.source import Span

WARNINGS = "warnings"
"""In `fail-on`: every warning, whatever its code."""


class Policy(Struct):
    """`fail_on`: codes of warnings and notes that fail the gate, or `warnings`. `complete`: every file of the
    repository is looked at, so what nobody needed is needed by nobody."""

    fail_on: frozenset[str] = frozenset()
    baseline: Baseline | None = None
    complete: bool = True
    _known: dict[str, tuple[list[Allowed], list[Finding]]] = field(default_factory=dict)
    _lines: dict[str, dict[int, list[Allowed]]] = field(default_factory=dict)
    _used: dict[tuple[str, Allowed, str], str | None] = field(default_factory=dict)
    """The factor that a comment lets pass, for each of its codes."""
    _kept: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """The same of entries of the baseline."""
    _other: dict[tuple[str, Allowed | str], str] = field(default_factory=dict)
    """The fault that is there instead of the one that a comment, or an entry, was written for."""

    def apply(self, files: Sequence[FileReport]) -> tuple[FileReport, ...]:
        """The reports as the gate sees them. Verdicts stay what they are."""
        judged = [self._file(file) for file in files]
        marked = [self._with_unused(file) for file in judged]
        return (*marked, *self._unused_entries(files))

    def _file(self, file: FileReport) -> FileReport:
        entries = self._entries(file)
        specs = []
        marks = (mark for _, _, mark in fingerprints(file))  # in the order of specs and findings
        for spec in file.specs:
            findings = tuple(self._finding(file, spec, one, entries.get(next(marks))) for one in spec.findings)
            specs.append(_settled(replace(spec, findings=findings)))
        _, wrong = self._allowances(file.path, file.text)
        return replace(file, specs=tuple(specs), findings=tuple(wrong))

    def _finding(self, file: FileReport, spec: SpecReport, finding: Finding, entry: Entry | None) -> Finding:
        if self._denies(finding):
            finding = replace(finding, severity="error", denied=True)
        elif finding.severity != "error" or spec.expected or not acceptable(finding.code):
            return finding
        if not acceptable(finding.code):
            return finding
        path = finding.span.path or file.path
        text = file.text if path == file.path else file.sources.get(path, "")
        for allowed in self._by_line(path, text).get(finding.span.line, ()):
            if finding.code in allowed.codes:
                if allowed.fits(finding):
                    loose = finding.factor if allowed.factor is None else None
                    self._used[os.path.realpath(path), allowed, finding.code] = loose
                    return replace(finding, accepted=Acceptance("comment", allowed.reason))
                self._other[os.path.realpath(path), allowed] = f"the factor is {finding.factor}"
        if entry is not None and entry.fits(finding):
            self._kept[entry.path, entry.fingerprint] = finding.factor if entry.fault is None else None
            return replace(finding, accepted=Acceptance("baseline", entry.reason))
        if entry is not None and entry.code == finding.code:
            self._other[entry.path, entry.fingerprint] = f"it is `{fault_of(finding)}` and was `{entry.fault}`"
        return finding

    def _denies(self, finding: Finding) -> bool:
        if finding.severity == "error":
            return False
        return finding.code in self.fail_on or (finding.severity == "warning" and WARNINGS in self.fail_on)

    def _allowances(self, path: str, text: str) -> tuple[list[Allowed], list[Finding]]:
        key = os.path.realpath(path)
        if key not in self._known:
            self._known[key] = allowances(text, path)
        return self._known[key]

    def _by_line(self, path: str, text: str) -> dict[int, list[Allowed]]:
        key = os.path.realpath(path)
        if key not in self._lines:
            self._lines[key] = by_line = {}
            for allowed in self._allowances(path, text)[0]:
                by_line.setdefault(allowed.line, []).append(allowed)
        return self._lines[key]

    def _entries(self, file: FileReport) -> dict[str, Entry]:
        if self.baseline is None:
            return {}
        name = self.baseline.name(file.path)
        return {entry.fingerprint: entry for entry in self.baseline.entries if entry.path == name}

    def _with_unused(self, file: FileReport) -> FileReport:
        """A comment that nothing needs hides the next fault. In a library, others may need it: that is known
        only when all have been looked at."""
        if file.library and not self.complete:
            return file
        if any(spec.verdict in ("error", "undecided") for spec in file.specs):
            return file  # what it would find is not known
        path = os.path.realpath(file.path)
        unused = []
        for allowed in self._allowances(file.path, file.text)[0]:
            codes = [code for code in allowed.codes if (path, allowed, code) not in self._used]
            if codes:
                place = f"in line {allowed.line}" if allowed.line else "below"
                message = f"nothing {place} needs {', '.join(codes)} to be allowed"
                unused.append(self._unused(message, allowed.span, self._other.get((path, allowed))))
            for code in allowed.codes:
                if factor := self._used.get((path, allowed, code)):
                    message = f"this comment lets {code} pass whatever the factor is"
                    unused.append(self._loose(message, allowed.span, f'it is {factor} now: write `factor="{factor}"`'))
        return replace(file, findings=(*file.findings, *unused))

    def _unused_entries(self, files: Sequence[FileReport]) -> tuple[FileReport, ...]:
        if self.baseline is None:
            return ()
        checked = {self.baseline.name(file.path): file for file in files}
        unused = []
        for entry in self.baseline.entries:
            key = entry.path, entry.fingerprint
            if key in self._kept:
                if factor := self._kept[key]:
                    message = f"this entry lets {entry.code} pass whatever the factor is"
                    way = f"it is {factor} now: look at it, and write the baseline again"
                    unused.append(self._loose(message, self.baseline.place(entry), way))
                continue
            file = checked.get(entry.path)
            if file is None and not self.complete:
                continue
            if file is not None and any(spec.verdict in ("error", "undecided") for spec in file.specs):
                continue
            message = f"nothing in `{entry.path}` needs this entry for {entry.code} any more"
            unused.append(self._unused(message, self.baseline.place(entry), self._other.get(key)))
        if not unused:
            return ()
        return (FileReport(self.baseline.path, (), self.baseline.text, findings=tuple(unused)),)

    def _unused(self, message: str, place: Span, other: str | None) -> Finding:
        message = f"{message}: {other}" if other else message
        way = "what was let pass is another fault: look at this one" if other else "take it out"
        return self._raised(Finding(UNUSED, "warning", message, place, help=way))

    def _loose(self, message: str, place: Span, way: str) -> Finding:
        return self._raised(Finding(ANY_FACTOR, "warning", message, place, help=way))

    def _raised(self, finding: Finding) -> Finding:
        return replace(finding, severity="error", denied=True) if self._denies(finding) else finding


def _settled(spec: SpecReport) -> SpecReport:
    """The spec, accepted where every cause is. What only follows from accepted causes is accepted with them."""
    failing = [one for one in spec.findings if one.severity == "error"]
    causes = [one for one in failing if not one.consequence]
    if spec.verdict != "refuted" or spec.expected is not None or not causes:
        return spec
    if any(one.accepted is None for one in causes) or not all(acceptable(one.code) for one in failing):
        return spec
    first = causes[0].accepted
    following = [one for one in failing if one.accepted is None]
    if not all(_follows(one, causes) for one in following):
        return spec
    findings = tuple(
        replace(one, accepted=first) if one.severity == "error" and one.accepted is None else one
        for one in spec.findings
    )
    return replace(spec, findings=findings, accepted=True)


def _follows(one: Finding, causes: Sequence[Finding]) -> bool:
    """Whether it can follow from these causes: along axes that they have. What shows along another axis has another
    cause, also where these have no axes at all."""
    return {axis for cause in causes for axis in cause.axes}.issuperset(one.axes)
