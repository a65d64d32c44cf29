"""What stays the same about a finding when the lines around it move."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from placelogic.report.diagnostic import FileReport, Finding, SpecReport
from placelogic.source import lines_of

_LONG = 10_000


def fingerprints(file: FileReport) -> Iterator[tuple[SpecReport | None, Finding, str]]:
    """Every finding of the file in order, with the spec it belongs to (None: the file as such) and its fingerprint.

    It is made of the code, the spec, the weights and axes, and the text of the line without its blanks and
    comment: not of line numbers, and not of the message, which may become better. Findings that are alike in
    all of this are numbered in the order they come in."""
    seen: Counter[str] = Counter()
    for spec in (*file.specs, None):
        for finding in file.findings if spec is None else spec.findings:
            known = (
                finding.code,
                spec.name if spec is not None else "",
                finding.weights or "",
                ",".join(finding.axes),
                _line(file, finding),
            )
            digest = hashlib.sha256("\0".join(known).encode("utf-8", "surrogatepass")).hexdigest()[:16]
            seen[digest] += 1
            yield spec, finding, f"{digest}:{seen[digest]}"


def _line(file: FileReport, finding: Finding) -> str:
    path = finding.span.path or file.path
    text = file.text if path == file.path else file.sources.get(path, "")
    return _code(text, finding.span.line)


@lru_cache(maxsize=1024)
def _code(text: str, number: int) -> str:
    """A line without its blanks and comment; for a very long one, which many findings may share, its digest."""
    lines = lines_of(text)
    if not 1 <= number <= len(lines):
        return ""
    code = "".join(lines[number - 1].split("#")[0].split())
    return code if len(code) <= _LONG else hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
