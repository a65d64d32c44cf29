"""The baseline: findings of a repository that were there when the gate was put up, each with a reason.

A JSON file, kept in the repository and reviewed like everything else in it. An entry is known by its
fingerprint (report/fingerprint.py), so it stays with its finding when lines move, and lets no other fault pass than the
one it was written for.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from placelogic.files import whole
from placelogic.gate.allow import acceptable
from placelogic.io.reading import Unreadable, read_text
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import FileReport, Finding
from placelogic.report.fingerprint import fingerprints
from placelogic.source import Span

SCHEMA = "placelogic/baseline/1"
NAME = "placelogic-baseline.json"
MAX_BYTES = 20_000_000
_KEYS = {"path", "spec", "code", "weights", "fingerprint", "reason"}


class Entry(Struct, frozen=True):
    """`path`: from the folder of the baseline, with forward slashes. `fault`: as `fault_of` has it; None where it is
    of before there was one, and any fault passes."""

    path: str
    spec: str
    code: str
    weights: str
    fingerprint: str
    reason: str
    fault: str | None = None

    def fits(self, finding: Finding) -> bool:
        """Whether the finding is the fault that was accepted."""
        return self.code == finding.code and self.fault in (None, fault_of(finding))


def fault_of(finding: Finding) -> str:
    """What is accepted with a finding, beside its place: its class, and the factor by which a gradient is wrong."""
    return ", ".join(filter(None, (finding.fault, finding.factor and f"times {finding.factor}")))


class Baseline(Struct, frozen=True):
    """`path` is where it is; `text` what is in it."""

    path: str
    entries: tuple[Entry, ...] = ()
    text: str = ""

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.realpath(self.path))

    def name(self, path: str) -> str:
        """What the baseline calls a file."""
        return os.path.relpath(os.path.realpath(path), self.folder).replace(os.sep, "/")

    def place(self, entry: Entry) -> Span:
        """The line with the fingerprint of the entry."""
        return _places(self.text, self.path).get(entry.fingerprint, whole(self.path))


@lru_cache(maxsize=1)
def _places(text: str, path: str) -> dict[str, Span]:
    """Where each fingerprint stands first."""
    found: dict[str, Span] = {}
    for number, line in enumerate(text.split("\n"), 1):
        for match in re.finditer(r'"([0-9a-f]+:\d+)"', line):
            place = Span(path, number, match.start() + 1, number, len(line.rstrip(" ,")) + 1)
            found.setdefault(match[1], place)
    return found


def read(path: str) -> Baseline:
    """The baseline in a file. Raises SpecError: PL034 where it is none, or an entry has no reason."""
    try:
        text = read_text(path, MAX_BYTES)
    except Unreadable as error:
        hint = "`placelogic gate --write-baseline` writes one"
        raise SpecError(Problem("PL034", f"the baseline cannot be read: {error}", whole(path), hint)) from None
    try:
        form = json.loads(text)
        if not isinstance(form, dict) or form.get("schema") != SCHEMA:
            raise ValueError(f"it is not of the form {SCHEMA}")
        entries = tuple(_entry(one) for one in form["accepted"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        said = f"it has no key {error}" if isinstance(error, KeyError) else str(error)
        problem = Problem("PL034", f"the baseline is not usable: {said}", Span(path, line, 1, line, 2))
        raise SpecError(problem) from None
    baseline = Baseline(path, entries, text)
    for entry in entries:
        if not entry.reason.strip():
            message = f"the reason why {entry.code} of `{entry.path}` may pass is missing"
            raise SpecError(Problem("PL031", message, baseline.place(entry), "say why in `reason`"))
        if not acceptable(entry.code):
            message = f"`{entry.code}` cannot be accepted"
            raise SpecError(Problem("PL033", message, baseline.place(entry), "take the entry out"))
    return baseline


def _entry(form: Any) -> Entry:
    known = isinstance(form, dict) and set(form) - {"fault"} == _KEYS and all(isinstance(v, str) for v in form.values())
    if not known:
        raise ValueError(f"every entry has the texts {', '.join(Entry.__struct_fields__)}")
    return Entry(**form)


def written(baseline: Baseline, files: Iterable[FileReport], reason: str) -> str:
    """The text of a baseline that accepts what fails now: what it had keeps its reason, the rest gets this one.
    What is accepted by a comment needs no entry; what nobody may accept gets none."""
    before = {(entry.path, entry.fingerprint): entry.reason for entry in baseline.entries}
    entries = []
    for file in files:
        path = baseline.name(file.path)
        for spec, finding, fingerprint in fingerprints(file):
            if spec is None or finding.severity != "error" or not acceptable(finding.code):
                continue
            if spec.expected and not finding.denied:
                continue
            if finding.accepted is not None and finding.accepted.kind == "comment":
                continue
            said = before.get((path, fingerprint), reason)
            weights, fault = finding.weights or "", fault_of(finding)
            entries.append(Entry(path, spec.name, finding.code, weights, fingerprint, said, fault))
    form = {"schema": SCHEMA, "accepted": [asdict(entry) for entry in entries]}
    return json.dumps(form, indent=2, ensure_ascii=False) + "\n"
