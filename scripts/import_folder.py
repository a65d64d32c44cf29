"""Runs the importers over a folder of configurations and prints a table: file, imported, verdict, notes.

    python scripts/import_folder.py DIR [--framework NAME] [--tokens even|uneven|both] [--framework-version V]

Without --framework, the name of the sub-folder a file lies in says which importer reads it. Exit code 1 if any file
made the program fail with a traceback (PL900), else 0.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from placelogic.files import CONFIGS
from placelogic.frontends import FRAMEWORKS, Request
from placelogic.frontends.checked import check_imported, make
from placelogic.report.diagnostic import FileReport
from placelogic.session.settings import Settings

INTERNAL = ("PL900", "PL902", "PL903")
QUIET = ("NT01", "NT02", "NT04", "NT08")
"""Notes on the spec that say nothing about the import."""


def files(folder: Path, framework: str | None) -> Iterator[tuple[str, Path]]:
    """Every configuration below the folder, with the importer that reads it."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            parts = (framework,) if framework else path.relative_to(folder.parent).parts
            known = next((part for part in parts if part in FRAMEWORKS), None)
            if known and name.endswith(CONFIGS):
                yield known, path


def outcome(framework: str, path: Path, tokens: str, version: str | None) -> tuple[bool, str, str, FileReport]:
    """Whether the file was imported, the verdict, and the codes of what there is to tell."""
    made = make(framework, str(path), Request(tokens=tokens, version=version))
    report = check_imported(made, Settings(fixes=None))
    spec = report.specs[0]
    codes = sorted({finding.code for finding in spec.findings} - set(QUIET))
    return made.imported is not None, spec.verdict, " ".join(codes), report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--framework", choices=list(FRAMEWORKS))
    parser.add_argument("--framework-version")
    parser.add_argument("--tokens", choices=["even", "uneven", "both"], default="both")
    asked = parser.parse_args()
    kinds = ("even", "uneven") if asked.tokens == "both" else (asked.tokens,)
    counts: Counter[tuple[str, str, str]] = Counter()
    failed = 0
    print("| file | imported | " + " | ".join(f"tokens {kind}" for kind in kinds) + " | codes |")
    print("|---|---|" + "---|" * len(kinds) + "---|")
    for framework, path in files(asked.folder, asked.framework):
        cells, told, imported = [], [], False
        for kind in kinds:
            imported, verdict, codes, report = outcome(framework, path, kind, asked.framework_version)
            cells.append(verdict)
            told.append(codes)
            counts[framework, kind, verdict] += 1
            failed += any(finding.code in INTERNAL for spec in report.specs for finding in spec.findings)
        shown = told[0] if len(set(told)) == 1 else " / ".join(one or "-" for one in told)
        print(
            f"| {path.relative_to(asked.folder)} | {'yes' if imported else 'no'} | {' | '.join(cells)} | {shown} |",
            flush=True,
        )
    print()
    for (framework, kind, verdict), count in sorted(counts.items()):
        print(f"{framework}, tokens {kind}: {count} {verdict}")
    if failed:
        print(f"{failed} failed with an internal error")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
