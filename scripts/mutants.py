"""The mutation check: breaks the rules in one small way after another, and asks whether a test notices.

    python scripts/mutants.py                     every mutant of every file (some minutes)
    python scripts/mutants.py kinds.py            of one file
    python scripts/mutants.py --list              what would be done
    python scripts/mutants.py --json FILE --again     those that survived last time, after adding specs
    python scripts/mutants.py --json FILE run.py      one file after another, results kept together
    python scripts/mutants.py --report docs/mutation.md

A mutant is *killed* when a test of tests/verdicts or of tests/layers fails, or, for those that survive them
and are not explained, when proof and simulation disagree on one of the random specs of tests/property and
tests/layers. Each runs in a process of its own, forked from one that has read all specs already, on a copy
of the tree; the working tree is never touched. Only specs that run the mutated statement are asked.
"""

from __future__ import annotations

import argparse
import compileall
import datetime
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

sys.path.insert(0, str(Path(__file__).parent))
import report_mutants
from equivalents import reason
from killers import Check, all_checks, nothing_loaded, parsed, random_checks, read
from mutations import Mutation, apply, mutations

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    "prove/kinds.py", "prove/transfer.py", "prove/values.py", "prove/run.py", "prove/gradient.py",
    "prove/kept.py", "prove/differ.py",
    "prove/state.py", "prove/publish.py", "prove/start.py", "prove/whole.py", "prove/alignment.py", "prove/layers.py",
    "prove/feeding.py", "prove/arriving.py", "prove/boundary.py", "prove/streams.py", "prove/divide.py",
    "elaborate/facts.py", "elaborate/derive.py",
    "layers/scale.py", "layers/values.py", "layers/moving.py", "layers/forward.py", "layers/backward.py",
    "layers/arriving.py", "layers/record.py", "layers/walk.py", "layers/cases.py", "layers/flows.py", "layers/order.py",
    "layers/operations.py", "layers/places.py", "layers/attending.py", "layers/attention.py", "layers/parts.py", "layers/crossing.py", "layers/wants.py",
    "layers/planning.py", "layers/overrides.py", "layers/heads.py", "layers/deal.py", "layers/derive.py",
]  # fmt: skip
"""The files that hold the rules."""

EXPLAINED = 40
"""Checks that are asked about a mutant that is explained, those first that kill most; --doubt asks all."""

NO_LAYERS = {
    "prove/values.py", "prove/state.py", "prove/publish.py", "prove/start.py", "prove/whole.py", "prove/alignment.py",
    "prove/gradient.py", "prove/feeding.py", "elaborate/facts.py", "elaborate/derive.py",
}  # fmt: skip
"""Of these the test functions of tests/layers are not asked, only its specs: they have no rule about layers."""

SAMPLED = {"layers": 6}
"""Of the files of a folder only every n-th mutant is tried, unless all are asked for."""

SECONDS, TIMES = 10, 5
"""Of CPU time, and of what a check takes of it otherwise. A mutant that takes more is killed: some loop of it does
not end."""


class Result(Struct, frozen=True):
    file: str
    line: int
    where: str
    before: str
    after: str
    key: str
    killed_by: str | None
    seconds: float


def main() -> int:
    options = _options()
    files = [file for file in FILES if not options.files or {file, Path(file).name} & set(options.files)]
    every = {file: mutations((ROOT / "placelogic" / file).read_text(), file) for file in files}
    found = [m for file in files for m in every[file][:: 1 if options.all else SAMPLED.get(file.split("/")[0], 1)]]
    found = found[:: options.every]
    store = Path(options.json) if options.json else None
    known = [Result(**old) for old in json.loads(store.read_text())] if store and store.exists() else []
    known = _still_there(known, every)
    if options.again:
        survived = {(result.key, result.line) for result in known if result.killed_by is None}
        found = [one for one in chain.from_iterable(every.values()) if (one.key, one.line) in survived]
    if options.list:
        for mutation in found:
            print(f"{mutation.file}:{mutation.line} {mutation.where}: {mutation.before}  =>  {mutation.after}")
        print(f"{len(found)} mutants")
        return 0
    results = known
    options.hints = {result.key: result.killed_by for result in known}
    if not options.tables:
        with tempfile.TemporaryDirectory() as folder:
            results = _merged(known, list(_shared_out(found, Path(folder), options)), files, options.again)
    if store:
        store.write_text(json.dumps([asdict(result) for result in results], indent=1))
    survivors = [result for result in results if result.killed_by is None]
    unexplained = report_mutants.unexplained(results)
    for result in unexplained:
        print(f"SURVIVED {result.file}:{result.line} {result.where}: {result.before}  =>  {result.after}")
    seconds = sum(result.seconds for result in results)
    print(
        f"{len(results)} mutants, {len(results) - len(survivors)} killed, {len(survivors)} survived, "
        f"{len(unexplained)} of them not explained; {seconds:.0f} s of one core"
    )
    if options.report:
        command = f"python scripts/mutants.py --report {options.report}"
        there = {file: len(found) for file, found in every.items()}
        report_mutants.write(Path(options.report), results, there, command, datetime.date.today(), seconds)
    return 1 if unexplained else 0


