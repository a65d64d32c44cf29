"""Combinations that a framework refuses, from tables (data/FRAMEWORK_refusals.json), beside what is proved.

"May I combine X with Y" has three answers that must not be blurred: unsound, costly, and only not built."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from placelogic.files import whole
from placelogic.frontends.facts import all_hold
from placelogic.frontends.known import read_data
from placelogic.frontends.result import Imported
from placelogic.report.diagnostic import Finding, Verdict

Reason = Literal["soundness", "divisibility", "cost", "unbuilt"]

_CODES: dict[Reason, str] = {"soundness": "UB01", "divisibility": "UB02", "cost": "UB03", "unbuilt": "UB04"}
_WORDS: dict[Reason, str] = {
    "soundness": "breaking the rule would change what is trained",
    "divisibility": "the sizes would not divide",
    "cost": "it would cost too much",
    "unbuilt": "it is only not built",
}
ACCEPTED = "UB05"
"""The framework runs what is refuted here."""


class Rule(Struct, frozen=True):
    """`when`: conditions on facts, all of which must hold: (fact, comparison, value), where a value `$name` is
    another fact. `strategies`: names of library strategies that meet in it, for questions without a file.
    `source`: project, version and file. `verb`: where the framework does less than refuse."""

    name: str
    when: tuple[tuple[str, str, Any], ...]
    says: str
    reason: Reason
    source: str
    strategies: tuple[frozenset[str], ...]
    verb: str = "refuses"


@cache
def rules(framework: str) -> tuple[Rule, ...]:
    """The table of a framework."""
    return tuple(
        Rule(row["rule"], tuple(tuple(one) for one in row["when"]), row["says"], row["reason"], row["source"],
             tuple(frozenset(group.split("|")) for group in row.get("strategies", ())), row.get("verb", "refuses"))
        for row in read_data(f"{framework}_refusals.json")["rules"]
    )  # fmt: skip


def broken(framework: str, facts: Mapping[str, object]) -> tuple[Rule, ...]:
    """The rules that a configuration breaks, in the order of the table."""
    return tuple(rule for rule in rules(framework) if all_hold(rule.when, facts))


def refused_together(framework: str, strategies: Collection[str]) -> tuple[Rule, ...]:
    """The rules against using these library strategies together."""
    names = set(strategies)
    return tuple(
        rule for rule in rules(framework) if rule.strategies and all(names & group for group in rule.strategies)
    )


def refused(imported: Imported, verdict: Verdict, errors: Collection[str]) -> tuple[Finding, ...]:
    """Notes on what the framework would say about an imported file, beside the verdict here."""
    from placelogic.frontends.load import FRAMEWORKS

    project = FRAMEWORKS[imported.framework]
    found = broken(imported.framework, imported.facts)
    notes = tuple(note(rule, project, verdict, imported.path) for rule in found)
    if verdict != "refuted" or found:
        return notes
    message = f"{project} runs this without complaint: none of the rules known here refuses it"
    if "GI04" in errors and set(errors) <= {"GI04", "GI07"}:
        message += "; this is a mean of means, common and often deliberate: exact only where all shares have equally many tokens"
    return (*notes, Finding(ACCEPTED, "note", message, whole(imported.path)))


def asked(framework: str, strategies: Collection[str], verdict: Verdict) -> tuple[Finding, ...]:
    """Notes on a combination of library strategies, without a file."""
    from placelogic.frontends.load import FRAMEWORKS

    return tuple(note(rule, FRAMEWORKS[framework], verdict, "") for rule in refused_together(framework, strategies))


def note(rule: Rule, project: str, verdict: Verdict | None, path: str) -> Finding:
    """One rule in a sentence, with the verdict where there is one."""
    said = {"proved": "; the mathematics is proved", "refuted": "; the mathematics is refuted"}.get(verdict or "", "")
    message = f"{project} {rule.verb} {rule.says} (rule {rule.name}: {_WORDS[rule.reason]}){said}"
    return Finding(_CODES[rule.reason], "note", message, whole(path), help=f"source: {rule.source}")
