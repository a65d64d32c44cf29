"""Running the checker from tests: one report per file, kept for the whole session."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import placelogic

HERE = Path(__file__).parent
EXPECT = re.compile(r"^\s*expect .*$\n?", re.MULTILINE)
BLOCK = re.compile(r"^(?=spec \w+ \{)", re.MULTILINE)
SPEC = re.compile(r"^spec (\w+)", re.MULTILINE)


def files(folder: str) -> list[Path]:
    """The spec files of a folder, without what they import."""
    return sorted((HERE / folder).glob("*.place"))


def spec_names(path: Path) -> list[str]:
    """The named specs of a file; a file without any is one spec, called like the file."""
    return SPEC.findall(path.read_text()) or [path.stem]


def every_spec(folder: str) -> list[tuple[str, str]]:
    return [(path.stem, name) for path in files(folder) for name in spec_names(path)]


@cache
def report(folder: str, stem: str) -> dict[str, Any]:
    """The report on a file, as a program sees it."""
    from placelogic.report.json import as_dict

    return as_dict(placelogic.check(HERE / folder / f"{stem}.place"))


def spec_report(folder: str, stem: str, name: str) -> dict[str, Any]:
    specs = report(folder, stem)["files"][0]["specs"]
    found = [spec for spec in specs if spec["name"] == name]
    assert found, f"{stem}.place has no report on {name}: {said(specs)}"
    return found[0]


def said(specs: list[dict[str, Any]]) -> str:
    """What came out, on a few lines."""
    return "\n".join(
        f"{spec['name']}: {spec['verdict']} "
        + "; ".join(f"{f['code']} {f['weights'] or ''} {f['message']}" for f in spec["findings"])
        for spec in specs
    )


def errors(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in spec["findings"] if finding["severity"] == "error"]


def alone(folder: str, stem: str, name: str) -> str:
    """The text of one spec of a file, with the declarations it shares and without its expectations."""
    text = (HERE / folder / f"{stem}.place").read_text()
    shared, *blocks = BLOCK.split(text)
    mine = [block for block in blocks if block.startswith(f"spec {name} {{")]
    return without_expectations(shared + "".join(mine))


def without_expectations(text: str) -> str:
    """The same specs, so that their own verdict decides the exit code."""
    return EXPECT.sub("", text)
