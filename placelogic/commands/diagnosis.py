"""`doctor`: what this installation consists of, and whether it works."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

State = Literal["ok", "missing", "bad", "info"]

_TORCH = """
import json, torch
found = {"version": torch.__version__, "devices": []}
if torch.cuda.is_available():
    found["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
elif getattr(torch.backends, "mps", None) and torch.backends.mps.is_available():
    found["devices"] = ["mps"]
found["distributed"] = torch.distributed.is_available()
print(json.dumps(found))
"""
_TORCH_SECONDS = 120

_SPECS = {
    "proved": "mesh N\nlet P\nweights model { size P }\nbatch over N\n"
    "place model over N { params gathered, optimizer sharded, gradients sharded }\n",
    "refuted": "mesh N\nlet P\nweights model { size P }\nuse data_parallel(N)\nsync model over N by none\n",
}


class Sign(Struct, frozen=True):
    """One thing that was looked at. `bad`: placelogic does not work; `missing`: something optional is not there."""

    name: str
    state: State
    told: str


def signs() -> Iterator[Sign]:
    """Everything worth knowing, one by one; the slow ones last."""
    from placelogic import __version__

    yield Sign("placelogic", "info", f"{__version__}, in {os.path.dirname(os.path.abspath(__file__))}")
    yield Sign("python", "info", f"{platform.python_version()}, {sys.executable or 'embedded'}")
    yield Sign("system", "info", f"{platform.system()} {platform.machine()}, {_cores()}")
    yield from _libraries()
    yield _standard()
    yield _cache()
    yield _configuration()
    for verdict in _SPECS:
        yield _works(verdict)
    yield _torch()


def _cores() -> str:
    from placelogic.session.parallel import cores

    number = cores()
    return f"{number} core{'s' * (number != 1)} usable"


def _libraries() -> Iterator[Sign]:
    from importlib.metadata import PackageNotFoundError, version

    for library, need in (
        ("z3-solver", "the solver"),
        ("lark", "the parser"),
        ("click", "the command line"),
        ("rich", "colours on a terminal"),
        ("sympy", "memory and traffic"),
        ("cvc5", "--recheck; pip install '.[recheck]' in the checkout"),
        ("numpy", "replay, beside torch; pip install '.[replay]' in the checkout"),
    ):
        optional = library in ("cvc5", "numpy")
        try:
            yield Sign(library, "ok", version(library))
        except PackageNotFoundError:
            yield Sign(library, "missing" if optional else "bad", f"not installed: needed for {need}")


def _standard() -> Sign:
    try:
        from placelogic.elaborate.library import standard, standard_names

        names = standard_names()
        broken = [name for name in names if standard(name) is None]
    except Exception as error:
        return Sign("standard library", "bad", f"{type(error).__name__}: {error}")
    if broken or not names:
        return Sign("standard library", "bad", f"cannot be read: {', '.join(broken) or 'there is none'}")
    return Sign("standard library", "ok", f"{len(names)} strategies and models")


def _cache() -> Sign:
    from placelogic.files import private
    from placelogic.gate.cache import folder_of_user

    folder = folder_of_user()
    if private(folder):
        return Sign("cache", "ok", str(folder))
    return Sign("cache", "missing", f"{folder} cannot be used: not writable, or others can write there")


def _configuration() -> Sign:
    from placelogic.gate.config import load
    from placelogic.problem import SpecError

    try:
        loaded = load()
    except SpecError as error:
        return Sign("configuration", "bad", f"{error.problems[0].span.path}: {error.problems[0].message}")
    return Sign("configuration", "info", loaded.path or "none: defaults; `placelogic init` writes one")


def _works(verdict: str) -> Sign:
    """The whole program, on a spec whose verdict is known."""
    from placelogic.session.check import check_text

    name = f"a spec that is {'right' if verdict == 'proved' else 'wrong'}"
    try:
        came = check_text(_SPECS[verdict], "doctor.place").specs[0].verdict
    except Exception as error:
        return Sign(name, "bad", f"{type(error).__name__}: {error}")
    return Sign(name, "ok" if came == verdict else "bad", came)


_NO_TORCH = "not installed: only needed to run specs; pip install '.[replay]' in the checkout"


def _torch() -> Sign:
    """In a process of its own: a broken installation, or a device that hangs, must not take this one along."""
    if not sys.executable:
        return Sign("torch", "missing", "not looked for: Python does not know its own program")
    # The same modules as ours, and not those that happen to lie in the current folder.
    program = f"import sys; sys.path[:] = {sys.path!r}\n{_TORCH}"
    try:
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=_TORCH_SECONDS)
    except subprocess.TimeoutExpired:
        return Sign("torch", "missing", f"does not answer within {_TORCH_SECONDS} seconds")
    except OSError as error:
        return Sign("torch", "missing", f"cannot be looked for: {error.strerror}")
    if run.returncode:
        last = (run.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        absent = "No module named 'torch'" in last
        return Sign("torch", "missing", _NO_TORCH if absent else f"is broken: {last}")
    found = json.loads(run.stdout.strip().splitlines()[-1])
    names = found["devices"]
    devices = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "no accelerator"
    distributed = "" if found["distributed"] else ", without torch.distributed"
    return Sign("torch", "ok", f"{found['version']}, {devices}{distributed}")
