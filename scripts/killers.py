"""What may kill a mutant: the tests of tests/verdicts and tests/layers, called one by one in this process, and
random specs, on which proof and simulation must agree.

Nothing here may load the rules: they are read anew, mutated, by each process that is forked from this one.
What has to look at tests that load them (those of tests/layers) runs in a process of its own (`listed`).
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

from msgspec import Struct

MODULES = ["test_verdict_table", "test_more_verdicts"]
NO_RULES = {
    "test_agreement": "random specs are asked last",
    "test_power": "breaks rules itself",
    "test_reports": "its specs are asked one by one",
    "test_rules": "its specs are asked one by one",
    "test_fixes": "how a fault is mended",
    "test_published": "how much is kept and sent",
}
"""Modules of tests/layers that are not called, and why."""
SLOW = {
    "test_proof_and_simulation_agree", "test_what_a_layer_keeps", "test_latents_cross_and_not_the_width",
    "test_a_stage_has_whole_layers_of_each_kind", "test_the_671_billion_parameters_of_deepseek_v3",
    "test_counted_by_hand", "test_deepseek_v2_is_one_too", "test_what_is_left_out_is_found", "large_and_wrong",
}  # fmt: skip
"""Many specs at once, large ones, and how much is kept, sent and held."""
STATEMENT = re.compile(r"^(?=(?:spec|model|strategy) )", re.MULTILINE)
FIXES = {"test_lines"}
"""What is said of a fix matters here; elsewhere no fix is looked for."""


class Check(Struct, frozen=True):
    """One call of one test function. `stem`: the spec file it is about."""

    stem: str
    name: str
    run: Callable[[], None]


def all_checks(listed: Callable[[Callable[[], list]], list]) -> list[Check]:
    """Every call of a test function of tests/verdicts about one file of specs, and of tests/layers. `listed`: what
    a function returns in a process of its own.

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
    found += [Check(name, name, lambda text=text: _expected(text)) for name, text in _block_specs()]
    for module, name, choice in listed(_layer_calls):
        label = f"layers/{module}.py {name}{choice}"
        found.append(Check(label, label, lambda at=(module, name, choice): _layer_call(*at)))
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
        if stem in SLOW:
            continue
        folder = "cases" if module == "test_verdict_table" else "more"
        label = f"{folder}/{stem}.place" + (f" {arguments['name']}" if "name" in arguments else "")
        if "process" not in function.__name__ and "fixed" not in function.__name__:  # slow, and say no more
            yield Check(stem, label, lambda arguments=arguments: _without_fixes(function, arguments))


def _without_fixes(function: Callable, arguments: dict) -> None:
    with _fixes(wanted=False):
        function(**arguments)


# --- specs with blocks ----------------------------------------------------------------------


def _block_specs() -> Iterator[tuple[str, str]]:
    """The specs of tests/layers/cases, each with what its file shares."""
    for path in sorted(Path("tests/layers/cases").glob("*.place")):
        parts = STATEMENT.split(path.read_text(encoding="utf-8"))
        shared = "".join(part for part in parts if not part.startswith("spec "))
        for text in parts:
            if text.startswith("spec "):
                yield f"layers/{path.name} {text.split()[1]}", shared + text


def _expected(text: str) -> None:
    from placelogic.session.check import check_text
    from placelogic.session.settings import Settings

    (spec,) = check_text(text, "blocks.place", Settings(fixes=None)).specs
    assert spec.expected is True


def _layer_calls() -> list[tuple[str, str, list[int]]]:
    """Module, function, and which of the values of each of its parameters."""
    found = []
    for path in sorted(Path("tests/layers").glob("test_*.py")):
        if path.stem in NO_RULES:
            continue
        for name, function in vars(importlib.import_module(f"tests.layers.{path.stem}")).items():
            marks = getattr(function, "pytestmark", [])
            if not name.startswith("test_") or name in SLOW or any(mark.name in ("slow", "skipif") for mark in marks):
                continue
            if function.__module__ != f"tests.layers.{path.stem}":
                continue
            choices = list(product(*(range(len(values)) for _, values in _parameters(function))))
            given = {one for names, _ in _parameters(function) for one in names}
            if set(inspect.signature(function).parameters) - given <= {"checked"}:
                found += [(path.stem, name, list(choice)) for choice in choices]
    return found


