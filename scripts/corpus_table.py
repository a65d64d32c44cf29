"""Writes docs/corpus.md: public reports of wrong distributed training, and what the checker says of them.

    python scripts/corpus_table.py            write the page
    python scripts/corpus_table.py --check    end with 1 if the page on disk is another one

The reports are listed in tests/corpus/catalogue.json, their specs lie beside it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
PAGE = ROOT / "docs" / "corpus.md"

Spec = Mapping[str, Any]
"""A spec as the catalogue lists it, or as the JSON report describes it."""

REASONS = {
    "checkpoint layout": "what a checkpoint holds, and how it is read on another mesh, is not planned yet",
    "coupled loss term": "a loss that couples work items (batch statistics) is refused: it is no sum over them",
    "kernel": "a fault inside one operation, or an operation that cannot do what is asked, is no placement",
    "layer operations": "lengths that do not divide are no operations of a layer yet",
    "order of events": "races, reuse of memory, and which storage is meant: a step is a list of operations, done in order",
    "random numbers of recomputation": "streams are compared between devices, not between two runs of one layer",
}
"""Why the language cannot state a report."""

HEAD = """\
# Reports of wrong training

Public reports of distributed training that went wrong without an error, and reports that turned out to be false
alarms, restated as specs. Each fault has a spec with the fault (refuted) and as a rule one without it (proved); each
false alarm has a spec of what is right (proved) and one of what would be wrong (refuted). The specs lie in
`tests/corpus`, where their tests check verdict, code, weights and, where the report gives one, the factor.

This page is written by `scripts/corpus_table.py`; a test holds it against the specs.
"""


def catalogue() -> list[dict[str, Any]]:
    """The reports, in order."""
    reports: list[dict[str, Any]] = json.loads((CORPUS / "catalogue.json").read_text(encoding="utf-8"))["reports"]
    return reports


def check_all() -> dict[str, Spec]:
    """What the checker says about every spec of the corpus, by name."""
    from placelogic.report.json import as_dict
    from placelogic.session.files import check

    files = [file for path in sorted(CORPUS.glob("*.place")) for file in as_dict(check(path))["files"]]
    return {spec["name"]: spec for file in files for spec in file["specs"]}


def difference(wanted: Spec, found: Spec) -> str | None:
    """How the report on a spec differs from what the catalogue says, or None."""
    if found["verdict"] != wanted["verdict"]:
        return f"{found['verdict']}, not {wanted['verdict']}"
    errors = [finding for finding in found["findings"] if finding["severity"] == "error"]
    said = [f"{error['code']} {name}".strip() for error in errors for name in (error["weights"] or "").split(", ")]
    wants = wanted.get("findings", [])
    for want in wants:
        # a code without weights is about the job as a whole, or about whatever weights there are
        if want not in said and want not in [error["code"] for error in errors]:
            return f"no {want}, but {', '.join(said)}"
    if wants and errors[0]["code"] != wants[0].split()[0]:
        return f"{errors[0]['code']} is told first, not {wants[0]}"
    applies = wanted.get("applies")
    if applies is not None:
        rows = [
            row["applies"] for error in errors if error["counterexample"] for row in error["counterexample"]["devices"]
        ]
        if applies not in rows:
            return f"no device applies {applies}, but {', '.join(rows)}"
    return None


def outcome(report: Mapping[str, Any], found: Mapping[str, Spec]) -> str:
    """One report in a few words: as expected, cannot be said, or where it differs."""
    if "specs" not in report:
        return f"language cannot say: {report['reason']}"
    differs = [
        f"`{spec['name']}`: {reason}" for spec in report["specs"] if (reason := difference(spec, found[spec["name"]]))
    ]
    if not differs:
        return "as expected"
    return f"disagrees: {'; '.join(differs)} ({report.get('disagrees', 'unexplained')})"


def page(reports: Iterable[Mapping[str, Any]], found: Mapping[str, Spec]) -> str:
    """The whole page."""
    reports = list(reports)
    outcomes = {report["id"]: outcome(report, found) for report in reports}
    rows = ["| report | what went wrong | specs | outcome |", "|---|---|---|---|"]
    rows += [_row(report, outcomes[report["id"]], found) for report in reports]
    notes = [f"- **{report['id']}**: {report['note']}" for report in reports if "note" in report]
    return "\n".join(
        [HEAD, *_counts(reports, outcomes), "", *_reasons(reports), "", *rows, "", "## Notes", "", *notes, ""]
    )


def _counts(reports: list[Mapping[str, Any]], outcomes: Mapping[str, str]) -> list[str]:
    stated = [report for report in reports if "specs" in report]
    verdicts = Counter(spec["verdict"] for report in stated for spec in report["specs"])
    alarms = [report for report in stated if report["kind"] == "false alarm"]
    parts = f"{len(stated) - len(alarms)} faults and {len(alarms)} false alarms"
    specs = f"{sum(verdicts.values())} specs ({verdicts['refuted']} refuted, {verdicts['proved']} proved)"
    expected = sum(outcomes[report["id"]] == "as expected" for report in stated)
    lines = [
        f"- {len(reports)} reports: {len(stated)} stated, {len(reports) - len(stated)} that the language cannot state",
        f"- of those stated: {parts}, in {specs}",
        f"- {expected} come out as expected, {len(stated) - expected} do not",
    ]
    reach = [
        f"{sum(report['expressible'] == word for report in stated)} of "
        f"{sum(report['expressible'] == word for report in reports)} {meaning}"
        for word, meaning in (
            ("yes", "that are about placement alone are stated"),
            ("partly", "that are so in part"),
            ("no", "that are not"),
        )
    ]
    return [*lines, "- " + ", ".join(reach)]


def _reasons(reports: list[Mapping[str, Any]]) -> list[str]:
    reasons = Counter(report["reason"] for report in reports if "reason" in report)
    return ["What the language cannot state:", ""] + [
        f"- {reason} ({count}): {REASONS[reason]}" for reason, count in sorted(reasons.items())
    ]


def _row(report: Mapping[str, Any], said: str, found: Mapping[str, Spec]) -> str:
    project, number = report["reference"].split("#")
    link = f"{report['id']} [{report['reference']}](https://github.com/{project}/issues/{number})"
    specs = "<br>".join(_spec(spec, found[spec["name"]]) for spec in report.get("specs", ()))
    return f"| {link} | {report['fault']} | {specs} | {said} |"


def _spec(wanted: Spec, found: Spec) -> str:
    """The spec and its verdict; for a refutation also the first code and, where one is wanted, what is applied."""
    text = f"`{wanted['name']}` {found['verdict']}"
    errors = [finding for finding in found["findings"] if finding["severity"] == "error"]
    if errors:
        text += f" {errors[0]['code']}"
    if "applies" in wanted:
        text += f", {wanted['applies']}"
    return text


def main(arguments: list[str]) -> int:
    text = page(catalogue(), check_all())
    if arguments == ["--check"]:
        return 0 if PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