def _still_there(known: list[Result], every: dict[str, list[Mutation]]) -> list[Result]:
    """Results about mutants that there still are, at the lines where they are now."""
    lines: dict[str, list[int]] = {}
    for mutation in chain.from_iterable(every.values()):
        lines.setdefault(mutation.key, []).append(mutation.line)
    found = []
    for result in known:
        if result.file not in every:
            found.append(result)
        elif lines.get(result.key):
            found.append(replace(result, line=lines[result.key].pop(0)))
    return found


def _merged(known: list[Result], fresh: list[Result], files: list[str], again: bool) -> list[Result]:
    """What was known of other files, or of all but those that were tried again, and what is new."""
    by_place = {(result.key, result.line): result for result in fresh}
    if again:
        return [by_place.get((old.key, old.line), old) for old in known]
    rest = [old for old in known if old.file not in files]
    return sorted([*rest, *fresh], key=lambda result: FILES.index(result.file))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mutation check of the rules.")
    parser.add_argument("files", nargs="*", help="names of files, such as kinds.py (default: all)")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="all mutants of layers/, instead of every sixth")
    parser.add_argument("--every", type=int, default=1, help="only every n-th mutant")
    kept = "keep the results here; those of files not asked about stay, and what killed a mutant is asked first then"
    parser.add_argument("--json", help=kept)
    parser.add_argument("--again", action="store_true", help="only what survived according to --json, and update it")
    parser.add_argument("--tables", action="store_true", help="try nothing, only count what --json holds")
    parser.add_argument("--report", help="update the tables of this page")
    parser.add_argument("--seeds", type=int, default=100, help="random specs asked about what survives the others")
    parser.add_argument("--blocks", type=int, default=60, help="random specs with blocks, asked about it too")
    parser.add_argument("--doubt", action="store_true", help="ask everything also about what is explained")
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
    compileall.compile_dir(tree, quiet=2)  # all but the mutated file is compiled once
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(tree), str(tree / "tests" / "verdicts")]
    os.chdir(tree)
    checks = all_checks(_listed)
    last_resort = random_checks(_listed, options.seeds, options.blocks)
    every, texts = _before([*checks, *last_resort], tree)
    for check, known in zip([*checks, *last_resort], every):
        if known is None:
            print(f"fails before any mutation, and is left out: {check.name}", file=sys.stderr)
    asked = [one for one in every[: len(checks)] if one is not None]
    random = [one for one in every[len(checks) :] if one is not None]
    read(texts)
    nothing_loaded()
    gc.collect()
    gc.freeze()
    kills: Counter[str] = Counter()
    last = ""
    for index, mutation in enumerate(mine):
        began = time.process_time(), os.times()
        reach = [
            one
            for one in asked
            if _reaches(mutation, one.ran)
            and not (mutation.file in NO_LAYERS and one.check.name.startswith("layers/test_"))
        ]
        # What killed it the last time, what killed its neighbour; then the cheapest that killed many.
        hint = options.hints.get(mutation.key)
        reach.sort(
            key=lambda one: (
                one.check.name != hint,
                one.check.stem != last,
                -(1 + kills[one.check.stem]) / one.cost,
                one.check.stem,
            )
        )
        if options.doubt or reason(mutation) is None:
            reach += [one for one in random if _reaches(mutation, one.ran)]
        else:
            reach = reach[:EXPLAINED]
        killed_by, last = _try(mutation, tree, reach)
        kills[last] += 1
        now = os.times()
        seconds = time.process_time() - began[0] + now.children_user + now.children_system
        seconds -= began[1].children_user + began[1].children_system
        print(f"{index + 1}/{len(mine)} {mutation.file}:{mutation.line} {killed_by or 'SURVIVED'}", file=sys.stderr)
        yield Result(mutation.file, mutation.line, mutation.where, mutation.before, mutation.after, mutation.key,
                     killed_by, round(seconds, 2))  # fmt: skip


