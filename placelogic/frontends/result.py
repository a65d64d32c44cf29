"""What an importer makes of a file, as data."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from placelogic.problem import Problem
from placelogic.report.diagnostic import Finding


class Imported(Struct, frozen=True):
    """`spec`: the text of a spec. `findings`: warnings and notes about settings, placed in the file they
    come from. `ignored`: settings that say nothing about placement, by name. `problems`:
    what changes a step and is not modelled, so that the spec is of the rest of the file only. `facts`: what it
    amounts to, for the tables of combinations that a framework refuses. `source`: the text of the file."""

    framework: str
    version: str
    path: str
    spec: str
    findings: tuple[Finding, ...]
    ignored: tuple[str, ...]
    problems: tuple[Problem, ...]
    facts: Mapping[str, object]
    source: str = ""
