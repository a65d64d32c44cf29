"""Writes every query of proofs/ as SMT-LIB 2 text into proofs/smt2/, and the table of statements into docs/proofs.md.

    python scripts/export_proofs.py            write them
    python scripts/export_proofs.py --check    exit 1 if one is not what the statements say
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from placelogic.prove.statements import exported, load, table  # noqa: E402

BEGIN, END = "<!-- statements: begin -->\n", "<!-- statements: end -->\n"


def wanted() -> dict[Path, str]:
    """Path -> content, for all that is generated."""
    statements = load()
    files = {ROOT / "proofs" / "smt2" / name: text for name, text in exported(statements).items()}
    page = ROOT / "docs" / "proofs.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    return {**files, page: f"{before}{BEGIN}\n{table(statements)}\n{END}{after}"}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: export_proofs.py [--check]", file=sys.stderr)
        return 2
    files = wanted()
    old = sorted(set((ROOT / "proofs" / "smt2").glob("*.smt2")) - set(files))
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if not arguments:
        for path in stale:
            path.write_text(files[path], encoding="utf-8")
        for path in old:
            path.unlink()
    changed = [*stale, *old]
    if changed:
        print(f"{'stale' if arguments else 'written'}: {', '.join(str(p.relative_to(ROOT)) for p in changed[:5])}"
              f"{f' and {len(changed) - 5} more' if len(changed) > 5 else ''}")  # fmt: skip
    else:
        print("up to date")
    return 1 if changed and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
