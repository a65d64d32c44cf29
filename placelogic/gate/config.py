"""The configuration of a repository: `placelogic.toml`, or `[tool.placelogic]` in `pyproject.toml`.

Codes of the problems found here: PL035 a file that cannot be read, PL036 an unknown or impossible setting,
PL037 two configurations side by side.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.files import whole
from placelogic.gate.values import READ
from placelogic.io.quoting import toml, visible
from placelogic.io.reading import Unreadable, read_text
from placelogic.problem import Problem, SpecError, closest
from placelogic.source import Span

OWN = "placelogic.toml"
PROJECT = "pyproject.toml"
DEFAULT = "default"
MAX_BYTES = 1_000_000
MOST_SETTINGS = 100
"""So that a hostile file ends quickly, with every problem told."""


class Config(Struct, frozen=True):
    """Every setting has a default. Paths and patterns are relative to `root`, the folder of the configuration.

    `minimum_sizes`: a spec that has these sizes must allow a mesh that reaches them all. `budget`: memory
    per device, for every spec. `fail_on`: codes of warnings and notes that fail, or `warnings`."""

    paths: tuple[str, ...] = (".",)
    exclude: tuple[str, ...] = ()
    minimum_sizes: Mapping[str, int] = field(default_factory=dict)
    budget: str | None = None
    fail_on: tuple[str, ...] = ()
    require_stated: bool = False
    rlimit: int | None = None
    timeout: float | None = None
    recheck: bool = False
    baseline: str | None = None


class Loaded(Struct, frozen=True):
    """A configuration, and where each value comes from: `default`, a file with a line, or an option.
    `path`: the file, None where there is none."""

    config: Config
    root: str
    path: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    def with_options(self, options: Mapping[str, Any]) -> Loaded:
        """What the command line says goes first; None and empty values say nothing."""
        said = {name: value for name, value in options.items() if value not in (None, False, ())}
        origins = {**self.origins, **{name: f"--{_key(name)}" for name in said}}
        return replace(self, config=replace(self.config, **said), origins=origins)

    def origin(self, name: str) -> str:
        return self.origins.get(name, DEFAULT)

    def place(self, name: str) -> Span:
        """Where the setting is written: its line in the file, or the file as such."""
        line = self.origin(name).rpartition(":")[2]
        at = int(line) if line.isdigit() else 1
        return Span(self.path or f"--{_key(name)}", at, 1, at, 2)

    def shown(self) -> str:
        """Every setting as a line of TOML, with where it comes from."""
        rows = [(_shown(name, getattr(self.config, name)), name) for name in Config.__struct_fields__]
        width = max(len(text) for text, _ in rows)
        head = f"# root: {visible(os.path.relpath(self.root))}\n# file: {visible(self.path) if self.path else 'none'}\n"
        return head + "".join(f"{text:<{width}}  # {visible(self.origin(name))}\n" for text, name in rows)


_LONG_NAME = re.compile(r"(?:\.[ \t]*[\w\"'-][^.\n=\[\]{},]{0,200}){50}")


def load(named: str | None = None) -> Loaded:
    """The configuration in the file named, or else in the nearest folder around this one, up to the root of the
    repository. Without any: the defaults. Raises SpecError."""
    path = named if named is not None else _search()
    if path is None:
        return Loaded(Config(), os.getcwd())
    text = _text(path)
    table, prefix = _table(path, text)
    if table is None:
        hint = "name a file with a table [tool.placelogic]"
        raise SpecError(Problem("PL035", "there is no table [tool.placelogic] in this file", whole(path), hint))
    if len(table) > MOST_SETTINGS:
        message = f"this has {len(table)} settings, and there are {len(READ)}"
        raise SpecError(Problem("PL036", message, whole(path), "keep what is placelogic's"))
    lines = {key: _line_of(key, text, prefix) for key in table}
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    shown = os.path.relpath(path)
    for key, value in table.items():
        span = Span(path, lines[key], 1, lines[key], 2)
        name = key.replace("-", "_")
        if name not in READ or "_" in key:
            known = [_key(name) for name in Config.__struct_fields__]
            hint = closest(key.replace("_", "-"), known) or f"there are {', '.join(known)}"
            problems.append(Problem("PL036", f"there is no setting `{key}`", span, hint))
            continue
        try:
            values[name] = READ[name](value)
            origins[name] = f"{shown}:{lines[key]}"
        except ValueError as error:
            problems.append(Problem("PL036", f"`{key}` {error}", span))
    if problems:
        raise SpecError(*problems)
    return Loaded(Config(**values), os.path.dirname(os.path.abspath(path)), path, origins)


def configured(folder: str) -> str | None:
    """The file in this very folder that configures placelogic. Raises SpecError where two do."""
    own, project = os.path.join(folder, OWN), os.path.join(folder, PROJECT)
    # A link that leads nowhere, or a folder, is a file that cannot be read: not none at all.
    text = _text(project) if os.path.lexists(project) else ""
    asked = "placelogic" in text and _table(project, text)[0] is not None
    if not os.path.lexists(own):
        return project if asked else None
    if asked:
        message = f"`{OWN}` and `{PROJECT}` beside it both configure placelogic"
        raise SpecError(Problem("PL037", message, whole(os.path.relpath(own)), "keep one of the two"))
    return own


def _search() -> str | None:
    here = os.getcwd()
    while True:
        if found := configured(here):
            return os.path.relpath(found)
        parent = os.path.dirname(here)
        if os.path.exists(os.path.join(here, ".git")) or parent == here:
            return None
        here = parent


def _text(path: str) -> str:
    try:
        return read_text(path, MAX_BYTES)
    except Unreadable as error:
        raise SpecError(Problem("PL035", f"the configuration cannot be read: {error}", whole(path))) from None


def _table(path: str, text: str) -> tuple[dict[str, Any] | None, str]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if long := _LONG_NAME.search(text):  # the reader takes its length squared
        line = text.count("\n", 0, long.start()) + 1
        place = Span(path, line, 1, line, 2)
        raise SpecError(Problem("PL035", "this is nested too deeply to be read: a name has more than 50 parts", place))
    try:
        form = tomllib.loads(text)
    except RecursionError:
        raise SpecError(Problem("PL035", "this is nested too deeply to be read", whole(path))) from None
    except ValueError as error:  # also for a number of thousands of digits
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(at[1]), int(at[2])) if at else (text.rstrip("\n").count("\n") + 1, 1)
        said = str(error).split(" (at ")[0]
        message = f"this is not TOML: {said[:1].lower()}{said[1:]}"
        raise SpecError(Problem("PL035", message, Span(path, line, column, line, column + 1))) from None
    if os.path.basename(path) != PROJECT:
        return form, ""
    tool = form.get("tool")
    table = tool.get("placelogic") if isinstance(tool, dict) else None
    return (table, "tool.placelogic") if isinstance(table, dict) else (None, "")


def _line_of(key: str, text: str, prefix: str) -> int:
    """Where the key is written, as far as a look at the lines tells; TOML readers do not say."""
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            table = header[1].replace(" ", "")
            if table == ".".join(filter(None, (prefix, key))):
                return number
        elif table == prefix and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
            return number
    return 1


# --- as TOML ------------------------------------------------------------------------------------


def _key(name: str) -> str:
    return name.replace("_", "-")


def _shown(name: str, value: Any) -> str:
    return f"# {_key(name)} is not set" if value is None else f"{_key(name)} = {_toml(value)}"


def _name_of(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml(name)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return toml(value)
        case tuple():
            return "[" + ", ".join(_toml(one) for one in value) + "]"
        case dict():
            return "{ " + ", ".join(f"{_name_of(name)} = {size}" for name, size in value.items()) + " }" if value else "{}"
        case _:
            return str(value)
