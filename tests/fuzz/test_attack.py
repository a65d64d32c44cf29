"""Short runs of `scripts/attack.py`: nothing from outside gets past a verdict, a coded error, or a quotation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("group", "count"), [("configurations", 300), ("gate", 300), ("names", 60), ("messages", 500)])
def test_none_offends(group: str, count: int) -> None:
    if group == "messages":
        pytest.importorskip("pygls", reason="the language server is an extra")
    command = [sys.executable, str(ROOT / "scripts" / "attack.py"), group, "--count", str(count), "--seed", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{count} inputs in ")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals, and file systems of its own")
@pytest.mark.parametrize(("group", "count"), [("interrupts", 20), ("disks", 10)])
def test_none_offends_in_processes(group: str, count: int) -> None:
    test_none_offends(group, count)
