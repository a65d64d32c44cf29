"""The walls of the house: which room may know which library, and what a command may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import placelogic

PACKAGE = Path(placelogic.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

HOMES = {
    "z3": ("prove",),
    "cvc5": ("prove",),
    "sympy": ("cost",),
    "torch": ("replay", "frontends"),
    "rich": ("report",),
    "lark": ("syntax", "frontends"),
    "click": ("cli.py", "commands"),
    "numpy": ("cost", "replay"),
    "pygls": ("editor",),
    "yaml": ("frontends",),
    "tomli": ("gate", "frontends"),
    "tree_sitter": ("frontends",),
    "tree_sitter_bash": ("frontends",),
    "tomllib": ("gate", "frontends"),
    "lsprotocol": ("editor",),
    "pygments": ("editor",),
}
"""Library -> the only folders or files of the package that may import it."""

APART = {
    "simulate": ("placelogic.prove",),
    "run": ("placelogic.prove", "placelogic.simulate", "placelogic.replay"),
    "gate": ("placelogic.prove", "placelogic.elaborate", "placelogic.simulate", "placelogic.commands"),
    "session": ("placelogic.gate", "placelogic.commands", "placelogic.editor", "placelogic.frontends", "placelogic.replay"),
    "requirements": ("placelogic.gate", "placelogic.commands", "placelogic.editor", "placelogic.frontends", "placelogic.replay"),
    "evidence": ("placelogic.gate", "placelogic.commands", "placelogic.editor", "placelogic.frontends", "placelogic.replay"),
    "mend": ("placelogic.gate", "placelogic.commands", "placelogic.editor", "placelogic.frontends", "placelogic.replay"),
    "replay": ("placelogic.prove",),
    "prove": ("placelogic.cost", "placelogic.replay", "placelogic.run"),
    "syntax": ("placelogic.elaborate", "placelogic.prove", "placelogic.simulate", "placelogic.report"),
    "program": (
        "placelogic.syntax",
        "placelogic.elaborate",
        "placelogic.prove",
        "placelogic.simulate",
        "placelogic.report",
    ),
    "report": ("placelogic.syntax", "placelogic.elaborate", "placelogic.prove", "placelogic.simulate"),
    "frontends": ("placelogic.prove", "placelogic.simulate", "placelogic.cost", "placelogic.replay", "placelogic.elaborate"),
    "frontends/live": ("placelogic.prove", "placelogic.simulate", "placelogic.replay"),
    "combine": ("placelogic.prove", "placelogic.simulate"),
    "editor": ("placelogic.simulate", "placelogic.commands"),
    "elaborate": ("placelogic.prove", "placelogic.simulate", "placelogic.cost", "placelogic.replay"),
}
"""Folder -> what nothing in it may import; an inner folder goes by its own row (a trace is held against a step program)."""

ASKS = {
    "replay/cases.py": "asks for the verdict at sizes that are made smaller; what comes of it is compared, not run",
}
"""Modules of a room that may import the prover all the same, each with its reason."""

LONG = {
    "syntax/ast.py": "every statement of the language, as data only",
}
"""Modules of 300 lines and more, each with its reason."""


def imports(path: Path) -> Iterator[str]:
    """Every module that the file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_walls(path: Path) -> None:
    room, *inner = path.relative_to(PACKAGE).parts
    own = "/".join([room, *inner[:1]])
    for module in imports(path):
        for library, homes in HOMES.items():
            assert not within(module, library) or room in homes, f"{library} belongs in {homes}"
        for other in APART.get(own, APART.get(room, ())) if str(path.relative_to(PACKAGE)) not in ASKS else ():
            assert not within(module, other), f"{room}/ must not know {other}"


def test_the_root_is_small() -> None:
    """What is no foundation lies in a folder that says what it is for."""
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def test_no_imports_in_a_circle() -> None:
    """Imports inside functions count, and those for type checkers; not what the root tells these of what it loads by name."""
    modules = {_name(path): path for path in MODULES if path != PACKAGE / "__init__.py"}
    sorter = TopologicalSorter({name: _imported(name, path, modules) for name, path in modules.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, path: Path, modules: Collection[str]) -> set[str]:
    """The modules of the package that this one imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & set(modules)
        elif isinstance(node, ast.ImportFrom):
            # `from package import name` is about the module of that name, if there is one.
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {one if one in modules else node.module for one in inner} & set(modules)
    return found - {name}


@pytest.mark.parametrize(("library", "home"), [("z3", "prove/solver.py"), ("cvc5", "prove/second.py")])
def test_each_solver_is_asked_in_one_place(library: str, home: str) -> None:
    """So that none can lean on the other, and cvc5 can be missing."""
    users = [path for path in MODULES if any(within(module, library) for module in imports(path))]
    assert users == [PACKAGE / home]


def test_torch_is_for_live_models() -> None:
    """Configurations are read without it."""
    users = {path for path in MODULES if any(within(module, "torch") for module in imports(path))}
    homes = (PACKAGE / "frontends" / "live", PACKAGE / "replay")
    assert all(any(home in path.parents for home in homes) for path in users)


def test_modules_are_short() -> None:
    long = {
        str(path.relative_to(PACKAGE)) for path in MODULES if len(path.read_text(encoding="utf-8").split("\n")) > 300
    }
    assert long == set(LONG)


def test_importing_the_package_loads_nothing() -> None:
    before = _loaded("pass")
    assert _loaded("import placelogic") - before == {"placelogic"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"], ["fmt", "--help"], ["gate", "--help"]])
def test_help_loads_no_heavy_library(arguments: list[str]) -> None:
    loaded = _loaded(f"from placelogic.cli import main; main({arguments})")
    assert not loaded & {"z3", "cvc5", "lark", "rich", "sympy", "torch", "placelogic.syntax", "placelogic.program"}


def _loaded(code: str) -> set[str]:
    """What is loaded after running the code in a fresh interpreter: top-level names, and our own in full."""
    script = (
        f"import sys, io\nout = sys.stdout; sys.stdout = io.StringIO()\n{code}\nsys.stdout = out\nprint(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    names = run.stdout.split()
    return {name for name in names if within(name, "placelogic")} | {name.split(".")[0] for name in names}
