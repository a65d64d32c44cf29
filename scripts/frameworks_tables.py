"""Writes the tables of docs/frameworks.md that come from data: runtime strategies, refusals, faults.

    python scripts/frameworks_tables.py            rewrite them
    python scripts/frameworks_tables.py --check    exit 1 if one is not current
"""

from __future__ import annotations

import re
import sys
from importlib import resources
from pathlib import Path

from placelogic.frontends.faults import faults
from placelogic.frontends.load import FRAMEWORKS
from placelogic.frontends.refusals import rules

PAGE = Path(__file__).resolve().parents[1] / "docs" / "frameworks.md"
_TABLE = re.compile(r"(?<=<!-- table: )(\w+)( -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


def strategies() -> str:
    """Every runtime strategy with the first sentence of its comment."""
    rows = ["| strategy | what it says |", "|---|---|"]
    folder = resources.files("placelogic").joinpath("std", "frameworks")
    for path in sorted(folder.iterdir(), key=lambda one: one.name):
        text = path.read_text("utf-8")
        comment = " ".join(line.lstrip("# ") for line in text.split("\n") if line.startswith("#")).split(" Source:")[0]
        found = re.search(r"^strategy (\w+\([^)]*\))", text, re.MULTILINE)
        assert found is not None, path.name
        rows.append(f"| `{found[1]}` | {re.split(r'(?<=[.]) (?=[A-Z])', comment)[0]} |")
    return "\n".join(rows) + "\n"


def refusals() -> str:
    """Every rule, with its reason."""
    rows = ["| framework | rule | refuses | because of | source |", "|---|---|---|---|---|"]
    for name, project in FRAMEWORKS.items():
        for rule in rules(name):
            says = rule.says if rule.verb == "refuses" else f"({rule.verb}) {rule.says}"
            reason = "it is not built" if rule.reason == "unbuilt" else rule.reason
            rows.append(f"| {project} | {rule.name} | {says} | {reason} | {rule.source} |")
    return "\n".join(rows) + "\n"


def reported() -> str:
    """Every fault, with its versions."""
    rows = ["| report | framework | versions | fault | source |", "|---|---|---|---|---|"]
    for name, project in FRAMEWORKS.items():
        for one in faults(name):
            since = f"from {one.since} " if one.since else ""
            rows.append(
                f"| {one.report} | {project} | {since}{f'before {one.until}' if one.until else 'up to the newest'} "
                f"| {one.says} | {one.source} |"
            )
    return "\n".join(rows) + "\n"


def spec(command: str) -> str:
    """What `placelogic import` makes of a file."""
    from placelogic.frontends import import_file

    framework, path = command.split()
    return import_file(framework, path).spec


_SPEC = re.compile(r"(?<=<!-- spec: )([^>]+)( -->\n```place\n)(.*?)(?=```)", re.DOTALL)
TABLES = {"strategies": strategies, "refusals": refusals, "faults": reported}


def current(page: str) -> str:
    """The page with its tables as they are now."""
    page = _TABLE.sub(lambda match: f"{match[1]}{match[2]}\n{TABLES[match[1]]()}\n", page)
    return _SPEC.sub(lambda match: f"{match[1]}{match[2]}{spec(match[1])}", page)


def main() -> int:
    old = PAGE.read_text("utf-8")
    new = current(old)
    if "--check" in sys.argv:
        return int(old != new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
