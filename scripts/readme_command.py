"""Prints the shell command that README.md marks with `<!-- command: NAME -->`.

    python3 scripts/readme_command.py tests

What a newcomer is told to run and what .ci/run runs are therefore the same text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
MARKED = re.compile(r"<!-- command: (\w+) -->\n+```sh\n(.*?)\n```", re.DOTALL)


def commands(text: str) -> dict[str, str]:
    """Every marked command by its name."""
    return dict(MARKED.findall(text))


def main(name: str) -> int:
    found = commands(README.read_text(encoding="utf-8"))
    if name not in found:
        print(f"README.md marks no command `{name}`; it marks: {', '.join(found) or 'none'}", file=sys.stderr)
        return 2
    print(found[name])
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: readme_command.py NAME")
    sys.exit(main(sys.argv[1]))
