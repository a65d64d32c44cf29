"""Runs every command in the `console` blocks of README.md and writes what it prints below it.

    python scripts/refresh_docs.py            rewrite the blocks
    python scripts/refresh_docs.py --check    exit 1 if a block is not what the commands print

A block is a list of commands, each after `$ `, and their output. `placelogic` runs in the interpreter that runs this
script, from the root of the checkout; `cat FILE` and `echo $?` are the only other commands.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/gate.md")
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def refreshed(page: str) -> str:
    """The page with every block as its commands print it now."""
    return BLOCK.sub(lambda match: "".join(run_block(match[1])), page)


def run_block(block: str) -> Iterator[str]:
    """The commands of a block, each with its output."""
    status = 0
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        output, status = run(line[2:], status)
        yield f"{line}\n"
        yield f"{output.rstrip()}\n" if output.strip() else ""


def run(command: str, status: int) -> tuple[str, int]:
    """Output and exit code of one command; `status` is the exit code of the one before."""
    match shlex.split(command):
        case ["echo", "$?"]:
            return str(status), 0
        case ["cat", name]:
            return (ROOT / name).read_text(encoding="utf-8"), 0
        case ["placelogic", *arguments]:
            environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
            done = subprocess.run(
                [sys.executable, "-m", "placelogic", *arguments],
                check=False,
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                timeout=120,
            )
            return done.stdout, done.returncode
    raise ValueError(f"not a command of the documentation: {command}")


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: refresh_docs.py [--check]", file=sys.stderr)
        return 2
    stale = []
    for name in PAGES:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            stale.append(name)
            if not arguments:
                path.write_text(after, encoding="utf-8")
    print(f"{'stale' if arguments else 'rewritten'}: {', '.join(stale)}" if stale else "up to date")
    return 1 if stale and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
