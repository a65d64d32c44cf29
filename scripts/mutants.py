"""The mutation check: breaks the rules in one small way after another, and asks whether a test notices.

    python scripts/mutants.py                     every mutant of every file (some minutes)
    python scripts/mutants.py kinds.py            of one file
    python scripts/mutants.py --list              what would be done
    python scripts/mutants.py --report docs/mutation.md

A mutant is *killed* when a test of tests/verdicts fails, or, for those that survive them, one of
tests/property. Each runs in a process of its own, forked from one that has read all specs already, on
a copy of the tree; the working tree is never touched.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import inspect
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import report_mutants  # noqa: E402
from mutations import Mutation, apply, mutations  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    "prove/kinds.py", "prove/transfer.py", "prove/values.py", "prove/run.py", "prove/gradient.py", "prove/state.py",
    "prove/publish.py", "prove/start.py", "prove/whole.py", "prove/alignment.py", "elaborate/facts.py",
    "elaborate/derive.py",
]  # fmt: skip
"""The files that hold the rules."""

KILLERS = ["test_verdict_table", "test_more_verdicts"]
SECONDS = 60
"""A mutant that runs longer is killed: some loop of it does not end."""


@dataclass(frozen=True)
class Result:
    file: str
    line: int
    where: str
    before: str
    after: str
    key: str
    killed_by: str | None
    seconds: float


@dataclass(frozen=True)
class Check:
    """One call of one test function. `stem`: the spec file it is about."""

    stem: str
    name: str
    run: Callable[[], None]


def main() -> int:
    options = _options()
    files = [file for file in FILES if not options.files or Path(file).name in options.files]
    found = [m for file in files for m in mutations((ROOT / "placelogic" / file).read_text(), file)]
    found = found[:: options.every]
    if options.list:
        for mutation in found:
            print(f"{mutation.file}:{mutation.line} {mutation.where}: {mutation.before}  =>  {mutation.after}")
        print(f"{len(found)} mutants")
        return 0
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        results = list(_shared_out(found, Path(folder), options))
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(result) for result in results], indent=1))
    survivors = [result for result in results if result.killed_by is None]
    for result in survivors:
        print(f"SURVIVED {result.file}:{result.line} {result.where}: {result.before}  =>  {result.after}")
    print(f"{len(results)} mutants, {len(results) - len(survivors)} killed, {len(survivors)} survived, "
          f"{time.time() - started:.0f} s")  # fmt: skip
    if options.report:
        command = f"python scripts/mutants.py --report {options.report}"
        report_mutants.write(Path(options.report), results, command, datetime.date.today())
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation check of the rules.")
    parser.add_argument("files", nargs="*", help="names of files, such as kinds.py (default: all)")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only every n-th mutant")
    parser.add_argument("--json", help="write the results here")
    parser.add_argument("--report", help="update the tables of this page")
    parser.add_argument("--no-property", action="store_true", help="leave tests/property out")
    return parser.parse_args()


# --- processes ------------------------------------------------------------------------------


def _shared_out(found: list[Mutation], folder: Path, options: argparse.Namespace) -> Iterator[Result]:
    """Every n-th mutant to one of `jobs` processes, each with a copy of the tree."""
    outputs: list[tuple[int, Path]] = []
    for job in range(options.jobs):
        tree = folder / f"tree{job}"
        keep_out = shutil.ignore_patterns(".*", "__pycache__")
        for part in ("placelogic", "grammar", "tests"):
            shutil.copytree(ROOT / part, tree / part, ignore=keep_out)
        output = folder / f"results{job}"
        child = os.fork()
        if child == 0:
            with output.open("w") as file:
                for result in _work(found[job :: options.jobs], tree, options):
                    file.write(json.dumps(asdict(result)) + "\n")
                    file.flush()
            os._exit(0)
        outputs.append((child, output))
    for child, _ in outputs:
        os.waitpid(child, 0)
    lines = chain.from_iterable(output.read_text().splitlines() for _, output in outputs)
    position = {(m.key, m.line): index for index, m in enumerate(found)}
    results = [Result(**json.loads(line)) for line in lines]
    yield from sorted(results, key=lambda result: position[result.key, result.line])


def _work(mine: list[Mutation], tree: Path, options: argparse.Namespace) -> Iterator[Result]:
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(tree), str(tree / "tests" / "verdicts")]
    os.chdir(tree)
    checks = _checks()
    passing, ran = _before(checks, tree)
    for name in sorted({check.name for check in checks} - {checks[index].name for index in passing}):
        print(f"fails before any mutation, and is left out: {name}", file=sys.stderr)
    checks = [checks[index] for index in passing]
    property_tests = tree / "tests" / "property"
    more = [] if options.no_property or not property_tests.is_dir() else [property_tests]
    for index, mutation in enumerate(mine):
        began = time.time()
        reach = [check for check in checks if _reaches(mutation, ran.get(check.stem))]
        killed_by, stem = _try(mutation, tree, reach, more)
        if stem:  # what killed one tends to kill its neighbours
            checks.sort(key=lambda check: check.stem != stem)
        print(f"{index + 1}/{len(mine)} {mutation.file}:{mutation.line} {killed_by or 'SURVIVED'}", file=sys.stderr)
        yield Result(mutation.file, mutation.line, mutation.where, mutation.before, mutation.after, mutation.key,
                     killed_by, round(time.time() - began, 2))  # fmt: skip


Lines = dict[str, set[int]]
"""file of rules -> lines that ran"""


def _reaches(mutation: Mutation, ran: Lines | None) -> bool:
    """Whether these specs run the mutated statement; class bodies run at import, for all."""
    if ran is None or mutation.where.rpartition(".")[2][:1].isupper():
        return True
    first, last = mutation.lines
    return not ran.get(mutation.file, set()).isdisjoint(range(first, last + 1))


def _before(checks: list[Check], tree: Path) -> tuple[list[int], dict[str, Lines]]:
    """Which checks pass before anything is broken, and which lines the specs of each file run."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        files = {str(tree / "placelogic" / file): file for file in FILES}
        ran: dict[str, Lines] = {}
        passing = []
        for index, check in enumerate(checks):
            lines = ran.setdefault(check.stem, {})

            def local(frame, event, _, lines=lines):
                lines.setdefault(files[frame.f_code.co_filename], set()).add(frame.f_lineno)
                return local  # noqa: B023

            sys.settrace(lambda frame, *_: local(frame, *_) if frame.f_code.co_filename in files else None)  # noqa: B023
            if _outcome([check], [])[0] is None:
                passing.append(index)
        sys.settrace(None)
        said = [passing, {stem: {f: sorted(ls) for f, ls in lines.items()} for stem, lines in ran.items()}]
        os.write(into, json.dumps(said).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        passing, found = json.loads(pipe.read())
    os.waitpid(child, 0)
    return passing, {stem: {f: set(ls) for f, ls in lines.items()} for stem, lines in found.items()}


def _try(mutation: Mutation, tree: Path, checks: list[Check], more: list[Path]) -> tuple[str | None, str]:
    """The test that kills a mutant, and the file of specs that it is about."""
    file = tree / "placelogic" / mutation.file
    source = file.read_text()
    file.write_text(apply(source, mutation))
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        said = _outcome(checks, more)
        os.write(into, json.dumps(said).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    file.write_text(source)
    return tuple(json.loads(said)) if said else (f"no answer within {SECONDS} s", "")


def _outcome(checks: list[Check], more: list[Path]) -> tuple[str | None, str]:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for check in checks:
        try:
            check.run()
        except Exception:  # an assertion, or the mutant fell over
            return check.name, check.stem
    if more:
        import pytest

        signal.alarm(10 * SECONDS)
        if pytest.main(["-q", "-x", "-p", "no:cacheprovider", *map(str, more)]) == 1:
            return "tests/property", ""
    return None, ""


# --- the tests ------------------------------------------------------------------------------


def _checks() -> list[Check]:
    """Every call of a test function of tests/verdicts about one file of specs.

    Reads everything that no mutant changes: libraries, the grammar, the specs."""
    _read_specs_once()
    found = []
    for module_name in KILLERS:
        module = importlib.import_module(module_name)
        for name, function in vars(module).items():
            if name.startswith("test_") and callable(function):
                found += _calls(module_name, function)
    return sorted(found, key=lambda check: check.stem)


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
        if "process" not in function.__name__ and "fixed" not in function.__name__:
            yield Check(stem, label, lambda arguments=arguments: function(**arguments))


def _read_specs_once() -> None:
    import z3  # noqa: F401
    from hypothesis import settings  # noqa: F401

    import placelogic.checking  # noqa: F401
    import placelogic.report.json  # noqa: F401
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
    try:
        importlib.import_module("placelogic.simulate")
    except ModuleNotFoundError:
        print("no simulator: refutations are not confirmed", file=sys.stderr)
    loaded = [name for name in sys.modules if name.startswith(("placelogic.prove", "placelogic.elaborate"))]
    assert not loaded, loaded


if __name__ == "__main__":
    sys.exit(main())