def _parameters(function: Callable) -> list[tuple[list[str], Sequence]]:
    found = []
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":
            names, values = mark.args
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            found.append((names, list(values)))
    return found


def _layer_call(module: str, name: str, choice: Sequence[int]) -> None:
    function = getattr(importlib.import_module(f"tests.layers.{module}"), name)
    arguments: dict[str, object] = {}
    for (names, values), index in zip(_parameters(function), choice):
        arguments |= dict(zip(names, values[index] if len(names) > 1 else [values[index]]))
    if "checked" in inspect.signature(function).parameters:
        arguments["checked"] = _checked
    with _fixes(module in FIXES):
        function(**arguments)


@contextlib.contextmanager
def _fixes(wanted: bool) -> Iterator[None]:
    """Whether faults are mended, which takes long and says nothing of verdicts."""
    import placelogic.session.check as checking

    before = checking._with_fixes
    if not wanted:
        checking._with_fixes = lambda report, *_: report
    try:
        yield
    finally:
        checking._with_fixes = before


def _checked(text: str, *options: str) -> tuple[int, str]:
    """The fixture of tests/layers/test_lines.py: the exit code and the printed text of `placelogic check a.place`."""
    from placelogic.cli import main

    back, printed = Path.cwd(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        os.chdir(folder)
        try:
            Path("a.place").write_text(text, encoding="utf-8")
            code = main(["check", *options, "a.place"])
        finally:
            os.chdir(back)
    return code, printed.getvalue()


# --- random specs ---------------------------------------------------------------------------


def random_checks(listed: Callable[[Callable[[], list]], list], seeds: int, blocks: int) -> list[Check]:
    """What is asked about mutants that survive everything else: proof and simulation of random specs, without
    blocks and with them. The latter are drawn here: drawing asks the rules what crosses between devices."""
    found = [Check(f"property, seed {seed}", f"property, seed {seed}", lambda seed=seed: _agree(seed)) for seed in range(seeds)]
    for seed, text in enumerate(listed(lambda: _drawn(blocks))):
        name = f"blocks, seed {seed}"
        found.append(Check(name, name, lambda at=(text, seed): _agree_layers(*at)))
    return found


def _drawn(count: int) -> list[str]:
    from tests.layers.draw import draw

    return [draw(seed) for seed in range(count)]


def _agree(seed: int) -> None:
    from tests.property.many import one

    assert one(seed, max_devices=9, max_meshes=4).disagreement is None


def _agree_layers(text: str, seed: int) -> None:
    from tests.layers.agree import judge

    assert judge(text, seed, meshes=3).disagreement is None


# --- what is read once ----------------------------------------------------------------------

_known: dict[tuple[str, str], object] = {}


def parsed() -> list[tuple[str, str]]:
    """The texts that were read so far, and their names."""
    return list(_known)


def read(texts: Sequence[tuple[str, str]]) -> None:
    """Texts that every process would read again."""
    from placelogic.syntax import parse as reader

    for text, path in texts:
        with contextlib.suppress(Exception):  # it is told where it is read
            reader.parse(text, path)


def _read_specs_once() -> None:
    for name in ("z3", "hypothesis", "pytest", "placelogic.session.check", "placelogic.report.json", "placelogic.simulate"):
        importlib.import_module(name)
    from placelogic.syntax import parse as reader

    parse = reader.parse

    def remembered(text: str, path: str):
        if (text, path) not in _known:
            _known[text, path] = parse(text, path)
        return _known[text, path]

    reader.parse = remembered
    for path in sorted(Path("tests/verdicts").glob("*/*.place")):
        remembered(path.read_text(), str(Path.cwd() / path))
    for path in sorted(Path("placelogic/std").glob("*.place")):
        remembered(path.read_text(), f"placelogic/std/{path.name}")
    nothing_loaded()


def nothing_loaded() -> None:
    rules = ("placelogic.prove", "placelogic.elaborate", "placelogic.layers")
    loaded = [name for name in sys.modules if name.startswith(rules)]
    assert not loaded, loaded
