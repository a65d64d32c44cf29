"""Scripts that show counterexamples: written from specs, and run without importing torch for each."""

from __future__ import annotations

import os
import select
import sys
import types
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from placelogic.problem import SpecError
from placelogic.program.program import Program
from placelogic.replay.cases import Case
from placelogic.replay.script import MOST_DEVICES, NotShown, has_blocks, inside_layers, script
from placelogic.replay.script.build import Build
from placelogic.replay.script.layers import Layered
from placelogic.replay.specs import judged
from placelogic.report.diagnostic import Finding
from tests.replay.helpers import cases_in

SECONDS = 60.0
DIFFERENT, SAME = "DIFFERENT from one device", "the same as one device"


class Shown(Struct, frozen=True):
    """A refuted spec. `text`: its script; None: `reason` says why there is none."""

    name: str
    code: str
    text: str | None
    reason: str = ""


@cache
def written(path: Path) -> tuple[Shown, ...]:
    """For every refuted spec of a file; written once."""
    return tuple(_written(path))


def named(name: str, files: Iterable[Path]) -> Shown:
    """The one of `FILE: SPEC`."""
    return next(one for path in files if path.stem == name.split(":")[0] for one in written(path) if one.name == name)


def _written(path: Path) -> Iterator[Shown]:
    for name, program, report in judged(path.read_text(encoding="utf-8"), path.name, None, lambda told: None):
        if program is None or report.verdict != "refuted":
            continue
        found = [f for f in report.findings if f.severity == "error" and f.counterexample is not None]
        name = f"{path.stem}: {name}"
        try:
            yield Shown(name, found[0].code, script(program, found[0], name))
        except SpecError as error:
            yield Shown(name, found[0].code, None, error.problems[0].message.split(": ", 1)[1])


def of_right_steps(path: Path, most: int = MOST_DEVICES) -> Iterator[Shown]:
    """The same kind of script for every proved spec, with all its trained weights; where it has blocks, also one
    with all its operations, if that can be written."""
    for case in cases_in(path):
        program = case.meeting.program
        if case.verdict != "proved" or case.meeting.ranks > most:
            continue
        if not inside_layers(program):
            yield Shown(case.name, "", _right(program, case))
        if has_blocks(program):
            try:
                yield Shown(f"{case.name} inside", "", _inside(program, case))
            except NotShown:
                continue


def _right(program: Program, case: Case) -> str:
    trained = tuple(group for group in program.weights if program.step(group.name) is not None)
    finding = Finding("GI01", "error", "nothing is wrong", program.span)
    return Build(replace(program, weights=trained), finding, case.name, case, None, 2).text()


def _inside(program: Program, case: Case) -> str:
    finding = Finding("FW06", "error", "nothing is wrong", program.span)
    return Layered(program, finding, case.name, case, None, 2).text()


def printed(text: str) -> str:
    """What the script prints, run in a process of its own that is forked from this one."""
    import torch.distributed
    import torch.multiprocessing  # noqa: F401

    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        _run(text, theirs)
    os.close(theirs)
    told = b""
    while select.select([ours], [], [], SECONDS)[0]:
        more = os.read(ours, 65536)
        if not more:
            break
        told += more
    else:
        os.kill(child, 9)
        told += b"no answer in time"
    os.waitpid(child, 0)
    os.close(ours)
    return told.decode()


def _run(text: str, pipe: int) -> None:
    import torch

    code = 1
    try:
        torch.set_num_threads(1)  # threads of the process it is forked from are not there any more
        os.setpgrp()
        os.dup2(pipe, 1)
        os.dup2(pipe, 2)
        sys.stdout = sys.stderr = os.fdopen(1, "w")
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(text, "shown.py", "exec"), module.__dict__)  # noqa: S102
        code = 0
    except BaseException as error:  # noqa: BLE001
        print(repr(error))
    sys.stdout.flush()
    os._exit(code)
