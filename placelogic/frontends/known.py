"""Which settings of a framework have no meaning for placement, as data: one JSON file for each framework."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from msgspec import Struct

from placelogic.frontends.config import Config, nearest
from placelogic.frontends.values import Value
from placelogic.problem import Problem
from placelogic.report.diagnostic import Finding


class Known(Struct, frozen=True):
    """Patterns of names. `quiet`: no meaning for placement. `forward`: they change what a layer computes, on
    every device alike, of which no verdict speaks. `refused`: they change the values of a step in a way that
    is not modelled, with the reason. `part`: a part of what is trained of which the spec does not speak, with
    what is left out. `negations`: beginnings that switch a setting off. `model`: the sizes and parts of a model, which say
    nothing about how it is trained."""

    quiet: tuple[str, ...]
    forward: tuple[str, ...]
    refused: dict[str, str]
    part: dict[str, str]
    negations: tuple[str, ...] = ()
    model: tuple[str, ...] = ()

    def is_quiet(self, name: str) -> bool:
        """Whether a setting, or the one that it switches off, has no meaning for placement."""
        names = [name, *(name.removeprefix(one) for one in self.negations if name.startswith(one))]
        return any(matches(one, self.quiet) for one in names)


@cache
def known(framework: str) -> Known:
    """The table of a framework."""
    data: dict[str, Any] = read_data(f"{framework}_settings.json")
    return Known(
        tuple(data["quiet"]),
        tuple(data["forward"]),
        dict(data["refused"]),
        dict(data.get("part", {})),
        tuple(data.get("negations", ())),
        tuple(data.get("model", ())),
    )


def read_data(name: str) -> Any:
    """A data file of the package."""
    return json.loads(
        resources.files("placelogic").joinpath("frontends").joinpath("data").joinpath(name).read_text("utf-8")
    )


MOST_HINTS = 50
"""Unknown settings of a file for which a known name is searched: in a file with more, no name was misspelled."""


def matches(name: str, patterns: tuple[str, ...] | dict[str, str]) -> str | None:
    """The first pattern that speaks of the name or of something it is in."""
    parts = name.split(".")
    heads = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return next((pattern for pattern in patterns if any(fnmatchcase(head, pattern) for head in heads)), None)


def _unknown_part(name: str, names: list[str]) -> str:
    """The shortest beginning of a path that no known name has: a section as a whole, where all of it is unknown."""
    parts = name.split(".")
    for count in range(1, len(parts)):
        head = ".".join(parts[:count])
        if not any(one == head or one.startswith(f"{head}.") for one in names):
            return head
    return name


def _nearest(name: str, names: list[str]) -> str | None:
    """A hint with a known name of the same section depth."""
    depth = name.count(".") + 1
    return nearest(name, {".".join(one.split(".")[:depth]) for one in names if "*" not in one})


def _twice(name: str, value: Value) -> Finding:
    first = value.over.span.line if value.over else 0
    return Finding("NT22", "warning", f"`{name}` is given twice, first in line {first}: the last one counts",
                   value.key or value.span, help="delete the other one")  # fmt: skip


def off(data: object) -> bool:
    """Whether a value switches its setting off."""
    return data in (None, False, 0, "", "none", "false", "null") or data == {} or data == ()


class Unread(Struct, frozen=True):
    """What an importer did not read: findings on settings that matter or are not known, the names of those
    without meaning for placement, and problems (PL503) with what changes a step and is not modelled."""

    findings: tuple[Finding, ...]
    ignored: tuple[str, ...]
    problems: tuple[Problem, ...]

    def and_(self, other: Unread) -> Unread:
        """Both together."""
        return Unread(self.findings + other.findings, self.ignored + other.ignored, self.problems + other.problems)


_DECIDES = frozenset(
    ["parallel", "parallelism", "tp", "pp", "dp", "cp", "ep", "sp", "stage", "stages", "zero", "clip", "clipping", "optimizer", "optim", "offload", "offloading", "shard", "sharding", "fsdp"]
)
"""Words of a name that speaks of what decides how a step trains."""


def _decides(name: str) -> bool:
    """Whether one of the words is in it, or one that is spelled nearly so."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    return any(word in _DECIDES or (len(word) > 5 and get_close_matches(word, _DECIDES, 1, 0.85)) for word in words)


def settle(config: Config, framework: str, allowed: Collection[str] = ()) -> Unread:
    """Sort what the importer did not read. `allowed`: unknown settings that may be left out, whatever they speak of."""
    table = known(framework)
    twice = ((name, value) for name, value in config.root.leaves() if value.over is not None)
    repeated = {name: value for name, value in twice if not table.is_quiet(name) or name in config.used}
    findings = [_twice(name, value) for name, value in repeated.items()]
    found = set(repeated)
    refused: set[str] = set()
    ignored: list[str] = []
    problems: list[Problem] = []
    unknown: set[str] = set()
    for name, value in config.unread():
        head = name.split(".")[0]
        reason = matches(name, table.refused)
        if reason is not None:
            what = name if "*" in reason else reason
            whole_value = config.root.find(what) or value
            enabled = whole_value.at("enabled")
            if off(value.data) or (enabled is not None and off(enabled.data)):
                ignored.append(name)
            elif what not in refused:
                refused.add(what)
                hint = f"`--set {what}=null` imports the rest of the file without it"
                span = whole_value.key or whole_value.span
                problems.append(Problem("PL503", f"`{what}` is not modelled: {table.refused[reason]}", span, hint))
        elif name in table.part:
            ignored.append(name)
            if not off(value.data):
                found.add(name)
                findings.append(Finding("NT23", "note", f"`{name}`: {table.part[name]}", value.key or value.span))
        elif matches(name, table.forward):
            ignored.append(name)
            if not off(value.data) and head not in found:
                found.add(head)
                findings.append(Finding("NT21", "note", f"`{head}` changes what a layer computes, on every device alike: "
                                        "no verdict speaks about that", value.key or value.span))  # fmt: skip
        elif table.is_quiet(name) or value.data is None or value.data == {}:
            ignored.append(name)
        else:
            names = [*table.quiet, *table.forward, *table.refused, *config.used]
            head = _unknown_part(name, names)
            if head in unknown:
                continue
            unknown.add(head)
            found.add(head)
            near = _nearest(head, names) if len(unknown) <= MOST_HINTS else None
            place = config.root.find(head) or value
            if _decides(name) and name not in allowed and head not in allowed and not off(value.data):
                hint = f"{near}; or `--allow-unknown {head}`" if near else f"`--allow-unknown {head}` leaves it out"
                message = f"`{head}` is not known here, and its name speaks of what decides how a step trains"
                problems.append(Problem("PL508", message, place.key or place.span, hint))
                continue
            findings.append(Finding("NT20", "warning", f"`{head}` is not known here and is left out: the spec says nothing about it",
                                    place.key or place.span, help=near))  # fmt: skip
    return Unread(tuple(findings), tuple(ignored), tuple(problems))
