"""Counts what a proof has to be trusted for, in lines of code, and writes the table in docs/semantics.md.

    python scripts/trusted.py            write the table
    python scripts/trusted.py --check    end with 1 if the page on disk has another one

Lines of code are lines without blanks, comments, docstrings and imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "placelogic"
PAGE = ROOT / "docs" / "semantics.md"
START, END = "<!-- table: trusted -->\n", "<!-- end: trusted -->\n"

NORMAL = ("ratio", "formula", "sizes", "divide", "differ")
"""What brings questions to a normal form, and settles those that are plain there."""
ASKED = ("raw", "written", "queries", "solver", "recheck")
"""What writes questions as they stand, and asks them."""
TOLD = (
    "blame", "boundary", "findings", "table", "factor", "copies", "others", "place", "notes", "smallest", "confirm", "undecided",
    "possible", "reprove", "statements", "claims", "second", "__init__",
)  # fmt: skip
"""What tells of refutations, or decides nothing about proofs."""

ROWS = (
    ("what a spec says: `syntax`, `program`, `elaborate`", ("syntax", "program", "elaborate"), (True, True, True)),
    ("how layers lie, and what their values are worth: `layers` (specs with blocks)", ("layers",), (True, True, True)),
    ("the transfer rules and what has to hold: the rest of `prove`", ("prove",), (True, True, True)),
    ("normal forms: " + ", ".join(f"`prove/{name}.py`" for name in NORMAL), NORMAL, (True, False, False)),
    ("questions as they stand: " + ", ".join(f"`prove/{name}.py`" for name in ASKED), ASKED, (False, True, True)),
)


def code_lines(path: Path) -> int:
    """Lines of code in a file."""
    source = path.read_text(encoding="utf-8")
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if text or isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
    lines = enumerate(source.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and number not in left_out for number, line in lines)


def files(names: Iterable[str]) -> Iterator[Path]:
    """The files of folders of the package, or of modules of prove/; of prove/ itself, those that no other row has."""
    for name in names:
        if name == "prove":
            apart = {*NORMAL, *ASKED, *TOLD}
            yield from (path for path in sorted((PACKAGE / name).glob("*.py")) if path.stem not in apart)
        elif (PACKAGE / name).is_dir():
            yield from sorted((PACKAGE / name).rglob("*.py"))
        else:
            yield PACKAGE / "prove" / f"{name}.py"


def table() -> str:
    """The table, in Markdown."""
    counts = [(what, sum(map(code_lines, files(names))), trusted) for what, names, trusted in ROWS]
    rows = [
        "| part | lines | by normal forms alone | as `check` has it | with `--recheck` |",
        "|---|---|---|---|---|",
        *(f"| {what} | {count:,} | {' | '.join('yes' if one else '' for one in trusted)} |" for what, count, trusted in counts),
        "| z3 | | for what is left open | yes | one of the two |",
        "| cvc5 | | | | one of the two |",
    ]
    sums = [sum(count for _, count, trusted in counts if trusted[at]) for at in range(3)]
    rows.append(f"| together | | {' | '.join(f'{count:,}' for count in sums)} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    wanted = f"{before}{START}{table()}{END}{after}"
    if "--check" in sys.argv[1:]:
        return int(text != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
