"""Tries candidates, and keeps the first whose edited spec is proved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from placelogic.mend.candidates import candidates, locate
from placelogic.mend.edits import Edit, apply
from placelogic.problem import SpecError
from placelogic.report.diagnostic import Finding
from placelogic.syntax.ast import File

MAX_TRIES = 30
"""Candidates tried for one spec, over all its findings: each costs one proof."""


def mend(
    file: File, source: str, spec: str, findings: tuple[Finding, ...], proved: Callable[[str], bool]
) -> Mapping[int, Edit]:
    """Index of a finding -> an edit after which the whole spec is proved.

    `proved(text)` decides the spec of an edited text. A spec with two independent faults has
    no such edit: nothing is offered that does not mend it."""
    tries = 0
    fixes: dict[int, Edit] = {}
    results: dict[str, bool] = {}
    for index, finding in enumerate(findings):
        if finding.severity != "error" or finding.consequence:
            continue
        place = locate(file, source, spec, finding)
        if place is None:
            continue
        for edit in islice(candidates(place), MAX_TRIES):
            text = apply(source, edit)
            if text not in results:
                if tries >= MAX_TRIES:
                    return fixes
                tries += 1
                try:
                    results[text] = proved(text)
                except SpecError:
                    results[text] = False
            if results[text]:
                fixes[index] = edit
                break
    return fixes