Lines = dict[str, set[int]]
"""file of rules -> lines that ran"""


class Known(Struct, frozen=True):
    """A check that passes before anything is broken, the lines that its specs run, and its CPU seconds (while
    lines are counted, which takes longer)."""

    check: Check
    ran: Lines
    cost: float


def _reaches(mutation: Mutation, ran: Lines) -> bool:
    """Whether these specs run the mutated statement; class bodies run at import, for all."""
    if mutation.where.rpartition(".")[2][:1].isupper():
        return True
    first, last = mutation.lines
    return not ran.get(mutation.file, set()).isdisjoint(range(first, last + 1))


def _in_a_process(function: Callable[[], object]) -> tuple[str, int]:
    """What a function returns in a process of its own, as JSON, and how that ended."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            said = json.dumps(function())
            with os.fdopen(into, "w") as pipe:
                pipe.write(said)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(into)
    with os.fdopen(out) as pipe:
        said = pipe.read()
    return said, os.waitpid(child, 0)[1]


def _listed(function: Callable[[], list]) -> list:
    return json.loads(_in_a_process(function)[0])


def _before(checks: list[Check], tree: Path) -> tuple[list[Known | None], list[tuple[str, str]]]:
    """What is known of each check, None for those that fail as it is; and the texts that they read."""
    files = {str(tree / "placelogic" / file): file for file in FILES}

    def ask() -> object:
        # Those of one file of specs are about one report, which is made once.
        by_stem: dict[str, tuple[Lines, Counter[str]]] = {}
        passing = []
        for check in checks:
            lines, cost = by_stem.setdefault(check.stem, ({}, Counter()))
            began = time.process_time()

            def local(frame, event, _, lines=lines):
                lines.setdefault(files[frame.f_code.co_filename], set()).add(frame.f_lineno)
                return local

            sys.settrace(lambda frame, *_: local(frame, *_) if frame.f_code.co_filename in files else None)
            passing.append(_fails(check) is False)
            sys.settrace(None)
            cost["seconds"] += time.process_time() - began
        told = {
            stem: [{file: sorted(found) for file, found in lines.items()}, max(cost["seconds"], 0.001)]
            for stem, (lines, cost) in by_stem.items()
        }
        return [passing, told, parsed()]

    said, _ = _in_a_process(ask)
    passing, told, texts = json.loads(said)
    by_stem = {
        stem: ({file: set(found) for file, found in lines.items()}, cost) for stem, (lines, cost) in told.items()
    }
    known = [
        Known(check, *by_stem[check.stem]) if passes else None for check, passes in zip(checks, passing)
    ]
    return known, [(text, path) for text, path in texts]


def _try(mutation: Mutation, tree: Path, checks: list[Known]) -> tuple[str | None, str]:
    """The test that kills a mutant, and the file of specs that it is about."""
    file = tree / "placelogic" / mutation.file
    source, times = file.read_text(), file.stat()
    file.write_text(apply(source, mutation))
    said, _ = _in_a_process(lambda: _outcome(checks))
    file.write_text(source)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that what was compiled counts again
    return tuple(json.loads(said)) if said else ("no answer in time", "")


def _outcome(checks: list[Known]) -> tuple[str | None, str]:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for known in checks:
        signal.setitimer(signal.ITIMER_PROF, SECONDS + TIMES * known.cost)
        if _fails(known.check):
            return known.check.name, known.check.stem
    return None, ""


def _fails(check: Check) -> bool:
    """By an assertion, or because the mutant fell over."""
    try:
        check.run()
    except Exception:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
