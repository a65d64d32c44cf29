"""Faults of frameworks that were reported in public, by version, from tables (data/FRAMEWORK_faults.json).

An importer says how a framework runs a configuration at a version. Where that version had a fault that changes what
is trained, and the configuration meets its conditions, the lines that say so are put into the spec, each with the
report it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from placelogic.frontends.draft import Draft
from placelogic.frontends.facts import all_hold
from placelogic.frontends.known import read_data
from placelogic.frontends.versions import before


class Fault(Struct, frozen=True):
    """`since` and `until`: the first version that has it and the first that does not, None for always.
    `when`: conditions on facts. `add`: (section, line). `drop`: lines that begin so are taken out, as what they
    say does not happen. `report`: owner/project#number."""

    report: str
    says: str
    since: str | None
    until: str | None
    when: tuple[tuple[str, str, Any], ...]
    add: tuple[tuple[str, str], ...]
    drop: tuple[str, ...]
    source: str

    def at(self, version: str | None) -> bool:
        """Whether this version has the fault; None is the newest."""
        early = self.since is not None and before(version, self.since)
        return not early and (self.until is None or before(version, self.until))


@cache
def faults(framework: str) -> tuple[Fault, ...]:
    """The table of a framework."""
    return tuple(
        Fault(
            row["report"],
            row["says"],
            row.get("since"),
            row.get("until"),
            tuple(tuple(one) for one in row["when"]),
            tuple((section, line) for section, line in row.get("add", ())),
            tuple(row.get("drop", ())),
            row["source"],
        )
        for row in read_data(f"{framework}_faults.json")["faults"]
    )


def apply(framework: str, spec: Draft, facts: Mapping[str, object], version: str | None) -> list[Fault]:
    """Put the faults that this version has into the spec; returns them."""
    found = [one for one in faults(framework) if one.at(version) and all_hold(one.when, facts)]
    for one in found:
        until = f"before {one.until}" if one.until else "reported"
        for section, lines in spec.lines.items():
            spec.lines[section] = [line for line in lines if not line[0].startswith(one.drop or ("\0",))]
        for section, line in one.add:
            spec.add(section, line.format(**facts), f"{until}, {one.report}")
        spec.head.append(f"Fault of this version ({one.report}): {one.says}.")
    return found
