"""The table of what a proof is trusted for is that of the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def _script() -> ModuleType:
    """scripts/trusted.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("trusted", ROOT / "scripts" / "trusted.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()


def test_the_table_is_up_to_date() -> None:
    text = SCRIPT.PAGE.read_text(encoding="utf-8")
    assert text.partition(SCRIPT.START)[2].partition(SCRIPT.END)[0] == SCRIPT.table(), "run scripts/trusted.py"


def test_every_named_module_is_there() -> None:
    known = {path.stem for path in (ROOT / "placelogic" / "prove").glob("*.py")}
    assert {*SCRIPT.NORMAL, *SCRIPT.ASKED, *SCRIPT.TOLD} <= known
