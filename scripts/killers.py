"""What may kill a mutant: the tests of tests/verdicts, called one by one in this process."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MODULES = ["test_verdict_table", "test_more_verdicts"]


@dataclass(frozen=True)
class Check:
    """One call of one test function. `stem`: the spec file it is about."""

    stem: str
    name: str
    run: Callable[[], None]


def all_checks() -> list[Check]:
    """Every call of a test function of tests/verdicts about one file of specs.

    Reads everything that no mutant changes: libraries, the grammar, the specs."""
    _read_specs_once()
    found = []
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name, function in vars(module).items():
            if name.startswith("test_") and callable(function):
                found += _calls(module_name, function)
    folder = Path("tests/property/found")
    found += [Check(path.stem, f"found/{path.name}", lambda path=path: _met(path)) for path in folder.glob("*.place")]
    found.append(Check("derived steps", "tests/elaborate/test_derive.py", _derived_steps))
    return sorted(found, key=lambda check: check.stem)


def _derived_steps() -> None:
    """What is cheapest is no verdict."""
    from tests.elaborate.test_derive import STEPS, test_derived_step

    for spec in STEPS:
        test_derived_step(spec)


def _met(path: Path) -> None:
    import placelogic

    assert all(spec.expected for spec in placelogic.check(path).specs)


def _calls(module: str, function: Callable) -> Iterator[Check]:
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    needed = set(inspect.signature(function).parameters)
    if len(marks) != 1:
        return
    names, values = marks[0].args
    names = [names] if isinstance(names, str) else list(names)
    if needed != set(names) or "stem" not in names:
        return
    for value in values:
        arguments = dict(zip(names, value if len(names) > 1 else [value]))
        stem = arguments["stem"]
        folder = "cases" if module == "test_verdict_table" else "more"
        label = f"{folder}/{stem}.place" + (f" {arguments['name']}" if "name" in arguments else "")
        if "process" not in function.__name__ and "fixed" not in function.__name__:  # slow, and say no more
            yield Check(stem, label, lambda arguments=arguments: _without_fixes(function, arguments))


def _without_fixes(function: Callable, arguments: dict) -> None:
    with _fixes(wanted=False):
        function(**arguments)


def _read_specs_once() -> None:
    for name in ("z3", "hypothesis", "placelogic.checking", "placelogic.report.json", "placelogic.simulate"):
        importlib.import_module(name)
    from placelogic.syntax import parse as reader

    parse, known = reader.parse, {}

    def remembered(text: str, path: str):
        if (text, path) not in known:
            known[text, path] = parse(text, path)
        return known[text, path]

    reader.parse = remembered
    for path in sorted(Path("tests/verdicts").glob("*/*.place")):
        remembered(path.read_text(), str(Path.cwd() / path))
    for path in sorted(Path("placelogic/std").glob("*.place")):
        remembered(path.read_text(), f"placelogic/std/{path.name}")
    loaded = [name for name in sys.modules if name.startswith(("placelogic.prove", "placelogic.elaborate"))]
    assert not loaded, loaded
